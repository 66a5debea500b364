// RUN: gradc-opt %s --fusion --join-launches --verify-values | FileCheck %s
// RUN: gradc-opt %s --fusion --join-launches --memory-plan | FileCheck %s --check-prefix PLAN

// Sums of squares of any sizes are one kernel, rows of other widths are not; the sum that needs them
// waits. What has a place in the concat is written there.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[A:.*]] = nn.square_sums %arg0 {nn.joined = [[SUMS:[0-9]+]] : i64}
// CHECK-NEXT: %[[B:.*]] = nn.square_sums %arg1 {nn.joined = [[SUMS]] : i64}
// CHECK-NEXT: nn.concat %[[A]], %[[B]] rows
// CHECK-NEXT: nn.sum %{{[^{]*}}:
// CHECK: nn.fused(%arg0
// CHECK: nn.joined = [[EXP:[0-9]+]]
// CHECK: nn.fused(%arg2
// CHECK: nn.joined = [[EXP]]

// PLAN: exec.program @train_step
// PLAN-NEXT: exec.launch @square_sums{{.*}} extent 16400 tasks 2 parts [#exec.part<extent 16, from 0>, #exec.part<extent 16384, from 1>]
// PLAN-NEXT: exec.launch @sum
// PLAN-NEXT: exec.launch @exp{{.*}} extent 32 tasks 2 parts [#exec.part<extent 16, from 0>, #exec.part<extent 16, from 1>]
// PLAN-NOT: exec.launch
module {
  func.func @train_step(%x: tensor<4x4xf32> {nn.slot = {role = "input", name = "x"}},
                        %y: tensor<128x128xf32> {nn.slot = {role = "input", name = "y"}},
                        %z: tensor<16xf32> {nn.slot = {role = "input", name = "z"}})
      -> (tensor<f32> {nn.slot = {role = "output", name = "s"}},
          tensor<4x4xf32> {nn.slot = {role = "output", name = "e"}},
          tensor<16xf32> {nn.slot = {role = "output", name = "f"}}) {
    %a = nn.square_sums %x : tensor<4x4xf32> -> tensor<1xf32>
    %b = nn.square_sums %y : tensor<128x128xf32> -> tensor<1xf32>
    %all = nn.concat %a, %b rows : tensor<1xf32>, tensor<1xf32> to tensor<2xf32>
    %s = nn.sum %all : tensor<2xf32>
    %e = nn.exp %x : tensor<4x4xf32>
    %f = nn.exp %z : tensor<16xf32>
    return %s, %e, %f : tensor<f32>, tensor<4x4xf32>, tensor<16xf32>
  }
}
