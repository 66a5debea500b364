// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @sums
func.func @sums(%x: tensor<100x64xf32>, %g: tensor<768x768xf32>) {
  // CHECK: nn.row_sum %{{.*}} : tensor<100x64xf32> -> tensor<100x1xf32>
  %0 = nn.row_sum %x : tensor<100x64xf32> -> tensor<100x1xf32>
  // CHECK: nn.column_partials %{{.*}} : tensor<100x64xf32> -> tensor<2x64xf32>
  %1 = nn.column_partials %x : tensor<100x64xf32> -> tensor<2x64xf32>
  // CHECK: nn.fold_rows %{{.*}} : tensor<2x64xf32> -> tensor<64xf32>
  %2 = nn.fold_rows %1 : tensor<2x64xf32> -> tensor<64xf32>
  // CHECK: nn.square_sums %{{.*}} : tensor<768x768xf32> -> tensor<36xf32>
  %3 = nn.square_sums %g : tensor<768x768xf32> -> tensor<36xf32>
  // CHECK: nn.sum %{{.*}} : tensor<36xf32>
  %4 = nn.sum %3 : tensor<36xf32>
  return
}
