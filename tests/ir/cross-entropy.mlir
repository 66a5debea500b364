// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @loss_and_gradient
func.func @loss_and_gradient(%l: tensor<8x97xf32>, %t: tensor<8xi32>) -> tensor<8x97xf32> {
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} : tensor<8x97xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  %loss, %lse = nn.cross_entropy %l, %t : tensor<8x97xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x1xf32>, tensor<8x97xf32>, tensor<8xi32>, tensor<8x1xf32>
  %dl = nn.cross_entropy_grad %loss, %l, %t, %lse : tensor<8x1xf32>, tensor<8x97xf32>, tensor<8xi32>, tensor<8x1xf32>
  return %dl : tensor<8x97xf32>
}

// CHECK-LABEL: @count
func.func @count(%t: tensor<4x8xi32>) -> tensor<f32> {
  // CHECK: nn.count_valid %{{.*}} : tensor<4x8xi32>
  %0 = nn.count_valid %t : tensor<4x8xi32>
  return %0 : tensor<f32>
}
