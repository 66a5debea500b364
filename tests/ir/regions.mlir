// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @microbatches
func.func @microbatches(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nn.microbatches sliced(%{{.*}} : tensor<4x8xf32>) carried(%{{.*}} : tensor<8xf32>) -> (tensor<8xf32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>):
  %0 = nn.microbatches sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%slice: tensor<8xf32>, %sum: tensor<8xf32>):
    %1 = nn.mul %slice, %w : tensor<8xf32>, tensor<8xf32>
    %2 = nn.add %sum, %1 : tensor<8xf32>, tensor<8xf32>
    // CHECK: nn.yield %{{.*}} : tensor<8xf32>
    nn.yield %2 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @fused
func.func @fused(%x: tensor<8x64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32> {
  // CHECK: nn.fused(%{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8x64xf32>) {
  %y = nn.fused(%x, %b : tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8x64xf32>) {
  ^bb0(%x0: tensor<8x64xf32>, %b0: tensor<64xf32>):
    %0 = nn.add %x0, %b0 : tensor<8x64xf32>, tensor<64xf32>
    %1 = nn.activation gelu_tanh %0 : tensor<8x64xf32>
    nn.yield %1 : tensor<8x64xf32>
  }
  return %y : tensor<8x64xf32>
}
