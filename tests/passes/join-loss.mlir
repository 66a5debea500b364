// RUN: gradc-opt %s --join-loss --verify-values | FileCheck %s

// CHECK-LABEL: func.func @head(
// CHECK-NOT: nn.matmul
// CHECK: %[[LOSS:.*]] = nn.linear_cross_entropy %arg0, %arg1, %arg2 : tensor<7x6xf32>, tensor<6x9xf32>, tensor<7xi32> -> tensor<7x1xf32>
// CHECK: nn.sum %[[LOSS]]
func.func @head(%x: tensor<7x6xf32>, %w: tensor<6x9xf32>, %t: tensor<7xi32>) -> tensor<f32> {
  %logits = nn.matmul %x, %w : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.sum %loss : tensor<7x1xf32>
  return %sum : tensor<f32>
}

// CHECK-LABEL: func.func @tied_and_rounded(
// CHECK: nn.linear_cross_entropy %arg0, %arg1, %arg2 transpose_weight tf32
func.func @tied_and_rounded(%x: tensor<7x6xf32>, %w: tensor<9x6xf32>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %logits = nn.matmul %x, %w transpose_rhs tf32 : tensor<7x6xf32>, tensor<9x6xf32> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}

// CHECK-LABEL: func.func @narrow(
// CHECK: nn.linear_cross_entropy %arg0, %arg1, %arg2 : tensor<7x6xbf16>, tensor<6x9xbf16>, tensor<7xi32> -> tensor<7x1xf32>
func.func @narrow(%x: tensor<7x6xbf16>, %w: tensor<6x9xbf16>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %logits = nn.matmul %x, %w : tensor<7x6xbf16>, tensor<6x9xbf16> -> tensor<7x9xbf16>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xbf16>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}

// What else reads the logits needs them whole.
// CHECK-LABEL: func.func @logits_are_returned(
// CHECK: nn.cross_entropy
func.func @logits_are_returned(%x: tensor<7x6xf32>, %w: tensor<6x9xf32>, %t: tensor<7xi32>) -> (tensor<7x1xf32>, tensor<7x9xf32>) {
  %logits = nn.matmul %x, %w : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss, %logits : tensor<7x1xf32>, tensor<7x9xf32>
}

// CHECK-LABEL: func.func @statistics_are_read(
// CHECK: nn.cross_entropy
func.func @statistics_are_read(%x: tensor<7x6xf32>, %w: tensor<6x9xf32>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %logits = nn.matmul %x, %w : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.add %loss, %lse : tensor<7x1xf32>, tensor<7x1xf32>
  return %sum : tensor<7x1xf32>
}

// CHECK-LABEL: func.func @bias(
// CHECK: nn.cross_entropy
func.func @bias(%x: tensor<7x6xf32>, %w: tensor<6x9xf32>, %b: tensor<9xf32>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %product = nn.matmul %x, %w : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %logits = nn.add %product, %b : tensor<7x9xf32>, tensor<9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}

// CHECK-LABEL: func.func @wider_logits(
// CHECK: nn.cross_entropy
func.func @wider_logits(%x: tensor<7x6xbf16>, %w: tensor<6x9xbf16>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %logits = nn.matmul %x, %w : tensor<7x6xbf16>, tensor<6x9xbf16> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}
