// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @bias
func.func @bias(%x: tensor<8x64xbf16>, %w: tensor<96x64xbf16>, %b: tensor<96xbf16>) -> tensor<8x96xbf16> {
  // CHECK: nn.epilogue_matmul %{{.*}}, %{{.*}} transpose_rhs epilogue bias bias(%{{.*}} : tensor<96xbf16>) : tensor<8x64xbf16>, tensor<96x64xbf16> -> tensor<8x96xbf16>
  %0 = nn.epilogue_matmul %x, %w transpose_rhs epilogue bias bias(%b : tensor<96xbf16>) : tensor<8x64xbf16>, tensor<96x64xbf16> -> tensor<8x96xbf16>
  return %0 : tensor<8x96xbf16>
}

// CHECK-LABEL: @aux_written_and_read
func.func @aux_written_and_read(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) -> (tensor<8x96xf32>, tensor<8x64xf32>) {
  // CHECK: nn.epilogue_matmul %{{.*}}, %{{.*}} tf32 epilogue gelu_aux : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>, tensor<8x96xf32>
  %h, %a = nn.epilogue_matmul %x, %w tf32 epilogue gelu_aux : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>, tensor<8x96xf32>
  // CHECK: nn.epilogue_matmul %{{.*}}, %{{.*}} transpose_rhs epilogue gelu_gradient aux(%{{.*}} : tensor<8x64xf32>)
  %d = nn.epilogue_matmul %h, %w transpose_rhs epilogue gelu_gradient aux(%x : tensor<8x64xf32>) : tensor<8x96xf32>, tensor<64x96xf32> -> tensor<8x64xf32>
  return %a, %d : tensor<8x96xf32>, tensor<8x64xf32>
}

// CHECK-LABEL: @bias_gradient
func.func @bias_gradient(%x: tensor<8x64xbf16>, %dy: tensor<8x96xbf16>, %g: tensor<64x96xf32>) -> (tensor<64x96xf32>, tensor<96xf32>) {
  // CHECK: nn.epilogue_matmul %{{.*}}, %{{.*}} transpose_lhs acc %{{.*}} : tensor<64x96xf32> epilogue bias_gradient_rhs : tensor<8x64xbf16>, tensor<8x96xbf16> -> tensor<64x96xf32>, tensor<96xf32>
  %dw, %db = nn.epilogue_matmul %x, %dy transpose_lhs acc %g : tensor<64x96xf32> epilogue bias_gradient_rhs : tensor<8x64xbf16>, tensor<8x96xbf16> -> tensor<64x96xf32>, tensor<96xf32>
  return %dw, %db : tensor<64x96xf32>, tensor<96xf32>
}
