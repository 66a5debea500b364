// RUN: gradc-opt %s --fusion="enable=false" --join-launches --memory-plan | FileCheck %s

// Three buffers are alive at once, so the arena has three.
// CHECK: arena_bytes = 192
// Both sums read the product and run at the same time: neither is written over it.
// CHECK: exec.program @train_step
// CHECK: exec.launch @matmul{{.*}}[{{.*}}#exec.buffer<arena, [[G:[0-9]+]], bytes 64>]
// CHECK-NEXT: exec.launch @add{{[a-z_0-9]*}} extent 32 tasks 2 parts [#exec.part<extent 16, from 0>, #exec.part<extent 16, from 1>] [#exec.buffer<arena, [[G]], bytes 64>, #exec.buffer<state, 0, bytes 64>, #exec.buffer<arena, [[A:[0-9]+]], bytes 64>, #exec.buffer<arena, [[G]], bytes 64>, #exec.buffer<state, 64, bytes 64>, #exec.buffer<arena, [[B:[0-9]+]], bytes 64>]
// CHECK-NEXT: exec.launch @matmul{{.*}}[#exec.buffer<arena, [[A]], bytes 64>, #exec.buffer<arena, [[B]], bytes 64>
module {
  func.func @train_step(%x: tensor<4x4xf32> {nn.slot = {role = "input", name = "x"}},
                        %z: tensor<4x4xf32> {nn.slot = {role = "input", name = "z"}})
      -> (tensor<4x4xf32> {nn.slot = {role = "output", name = "y"}}) {
    %g = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %a = nn.add %g, %x : tensor<4x4xf32>, tensor<4x4xf32>
    %b = nn.add %g, %z : tensor<4x4xf32>, tensor<4x4xf32>
    %o = nn.matmul %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %o : tensor<4x4xf32>
  }
}
