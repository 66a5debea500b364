// RUN: gradc-opt %s --precision=mode=bf16 --autodiff --canonicalize \
// RUN:   --training-step=optimizer=sgd --cse --canonicalize --verify-values | FileCheck %s
// RUN: gradc-opt %s --precision=mode=fp8 --autodiff --quantize-products --canonicalize \
// RUN:   --training-step=optimizer=sgd --cse --canonicalize --verify-values | FileCheck %s

// What is made of parts of a parameter is no copy of it: parts of one shape would be taken for one
// another. Each stays in the graph; the head's copy is state.
// CHECK-LABEL: func.func @train_step(
// CHECK-NOT: {name = "qk", role = "low_parameter"
// CHECK-SAME: tensor<4x5xbf16> {nn.slot = {name = "head", role = "low_parameter"}}
// CHECK: nn.slice %{{.*}} at 0 : tensor<4x8xf32> to tensor<4x4xf32>
// CHECK: nn.slice %{{.*}} at 4 : tensor<4x8xf32> to tensor<4x4xf32>
// CHECK: return
func.func @loss(%table: tensor<5x4xf32> {nn.param = {name = "table"}}, %qk: tensor<4x8xf32> {nn.param = {name = "qk"}},
                %head: tensor<4x5xf32> {nn.param = {name = "head"}}, %tokens: tensor<6xi32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x4xf32> -> tensor<6x4xf32>
  %wq = nn.slice %qk at 0 : tensor<4x8xf32> to tensor<4x4xf32>
  %wk = nn.slice %qk at 4 : tensor<4x8xf32> to tensor<4x4xf32>
  %q = nn.matmul %x, %wq : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
  %k = nn.matmul %x, %wk : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
  %y = nn.mul %q, %k : tensor<6x4xf32>, tensor<6x4xf32>
  %logits = nn.matmul %y, %head : tensor<6x4xf32>, tensor<4x5xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %loss = nn.sum %each : tensor<6x1xf32>
  return %loss : tensor<f32>
}
