// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @broadcasting_of_rhs
func.func @broadcasting_of_rhs(%x: tensor<2x4x8xf32>, %same: tensor<2x4x8xf32>, %column: tensor<8xf32>,
                               %row: tensor<2x4x1xf32>, %scalar: tensor<f32>, %one: tensor<1x1xf32>) {
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %0 = nn.add %x, %same : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  // CHECK: nn.sub %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<8xf32>
  %1 = nn.sub %0, %column : tensor<2x4x8xf32>, tensor<8xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x4x1xf32>
  %2 = nn.mul %1, %row : tensor<2x4x8xf32>, tensor<2x4x1xf32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<f32>
  %3 = nn.div %2, %scalar : tensor<2x4x8xf32>, tensor<f32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<1x1xf32>
  %4 = nn.div %3, %one : tensor<2x4x8xf32>, tensor<1x1xf32>
  return
}

// CHECK-LABEL: @functions
func.func @functions(%x: tensor<4x8xbf16>) {
  // CHECK: nn.neg %{{.*}} : tensor<4x8xbf16>
  %0 = nn.neg %x : tensor<4x8xbf16>
  // CHECK: nn.exp
  %1 = nn.exp %x : tensor<4x8xbf16>
  // CHECK: nn.log
  %2 = nn.log %x : tensor<4x8xbf16>
  // CHECK: nn.sqrt
  %3 = nn.sqrt %x : tensor<4x8xbf16>
  // CHECK: nn.tanh
  %4 = nn.tanh %x : tensor<4x8xbf16>
  // CHECK: nn.scale %{{.*}} by 5.000000e-01 : tensor<4x8xbf16>
  %5 = nn.scale %x by 0.5 : tensor<4x8xbf16>
  return
}

// CHECK-LABEL: @activations
func.func @activations(%x: tensor<8xf32>) {
  // CHECK: nn.activation gelu %{{.*}} : tensor<8xf32>
  %0 = nn.activation gelu %x : tensor<8xf32>
  // CHECK: nn.activation gelu_tanh
  %1 = nn.activation gelu_tanh %x : tensor<8xf32>
  // CHECK: nn.activation silu
  %2 = nn.activation silu %x : tensor<8xf32>
  // CHECK: nn.activation relu
  %3 = nn.activation relu %x : tensor<8xf32>
  // CHECK: nn.activation_grad silu %{{.*}}, %{{.*}} : tensor<8xf32>
  %4 = nn.activation_grad silu %x, %x : tensor<8xf32>
  return
}

// CHECK-LABEL: @broadcast
func.func @broadcast(%scalar: tensor<f32>, %row: tensor<4x1xf32>, %column: tensor<8xf32>) {
  // CHECK: nn.broadcast %{{.*}} : tensor<f32> to tensor<4x1xf32>
  %0 = nn.broadcast %scalar : tensor<f32> to tensor<4x1xf32>
  // CHECK: nn.broadcast %{{.*}} : tensor<4x1xf32> to tensor<4x8xf32>
  %1 = nn.broadcast %row : tensor<4x1xf32> to tensor<4x8xf32>
  // CHECK: nn.broadcast %{{.*}} : tensor<8xf32> to tensor<4x8xf32>
  %2 = nn.broadcast %column : tensor<8xf32> to tensor<4x8xf32>
  return
}

// CHECK-LABEL: @constants
func.func @constants() -> (tensor<2xi32>, tensor<f32>, tensor<f32>) {
  // CHECK: nn.constant dense<[1, -1]> : tensor<2xi32>
  %0 = nn.constant dense<[1, -1]> : tensor<2xi32>
  // CHECK: nn.constant dense<1.000000e+00> : tensor<f32>
  %1 = nn.constant dense<1.0> : tensor<f32>
  // CHECK: nn.clip_coefficient %{{.*}}, %{{.*}} : tensor<f32>
  %2 = nn.clip_coefficient %1, %1 : tensor<f32>
  return %0, %1, %2 : tensor<2xi32>, tensor<f32>, tensor<f32>
}
