// RUN: gradc-opt %s --autodiff --recompute=mode=none | FileCheck %s --check-prefix=NONE
// RUN: gradc-opt %s --autodiff --recompute=mode=cheap | FileCheck %s --check-prefix=CHEAP
// RUN: not gradc-opt %s --autodiff --recompute=mode=most 2>&1 | FileCheck %s --check-prefix=WRONG

// The activation's input is kept; its output, which the second product's gradient reads, is made
// again from it once the gradient is there.
// NONE: func.func @loss_and_gradients
// NONE-NOT: nn.recomputed
// CHEAP: func.func @loss_and_gradients
// CHEAP: %[[A:.*]] = nn.matmul
// CHEAP: %[[H:.*]] = nn.activation silu %[[A]] : tensor<6x8xf32>
// CHEAP: nn.cross_entropy
// CHEAP: %[[LATE:.*]] = nn.after %[[A]], %{{.*}} : tensor<6x8xf32>
// CHEAP: %[[AGAIN:.*]] = nn.activation silu %[[LATE]] {nn.recomputed} : tensor<6x8xf32>
// CHEAP: nn.matmul %[[AGAIN]], %{{.*}} transpose_lhs
// WRONG: expected a recompute mode of none, cheap, full, got: most
func.func @loss(%table: tensor<5x4xf32> {nn.param = {name = "table"}},
                %w: tensor<4x8xf32> {nn.param = {name = "w"}},
                %head: tensor<8x5xf32> {nn.param = {name = "head"}},
                %tokens: tensor<6xi32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x4xf32> -> tensor<6x4xf32>
  %a = nn.matmul %x, %w : tensor<6x4xf32>, tensor<4x8xf32> -> tensor<6x8xf32>
  %h = nn.activation silu %a : tensor<6x8xf32>
  %logits = nn.matmul %h, %head : tensor<6x8xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %loss = nn.sum %each : tensor<6x1xf32>
  return %loss : tensor<f32>
}
