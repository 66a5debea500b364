// RUN: gradc-opt %s --target=cuda:sm_90 --fusion --product-epilogues --verify-values | FileCheck %s
// RUN: gradc-opt %s --fusion --product-epilogues | FileCheck %s --check-prefix CPU

// CPU-NOT: nn.epilogue_matmul

// CHECK-LABEL: func.func @bias_alone(
// CHECK: nn.epilogue_matmul %arg0, %arg1 epilogue bias bias(%arg2 : tensor<16xbf16>)
// CHECK-NOT: nn.fused
func.func @bias_alone(%x: tensor<6x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xbf16>) -> tensor<6x16xbf16> {
  %0 = nn.matmul %x, %w : tensor<6x8xbf16>, tensor<8x16xbf16> -> tensor<6x16xbf16>
  %1 = nn.add %0, %b : tensor<6x16xbf16>, tensor<16xbf16>
  return %1 : tensor<6x16xbf16>
}

// What the GELU is of is kept where something reads it.
// CHECK-LABEL: func.func @bias_and_gelu(
// CHECK: %[[H:.*]], %[[A:.*]] = nn.epilogue_matmul %arg0, %arg1 epilogue gelu_aux_bias bias(%arg2 : tensor<16xf32>)
// CHECK: return %[[A]], %[[H]]
// CHECK-LABEL: func.func @bias_and_gelu_forward(
// CHECK: nn.epilogue_matmul %arg0, %arg1 tf32 epilogue gelu_bias bias(%arg2 : tensor<16xf32>)
// CHECK-LABEL: func.func @gelu_read_twice(
// CHECK: %[[H:.*]], %[[A:.*]] = nn.epilogue_matmul %arg0, %arg1 epilogue gelu_aux
// CHECK: return %[[H]], %[[A]]
// CHECK-LABEL: func.func @gelu_gradient(
// CHECK: nn.epilogue_matmul %arg0, %arg1 transpose_rhs epilogue gelu_gradient aux(%arg2 : tensor<6x16xbf16>)
// CHECK-NOT: nn.fused
func.func @bias_and_gelu(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>) {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.add %0, %b : tensor<6x16xf32>, tensor<16xf32>
  %2 = nn.activation gelu_tanh %1 : tensor<6x16xf32>
  return %1, %2 : tensor<6x16xf32>, tensor<6x16xf32>
}
func.func @bias_and_gelu_forward(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<6x16xf32> {
  %0 = nn.matmul %x, %w tf32 : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.add %0, %b : tensor<6x16xf32>, tensor<16xf32>
  %2 = nn.activation gelu_tanh %1 : tensor<6x16xf32>
  return %2 : tensor<6x16xf32>
}
func.func @gelu_read_twice(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>) {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.activation gelu_tanh %0 : tensor<6x16xf32>
  return %1, %0 : tensor<6x16xf32>, tensor<6x16xf32>
}
func.func @gelu_gradient(%dy: tensor<6x8xbf16>, %w: tensor<16x8xbf16>, %a: tensor<6x16xbf16>) -> tensor<6x16xbf16> {
  %0 = nn.matmul %dy, %w transpose_rhs : tensor<6x8xbf16>, tensor<16x8xbf16> -> tensor<6x16xbf16>
  %1 = nn.activation_grad gelu_tanh %0, %a : tensor<6x16xbf16>
  return %1 : tensor<6x16xbf16>
}

// What is not an epilogue, or not one that the library takes, stays a kernel.
// CHECK-LABEL: func.func @more_than_an_epilogue(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @another_gelu(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @wide_bias(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @rows_of_aux_not_aligned(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @product_read_elsewhere(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @batches(
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-LABEL: func.func @gradient_of_itself(
// CHECK: nn.matmul
// CHECK: nn.fused
func.func @more_than_an_epilogue(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>, %r: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.add %0, %b : tensor<6x16xf32>, tensor<16xf32>
  %2 = nn.add %1, %r : tensor<6x16xf32>, tensor<6x16xf32>
  return %2 : tensor<6x16xf32>
}
func.func @another_gelu(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>) -> tensor<6x16xf32> {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.activation gelu %0 : tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
func.func @wide_bias(%x: tensor<6x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xf32>) -> tensor<6x16xbf16> {
  %0 = nn.matmul %x, %w : tensor<6x8xbf16>, tensor<8x16xbf16> -> tensor<6x16xbf16>
  %1 = nn.add %0, %b : tensor<6x16xbf16>, tensor<16xf32>
  return %1 : tensor<6x16xbf16>
}
func.func @rows_of_aux_not_aligned(%x: tensor<6x8xbf16>, %w: tensor<8x12xbf16>, %a: tensor<6x12xbf16>) -> tensor<6x12xbf16> {
  %0 = nn.matmul %x, %w : tensor<6x8xbf16>, tensor<8x12xbf16> -> tensor<6x12xbf16>
  %1 = nn.activation_grad gelu_tanh %0, %a : tensor<6x12xbf16>
  return %1 : tensor<6x12xbf16>
}
func.func @product_read_elsewhere(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>) {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.add %0, %b : tensor<6x16xf32>, tensor<16xf32>
  return %0, %1 : tensor<6x16xf32>, tensor<6x16xf32>
}
func.func @batches(%x: tensor<2x6x8xf32>, %w: tensor<2x8x16xf32>) -> tensor<2x6x16xf32> {
  %0 = nn.matmul %x, %w : tensor<2x6x8xf32>, tensor<2x8x16xf32> -> tensor<2x6x16xf32>
  %1 = nn.activation gelu_tanh %0 : tensor<2x6x16xf32>
  return %1 : tensor<2x6x16xf32>
}
func.func @gradient_of_itself(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>) -> tensor<6x16xf32> {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.activation_grad gelu_tanh %0, %0 : tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
