// RUN: gradc-opt %s --fusion --memory-plan | FileCheck %s

// The sum reads a row of %g beside %g itself, for every row: it must not be written over %g.
// CHECK: exec.program @train_step
// CHECK: exec.launch @matmul
// CHECK-NEXT: exec.launch @add{{[a-z_0-9]*}} {{.*}}[#exec.buffer<arena, [[G:[0-9]+]], bytes 64>, #exec.buffer<arena, {{[0-9]+}}, bytes 16>, #exec.buffer<arena, [[N:[0-9]+]], bytes 64>]
// CHECK-NEXT: exec.launch @matmul{{.*}}[#exec.buffer<arena, [[N]], bytes 64>
// CHECK-NOT: #exec.buffer<arena, [[G]], bytes 64>, #exec.buffer<arena, {{[0-9]+}}, bytes 16>, #exec.buffer<arena, [[G]]
module {
  func.func @train_step(%x: tensor<4x4xf32> {nn.slot = {role = "input", name = "x"}})
      -> (tensor<4x4xf32> {nn.slot = {role = "output", name = "y"}}) {
    %g = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %s = nn.slice %g at row 1 : tensor<4x4xf32> to tensor<1x4xf32>
    %v = nn.reshape %s : tensor<1x4xf32> to tensor<4xf32>
    %n = nn.add %g, %v : tensor<4x4xf32>, tensor<4xf32>
    %o = nn.matmul %n, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %o : tensor<4x4xf32>
  }
}
