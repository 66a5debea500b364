// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @forward_and_back
func.func @forward_and_back(%x: tensor<16x64xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<16x64xf32> {
  // CHECK: nn.rope %{{.*}}, %{{.*}}, %{{.*}} heads 4 : tensor<16x64xf32>, tensor<8x8xf32>
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<16x64xf32>, tensor<8x8xf32>
  // CHECK: nn.rope %{{.*}}, %{{.*}}, %{{.*}} heads 4 inverse : tensor<16x64xf32>, tensor<8x8xf32>
  %1 = nn.rope %0, %cos, %sin heads 4 inverse : tensor<16x64xf32>, tensor<8x8xf32>
  return %1 : tensor<16x64xf32>
}

// CHECK-LABEL: @positions
func.func @positions(%x: tensor<16x64xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>, %p: tensor<16xi32>) -> tensor<16x64xf32> {
  // CHECK: nn.rope %{{.*}}, %{{.*}}, %{{.*}} positions(%{{.*}} : tensor<16xi32>) heads 4 inverse : tensor<16x64xf32>, tensor<8x8xf32>
  %0 = nn.rope %x, %cos, %sin positions(%p : tensor<16xi32>) heads 4 inverse : tensor<16x64xf32>, tensor<8x8xf32>
  return %0 : tensor<16x64xf32>
}
