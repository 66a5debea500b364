// RUN: gradc-opt %s --autodiff --training-step --canonicalize | FileCheck %s
// RUN: gradc-opt %s --autodiff --training-step="grad-accum=3 optimizer=sgd" --canonicalize | FileCheck %s --check-prefix ACCUM

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: {nn.param = {name = "w"}, nn.slot = {name = "w", role = "parameter"}}
// CHECK-SAME: nn.slot = {name = "w", role = "optimizer", slot = "exp_avg"}
// CHECK-SAME: nn.slot = {name = "train_step.tokens", role = "input"}
// CHECK-SAME: nn.slot = {name = "train_step.clip_grad", role = "scalar"}
// CHECK-SAME: -> (tensor<5x5xf32> {nn.slot = {name = "w", role = "parameter"}}
// CHECK: %[[VALID:.*]] = nn.count_valid
// CHECK: nn.div %{{.*}}, %[[VALID]]
// CHECK: nn.square_sums
// CHECK: %[[NORM:.*]] = nn.sqrt
// CHECK: %[[CLIP:.*]] = nn.clip_coefficient %[[NORM]]
// CHECK: nn.adamw {{.*}}%[[CLIP]]{{.*}} {decay = true}
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: nn.slot = {name = "w", role = "gradient"}
// CHECK-LABEL: func.func @eval_loss(
// CHECK-NOT: func.func @loss

// Gradients are carried in f32 over the microbatches; the loss is divided by the labels of all.
// ACCUM-LABEL: func.func @train_step(
// ACCUM: %[[ALL:.*]] = nn.count_valid %{{.*}} : tensor<3x4xi32>
// ACCUM: nn.microbatches sliced(%{{.*}} : tensor<3x4xi32>, tensor<3x4xi32>) carried(%{{.*}}, %{{.*}} : tensor<f32>, tensor<5x5xf32>)
// ACCUM: nn.yield
// ACCUM: nn.sgd
func.func @loss(%w: tensor<5x5xf32> {nn.param = {name = "w"}}, %tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %logits = nn.embedding %tokens, %w : tensor<4xi32>, tensor<5x5xf32> -> tensor<4x5xf32>
  %loss, %lse = nn.cross_entropy %logits, %targets : tensor<4x5xf32>, tensor<4xi32> -> tensor<4x1xf32>, tensor<4x1xf32>
  %sum = nn.sum %loss : tensor<4x1xf32>
  return %sum : tensor<f32>
}
