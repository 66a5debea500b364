// RUN: gradc-opt %s --fusion --memory-plan | FileCheck %s

// Both operands of the sum die with it; it is written over the one whose slot it returns to.
// CHECK: exec.program @train_step
// CHECK: exec.launch @matmul
// CHECK-NEXT: exec.launch @add{{[a-z_0-9]*}} {{.*}}[#exec.buffer<arena, {{[0-9]+}}, bytes 64>, #exec.buffer<state, [[M:[0-9]+]], bytes 64>, #exec.buffer<state, [[M]], bytes 64>]
// CHECK-NOT: exec.launch
module {
  func.func @train_step(%x: tensor<4x4xf32> {nn.slot = {role = "input", name = "x"}},
                        %m: tensor<4x4xf32> {nn.slot = {role = "optimizer", name = "w", slot = "momentum"}, nn.param = {name = "w"}})
      -> (tensor<4x4xf32> {nn.slot = {role = "optimizer", name = "w", slot = "momentum"}}) {
    %g = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %new = nn.add %g, %m : tensor<4x4xf32>, tensor<4x4xf32>
    return %new : tensor<4x4xf32>
  }
}
