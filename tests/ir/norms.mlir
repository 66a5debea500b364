// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @layer_norm
func.func @layer_norm(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32> {
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 1.000000e-05 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<8x1xf32>
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<8x1xf32>
  // CHECK: nn.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<64xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  %dx = nn.layer_norm_grad %y, %x, %w, %mean, %rstd : tensor<8x64xf32>, tensor<64xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  return %dx : tensor<8x64xf32>
}

// CHECK-LABEL: @rms_norm
func.func @rms_norm(%x: tensor<2x4x64xf32>, %w: tensor<64xf32>) -> tensor<2x4x64xf32> {
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} eps 5.000000e-01 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x1xf32>
  %y, %rstd = nn.rms_norm %x, %w eps 0.5 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x1xf32>
  // CHECK: nn.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x64xf32>, tensor<64xf32>, tensor<2x4x1xf32>
  %dx = nn.rms_norm_grad %y, %x, %w, %rstd : tensor<2x4x64xf32>, tensor<64xf32>, tensor<2x4x1xf32>
  return %dx : tensor<2x4x64xf32>
}

// CHECK-LABEL: @softmax
func.func @softmax(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: nn.softmax %{{.*}} : tensor<8x64xf32>
  %y = nn.softmax %x : tensor<8x64xf32>
  // CHECK: nn.softmax_grad %{{.*}}, %{{.*}} : tensor<8x64xf32>
  %dx = nn.softmax_grad %x, %y : tensor<8x64xf32>
  return %dx : tensor<8x64xf32>
}
