// RUN: gradc-opt %s --absorb-sums --verify-values | FileCheck %s

// CHECK-LABEL: func.func @product_adds_to_product(
// CHECK: %[[FIRST:.*]] = nn.matmul %arg0, %arg1 :
// CHECK: %[[SECOND:.*]] = nn.matmul %arg0, %arg2 acc %[[FIRST]] : tensor<4x4xf32>
// CHECK: return %[[SECOND]]
func.func @product_adds_to_product(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.matmul %a, %c : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = nn.add %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @embedding_gradient_adds_to_product(
// CHECK: nn.embedding_grad {{.*}} acc
// CHECK-NOT: nn.add
func.func @embedding_gradient_adds_to_product(%t: tensor<3xi32>, %a: tensor<4x4xf32>, %d: tensor<3x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %a, %a transpose_rhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.embedding_grad %t, %d : tensor<3xi32>, tensor<3x4xf32> -> tensor<4x4xf32>
  %2 = nn.add %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// The gradient of a head's weight goes on summing up; that of its input is no such sum, be the
// shapes alike or not.
// CHECK-LABEL: func.func @head_adds_to_the_weight_gradient(
// CHECK: %[[SUM:.*]] = nn.embedding_grad
// CHECK: nn.linear_cross_entropy_grad %{{.*}} acc %[[SUM]] transpose_weight
// CHECK: nn.add
// CHECK-NOT: nn.add
func.func @head_adds_to_the_weight_gradient(%g: tensor<4x1xf32>, %x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %t: tensor<4xi32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = nn.embedding_grad %t, %x : tensor<4xi32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = nn.exp %x : tensor<4x4xf32>
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t transpose_weight : (tensor<4x1xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>)
  %1 = nn.add %a, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
  %2 = nn.add %b, %0#0 : tensor<4x4xf32>, tensor<4x4xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// A residual is read again later: adding in place would destroy it.
// CHECK-LABEL: func.func @residual_is_kept(
// CHECK: nn.add
func.func @residual_is_kept(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %h = nn.exp %x : tensor<4x4xf32>
  %0 = nn.matmul %h, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.add %h, %0 : tensor<4x4xf32>, tensor<4x4xf32>
  return %1, %h : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @argument_is_kept(
// CHECK: nn.add
func.func @argument_is_kept(%g: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %w, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.add %g, %0 : tensor<4x4xf32>, tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// Sums are kept in f32: in a narrow type each addition would be rounded.
// CHECK-LABEL: func.func @narrow_is_not_added_to(
// CHECK: nn.add
func.func @narrow_is_not_added_to(%a: tensor<4x4xbf16>, %b: tensor<4x4xbf16>) -> tensor<4x4xbf16> {
  %0 = nn.matmul %a, %b : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %1 = nn.matmul %b, %a : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %2 = nn.add %0, %1 : tensor<4x4xbf16>, tensor<4x4xbf16>
  return %2 : tensor<4x4xbf16>
}
