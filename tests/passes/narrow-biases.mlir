// RUN: gradc-opt %s --target=cuda:sm_80 --narrow-biases --verify-values | FileCheck %s
// RUN: gradc-opt %s --narrow-biases | FileCheck %s --check-prefix CPU

// CPU-NOT: nn.cast

// CHECK-LABEL: func.func @narrow(
// CHECK: %[[B:.*]] = nn.cast %arg2 : tensor<16xf32> to tensor<16xbf16>
// CHECK: nn.add %{{.*}}, %[[B]] : tensor<6x16xbf16>, tensor<16xbf16>
func.func @narrow(%x: tensor<6x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xf32>) -> tensor<6x16xbf16> {
  %0 = nn.matmul %x, %w : tensor<6x8xbf16>, tensor<8x16xbf16> -> tensor<6x16xbf16>
  %1 = nn.add %0, %b : tensor<6x16xbf16>, tensor<16xf32>
  return %1 : tensor<6x16xbf16>
}

// Of the type already, and no bias of a product.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: nn.cast
func.func @others(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>, %y: tensor<6x16xbf16>) -> (tensor<6x16xf32>, tensor<6x16xbf16>) {
  %0 = nn.matmul %x, %w : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.add %0, %b : tensor<6x16xf32>, tensor<16xf32>
  %2 = nn.add %y, %b : tensor<6x16xbf16>, tensor<16xf32>
  return %1, %2 : tensor<6x16xf32>, tensor<6x16xbf16>
}
