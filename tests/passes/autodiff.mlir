// RUN: gradc-opt %s --autodiff --canonicalize --verify-values | FileCheck %s

// The backward of a linear model: the weight's gradient is xᵀ·dlogits, the bias' a sum over rows.
// CHECK-LABEL: func.func @loss(
// CHECK-LABEL: func.func @loss_and_gradients(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<6x9xf32> {nn.param = {name = "w"}}
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<f32>) -> (tensor<f32>, tensor<12x6xf32>, tensor<6x9xf32>, tensor<9xf32>)
// CHECK: %[[X:.*]] = nn.embedding
// CHECK: %[[LOGITS:.*]] = nn.add
// CHECK: %[[D:.*]] = nn.broadcast %[[SEED]]
// CHECK: %[[DLOGITS:.*]] = nn.cross_entropy_grad %[[D]], %[[LOGITS]]
// CHECK: nn.column_partials %[[DLOGITS]]
// CHECK: %[[DB:.*]] = nn.fold_rows
// CHECK: %[[DX:.*]] = nn.matmul %[[DLOGITS]], %[[W]] transpose_rhs
// CHECK: %[[DW:.*]] = nn.matmul %[[X]], %[[DLOGITS]] transpose_lhs
// CHECK: %[[DE:.*]] = nn.embedding_grad %{{.*}}, %[[DX]]
// CHECK: return %{{.*}}, %[[DE]], %[[DW]], %[[DB]]
func.func @loss(%e: tensor<12x6xf32> {nn.param = {name = "e"}}, %w: tensor<6x9xf32> {nn.param = {name = "w"}},
                %b: tensor<9xf32> {nn.param = {name = "b"}}, %tokens: tensor<7xi32>, %targets: tensor<7xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %e : tensor<7xi32>, tensor<12x6xf32> -> tensor<7x6xf32>
  %h = nn.matmul %x, %w : tensor<7x6xf32>, tensor<6x9xf32> -> tensor<7x9xf32>
  %logits = nn.add %h, %b : tensor<7x9xf32>, tensor<9xf32>
  %loss, %lse = nn.cross_entropy %logits, %targets : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  %sum = nn.sum %loss : tensor<7x1xf32>
  return %sum : tensor<f32>
}
