// RUN: gradc-opt %s -split-input-file --autodiff --canonicalize --verify-values | FileCheck %s

// A product of bf16 with a result of f32: its gradient is rounded to bf16 for the products of the
// backward. The weight's gradient is never rounded; the table's is f32 as the table is.
// CHECK-LABEL: func.func @loss_and_gradients(
// CHECK: %[[D:.*]] = nn.cross_entropy_grad
// CHECK: %[[NARROW:.*]] = nn.cast %[[D]] : tensor<7x9xf32> to tensor<7x9xbf16>
// CHECK: %[[DX:.*]] = nn.matmul %[[NARROW]], %{{.*}} transpose_rhs : tensor<7x9xbf16>, tensor<6x9xbf16> -> tensor<7x6xbf16>
// CHECK: %[[DW:.*]] = nn.matmul %{{.*}}, %[[NARROW]] transpose_lhs : tensor<7x6xbf16>, tensor<7x9xbf16> -> tensor<6x9xf32>
// CHECK: nn.embedding_grad %{{.*}}, %[[DX]] : tensor<7xi32>, tensor<7x6xbf16> -> tensor<12x6xf32>
func.func @loss(%e: tensor<12x6xf32> {nn.param = {name = "e"}}, %w: tensor<6x9xf32> {nn.param = {name = "w"}},
                %tokens: tensor<7xi32>, %targets: tensor<7xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %e : tensor<7xi32>, tensor<12x6xf32> -> tensor<7x6xbf16>
  %narrow = nn.cast %w : tensor<6x9xf32> to tensor<6x9xbf16>
  %logits = nn.matmul %x, %narrow : tensor<7x6xbf16>, tensor<6x9xbf16> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %targets : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.sum %loss : tensor<7x1xf32>
  return %sum : tensor<f32>
}

// -----

// A narrow table: sums in f32, rounded once to the table's type.
// CHECK-LABEL: func.func @loss_and_gradients(
// CHECK: %[[SUMS:.*]] = nn.embedding_grad %{{.*}} : tensor<7xi32>, tensor<7x9xbf16> -> tensor<12x9xf32>
// CHECK: %[[DE:.*]] = nn.cast %[[SUMS]] : tensor<12x9xf32> to tensor<12x9xbf16>
// CHECK: return %{{.*}}, %[[DE]]
func.func @loss(%e: tensor<12x9xbf16> {nn.param = {name = "e"}}, %tokens: tensor<7xi32>, %targets: tensor<7xi32>) -> tensor<f32> {
  %narrow = nn.embedding %tokens, %e : tensor<7xi32>, tensor<12x9xbf16> -> tensor<7x9xbf16>
  %logits = nn.cast %narrow : tensor<7x9xbf16> to tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %targets : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.sum %loss : tensor<7x1xf32>
  return %sum : tensor<f32>
}

// -----

// Where operands are rounded to tf32, so are those of the backward's products.
// CHECK-LABEL: func.func @loss_and_gradients(
// CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_rhs tf32 : tensor<7x9xf32>, tensor<6x9xf32> -> tensor<7x6xf32>
// CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_lhs tf32 : tensor<7x6xf32>, tensor<7x9xf32> -> tensor<6x9xf32>
func.func @loss(%e: tensor<12x6xf32> {nn.param = {name = "e"}}, %w: tensor<6x9xf32> {nn.param = {name = "w"}},
                %tokens: tensor<7xi32>, %targets: tensor<7xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %e : tensor<7xi32>, tensor<12x6xf32> -> tensor<7x6xf32>
  %logits = nn.matmul %x, %w tf32 : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %loss, %lse = nn.cross_entropy %logits, %targets : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.sum %loss : tensor<7x1xf32>
  return %sum : tensor<f32>
}
