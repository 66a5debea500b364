// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @updates
func.func @updates(%p: tensor<8x6xf32>, %g: tensor<8x6xf32>, %s: tensor<f32>) {
  // CHECK: nn.adamw %{{.*}} {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>,
  %0:3 = nn.adamw %p, %g, %g, %g, %s, %s, %s, %s, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>)
  // CHECK: nn.sgd %{{.*}} {decay = false} : (tensor<8x6xf32>, tensor<8x6xf32>,
  %1:2 = nn.sgd %p, %g, %g, %s, %s, %s, %s {decay = false} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<8x6xf32>)
  // CHECK: nn.lion %{{.*}} {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>,
  %2:2 = nn.lion %p, %g, %g, %s, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<8x6xf32>)
  return
}
