// RUN: gradc-opt %s --precision=mode=fp8 --autodiff --quantize-products --canonicalize \
// RUN:   --training-step=optimizer=sgd --cse --canonicalize --verify-values | FileCheck %s
// RUN: gradc-opt %s --precision="mode=fp8 delayed-scaling" --autodiff --quantize-products --canonicalize \
// RUN:   --training-step="optimizer=sgd grad-accum=2" --cse --canonicalize --verify-values | FileCheck %s --check-prefix DELAYED

// A weight's fp8 numbers and scale are state, made of the updated weight; its gradient is f32. The
// head's copy is bf16.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[SCALE:[a-z0-9]*]]: tensor<f32> {nn.slot = {name = "w", role = "low_parameter", slot = "fp8_scale"}}
// CHECK-SAME: %[[NUMBERS:[a-z0-9]*]]: tensor<4x4xf8E4M3FN> {nn.slot = {name = "w", role = "low_parameter", slot = "fp8"}}
// CHECK-SAME: tensor<4x5xbf16> {nn.slot = {name = "head", role = "low_parameter"}}
// CHECK: %[[X:.*]] = nn.quantize %{{.*}} by %[[SX:.*]] : tensor<6x4xbf16> to tensor<6x4xf8E4M3FN>
// CHECK: nn.matmul %[[X]], %[[NUMBERS]] scales %[[SX]], %[[SCALE]] : {{.*}} -> tensor<6x4xbf16>
// CHECK: %[[DY:.*]] = nn.quantize %{{.*}} by %[[SDY:.*]] : tensor<6x4xbf16> to tensor<6x4xf8E5M2>
// CHECK-DAG: nn.matmul %[[DY]], %[[NUMBERS]] transpose_rhs scales %[[SDY]], %[[SCALE]] : {{.*}} -> tensor<6x4xf32>
// CHECK-DAG: nn.matmul %[[X]], %[[DY]] transpose_lhs scales %[[SX]], %[[SDY]] : {{.*}} -> tensor<4x4xf32>
// CHECK: nn.sgd
// CHECK: %[[NEW:.*]], %{{.*}} = nn.sgd %{{.*}} : (tensor<4x4xf32>
// CHECK: %[[AMAX:.*]] = nn.row_amax %[[NEW]]
// CHECK: %[[NEXT:.*]] = nn.scale_of_amax %[[AMAX]] for f8E4M3FN
// CHECK: nn.quantize %[[NEW]] by %[[NEXT]] : tensor<4x4xf32> to tensor<4x4xf8E4M3FN>
// CHECK-LABEL: func.func @low_parameters(
// CHECK: nn.row_amax
// CHECK: nn.quantize

// A step scales by the largest of a history, and puts the largest of its microbatches in front.
// DELAYED-LABEL: func.func @train_step(
// DELAYED-SAME: %[[HISTORY:[a-z0-9]*]]: tensor<1x16xf32> {nn.slot = {name = "w", role = "optimizer", slot = "input_amax"}}
// DELAYED-SAME: tensor<1x16xf32> {nn.slot = {name = "w", role = "optimizer", slot = "gradient_amax"}}
// DELAYED: %[[LARGEST:.*]] = nn.row_amax %[[HISTORY]] : tensor<1x16xf32> -> tensor<1x1xf32>
// DELAYED: %[[RECORD:.*]] = nn.reshape %[[LARGEST]]
// DELAYED: nn.microbatches
// DELAYED: nn.scale_of_amax %[[RECORD]] for f8E4M3FN : tensor<f32>
// DELAYED: nn.maximum
// DELAYED: nn.maximum
// DELAYED: %[[KEPT:.*]] = nn.slice %[[HISTORY]] at 0 : tensor<1x16xf32> to tensor<1x15xf32>
// DELAYED: nn.concat %{{.*}}, %[[KEPT]] : tensor<1x1xf32>, tensor<1x15xf32> to tensor<1x16xf32>

// Evaluation reads no history.
// DELAYED-LABEL: func.func @eval_loss(
// DELAYED-NOT: tensor<1x16xf32>
// DELAYED: %[[OWN:.*]] = nn.row_amax %{{.*}} : tensor<6x4xbf16>
// DELAYED: nn.scale_of_amax %[[OWN]] for f8E4M3FN : tensor<6x1xf32>
func.func @loss(%table: tensor<5x4xf32> {nn.param = {name = "table"}}, %w: tensor<4x4xf32> {nn.param = {name = "w"}},
                %head: tensor<4x5xf32> {nn.param = {name = "head"}}, %tokens: tensor<6xi32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x4xf32> -> tensor<6x4xf32>
  %y = nn.matmul %x, %w : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
  %logits = nn.matmul %y, %head : tensor<6x4xf32>, tensor<4x5xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %loss = nn.sum %each : tensor<6x1xf32>
  return %loss : tensor<f32>
}
