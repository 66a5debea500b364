// RUN: gradc-opt %s --autodiff --canonicalize --training-step=optimizer=sgd --cse --canonicalize \
// RUN:   --weight-panels --verify-values | FileCheck %s
// RUN: gradc-opt %s --precision=mode=bf16 --autodiff --canonicalize --training-step=optimizer=sgd \
// RUN:   --cse --canonicalize --weight-panels | FileCheck %s --check-prefix LOW

// Panels of both orders stand behind the weights and are made right behind the update; the table,
// which the embedding reads as it is, stays a parameter as well.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[TABLE:[a-z0-9]*]]: tensor<5x4xf32> {nn.param = {name = "table"}
// CHECK-SAME: %[[COLUMNS:[a-z0-9]*]]: tensor<5x4xf32, #nn.panels<{{[^>]*}}>> {nn.slot = {name = "table", role = "low_parameter", slot = "panels"}}
// CHECK-SAME: %[[ROWS:[a-z0-9]*]]: tensor<5x4xf32, #nn.panels<{{[^>]*}}transposed = true>> {nn.slot = {name = "table", role = "low_parameter", slot = "panels_transposed"}}
// CHECK-SAME: name = "w", role = "low_parameter", slot = "panels"
// CHECK: nn.embedding %{{.*}}, %[[TABLE]]
// CHECK: nn.matmul %{{.*}}, %[[ROWS]] transpose_rhs
// CHECK: nn.matmul %{{.*}}, %[[COLUMNS]] : tensor<6x5xf32>
// CHECK: %[[NEW:[a-z0-9_]*]], %{{[a-z0-9_]*}} = nn.sgd %[[TABLE]]
// CHECK-NEXT: %[[PACKED:.*]]:2 = nn.pack_panels %[[NEW]]
// CHECK: return %{{.*}}%[[PACKED]]#0, %[[PACKED]]#1
// CHECK-LABEL: func.func @eval_loss(
// CHECK-SAME: slot = "panels_transposed"
// CHECK-LABEL: func.func @low_parameters(
// CHECK: nn.pack_panels %arg{{[01]}}
// CHECK: nn.pack_panels %arg{{[01]}}

// Panels of a narrow weight are made of its cast, of which nothing else is kept.
// LOW-LABEL: func.func @train_step(
// LOW-NOT: role = "low_parameter"}
// LOW-SAME: tensor<5x4xbf16, #nn.panels<{{[^>]*}}>> {nn.slot = {name = "table", role = "low_parameter", slot = "panels_transposed"}}
// LOW-NOT: role = "low_parameter"}
// LOW: %[[CAST:.*]] = nn.cast %{{[a-z0-9_]*}} : tensor<5x4xf32> to tensor<5x4xbf16>
// LOW-NEXT: nn.pack_panels %[[CAST]]
// LOW-LABEL: func.func @low_parameters(
// LOW-NOT: role = "low_parameter"}
// LOW: nn.cast
// LOW-NEXT: nn.pack_panels
func.func @loss(%table: tensor<5x4xf32> {nn.param = {name = "table"}}, %w: tensor<4x4xf32> {nn.param = {name = "w"}},
                %tokens: tensor<6xi32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x4xf32> -> tensor<6x4xf32>
  %y = nn.matmul %x, %w : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
  %logits = nn.matmul %y, %table transpose_rhs : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %loss = nn.sum %each : tensor<6x1xf32>
  return %loss : tensor<f32>
}
