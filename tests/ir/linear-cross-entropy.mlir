// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @loss
func.func @loss(%x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %v: tensor<97x64xf32>, %t: tensor<8xi32>) {
  // CHECK: nn.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32> -> tensor<8x1xf32>
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32> -> tensor<8x1xf32>
  // CHECK: nn.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} transpose_weight tf32 : tensor<8x64xf32>, tensor<97x64xf32>
  %1 = nn.linear_cross_entropy %x, %v, %t transpose_weight tf32 : tensor<8x64xf32>, tensor<97x64xf32>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// CHECK-LABEL: @gradients
func.func @gradients(%g: tensor<8x1xf32>, %x: tensor<8x64xbf16>, %w: tensor<97x64xbf16>, %t: tensor<8xi32>, %a: tensor<97x64xf32>) {
  // CHECK: nn.linear_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} transpose_weight : (tensor<8x1xf32>, tensor<8x64xbf16>, tensor<97x64xbf16>, tensor<8xi32>) -> (tensor<8x64xbf16>, tensor<97x64xbf16>, tensor<8x1xf32>)
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t transpose_weight : (tensor<8x1xf32>, tensor<8x64xbf16>, tensor<97x64xbf16>, tensor<8xi32>) -> (tensor<8x64xbf16>, tensor<97x64xbf16>, tensor<8x1xf32>)
  // CHECK: nn.linear_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} acc %{{.*}} transpose_weight : {{.*}} -> (tensor<8x64xf32>, tensor<97x64xf32>, tensor<8x1xf32>)
  %1:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t acc %a transpose_weight : (tensor<8x1xf32>, tensor<8x64xbf16>, tensor<97x64xbf16>, tensor<8xi32>, tensor<97x64xf32>) -> (tensor<8x64xf32>, tensor<97x64xf32>, tensor<8x1xf32>)
  return
}
