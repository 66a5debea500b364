// RUN: gradc-opt %s | gradc-opt | FileCheck %s

// CHECK-LABEL: func.func @both_orders(
// CHECK: nn.pack_panels %{{.*}} : tensor<64x96xbf16> to tensor<64x96xbf16, #nn.panels<width = 64, depth_unit = 16, pairs = true>>, tensor<64x96xbf16, #nn.panels<width = 64, depth_unit = 16, transposed = true, pairs = true>>
// CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_rhs : tensor<8x96xbf16>, tensor<64x96xbf16, #nn.panels<
func.func @both_orders(%x: tensor<8x96xbf16>, %w: tensor<64x96xbf16>) -> tensor<8x64xf32> {
  %p:2 = nn.pack_panels %w : tensor<64x96xbf16>
      to tensor<64x96xbf16, #nn.panels<width = 64, depth_unit = 16, pairs = true>>,
         tensor<64x96xbf16, #nn.panels<width = 64, depth_unit = 16, transposed = true, pairs = true>>
  %y = nn.matmul %x, %p#1 transpose_rhs : tensor<8x96xbf16>,
      tensor<64x96xbf16, #nn.panels<width = 64, depth_unit = 16, transposed = true, pairs = true>> -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
