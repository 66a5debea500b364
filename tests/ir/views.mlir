// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @views
func.func @views(%x: tensor<8x192xf32>, %i: tensor<2x4xi32>) {
  // CHECK: nn.reshape %{{.*}} : tensor<8x192xf32> to tensor<2x4x192xf32>
  %0 = nn.reshape %x : tensor<8x192xf32> to tensor<2x4x192xf32>
  // CHECK: nn.reshape %{{.*}} : tensor<2x4xi32> to tensor<8xi32>
  %1 = nn.reshape %i : tensor<2x4xi32> to tensor<8xi32>
  // CHECK: nn.slice %{{.*}} at 128 : tensor<8x192xf32> to tensor<8x64xf32>
  %2 = nn.slice %x at 128 : tensor<8x192xf32> to tensor<8x64xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<8x192xf32> to tensor<8x256xf32>
  %3 = nn.concat %2, %x : tensor<8x64xf32>, tensor<8x192xf32> to tensor<8x256xf32>
  // CHECK: nn.slice %{{.*}} at row 3 : tensor<8x192xf32> to tensor<4x192xf32>
  %5 = nn.slice %x at row 3 : tensor<8x192xf32> to tensor<4x192xf32>
  // CHECK: nn.slice %{{.*}} at row 1 : tensor<2x4xi32> to tensor<1x4xi32>
  %6 = nn.slice %i at row 1 : tensor<2x4xi32> to tensor<1x4xi32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} rows : tensor<4x192xf32>, tensor<8x192xf32> to tensor<12x192xf32>
  %7 = nn.concat %5, %x rows : tensor<4x192xf32>, tensor<8x192xf32> to tensor<12x192xf32>
  // CHECK: nn.transpose %{{.*}} : tensor<2x4x192xf32> to tensor<2x192x4xf32>
  %4 = nn.transpose %0 : tensor<2x4x192xf32> to tensor<2x192x4xf32>
  return
}
