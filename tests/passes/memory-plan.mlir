// RUN: gradc-opt %s --fusion --memory-plan | FileCheck %s

// The parameter is updated where it lies; the slices of the product are read in place, with the
// product's row stride; both gradients are written side by side into the concat.
// CHECK: exec.program @train_step
// CHECK: exec.launch @matmul{{.*}} product
// CHECK: exec.launch @[[ADD:add[a-z_0-9]*]] {{.*}}[#exec.buffer<arena, [[AT:[0-9]+]], bytes 160>, #exec.buffer<arena, {{[0-9]+}}, bytes 160>, #exec.buffer<arena, [[SUM:[0-9]+]], bytes 64>]
// CHECK: exec.launch @{{.*}} [#exec.buffer<state, [[W:[0-9]+]], bytes 192>, {{.*}}#exec.buffer<state, [[W]], bytes 192>]
// CHECK: exec.kernel @[[ADD]] strides [12, 12
// CHECK-NOT: func.func
module {
  func.func @train_step(%x: tensor<4x4xf32> {nn.slot = {role = "input", name = "x"}},
                        %w: tensor<4x12xf32> {nn.slot = {role = "parameter", name = "w"}, nn.param = {name = "w"}})
      -> (tensor<4x12xf32> {nn.slot = {role = "parameter", name = "w"}}, tensor<4x4xf32> {nn.slot = {role = "output", name = "y"}}) {
    %p = nn.matmul %x, %w : tensor<4x4xf32>, tensor<4x12xf32> -> tensor<4x12xf32>
    %a = nn.slice %p at 0 : tensor<4x12xf32> to tensor<4x4xf32>
    %b = nn.slice %p at 4 : tensor<4x12xf32> to tensor<4x4xf32>
    %s = nn.add %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
    %y = nn.matmul %s, %s : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %new = nn.scale %w by 5.0e-01 : tensor<4x12xf32>
    return %new, %y : tensor<4x12xf32>, tensor<4x4xf32>
  }
}
