// RUN: gradc-opt %s --fusion --verify-values | FileCheck %s
// RUN: gradc-opt %s --fusion="enable=false" --verify-values | FileCheck %s --check-prefix OFF

// CHECK-LABEL: func.func @residual_and_norm(
// CHECK: nn.fused
// CHECK: nn.add
// CHECK: nn.layer_norm
// CHECK: nn.yield
// CHECK-NOT: nn.fused
// OFF-LABEL: func.func @residual_and_norm(
// OFF: nn.fused
// OFF: nn.fused
func.func @residual_and_norm(%x: tensor<6x8xf32>, %r: tensor<6x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %s = nn.add %x, %r : tensor<6x8xf32>, tensor<6x8xf32>
  %y, %mean, %rstd = nn.layer_norm %s, %w, %b eps 1.0e-5 : tensor<6x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<6x1xf32>
  return %s, %y : tensor<6x8xf32>, tensor<6x8xf32>
}

// The product needs all of the activation before the sum can be formed.
// CHECK-LABEL: func.func @product_stands_between(
// CHECK: nn.fused
// CHECK: nn.matmul
// CHECK: nn.fused
func.func @product_stands_between(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.activation gelu %x : tensor<8x8xf32>
  %m = nn.matmul %a, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = nn.add %a, %m : tensor<8x8xf32>, tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// Siblings: the gradient and its sum over rows read the same matrices.
// CHECK-LABEL: func.func @siblings(
// CHECK: nn.fused
// CHECK-DAG: nn.activation_grad
// CHECK-DAG: nn.column_partials
// CHECK: nn.yield
// CHECK: nn.fold_rows
func.func @siblings(%d: tensor<70x8xf32>, %x: tensor<70x8xf32>) -> (tensor<70x8xf32>, tensor<8xf32>) {
  %g = nn.activation_grad silu %d, %x : tensor<70x8xf32>
  %p = nn.column_partials %g : tensor<70x8xf32> -> tensor<2x8xf32>
  %s = nn.fold_rows %p : tensor<2x8xf32> -> tensor<8xf32>
  return %g, %s : tensor<70x8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @other_columns_stay_apart(
// CHECK: nn.fused
// CHECK: nn.fused
func.func @other_columns_stay_apart(%x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<4x12xf32>) {
  %e = nn.exp %x : tensor<6x8xf32>
  %r = nn.reshape %e : tensor<6x8xf32> to tensor<4x12xf32>
  %n = nn.neg %r : tensor<4x12xf32>
  return %e, %n : tensor<6x8xf32>, tensor<4x12xf32>
}

// The sum depends on the exponential by way of a cluster that began before it: the negation and the
// first sum are one kernel, which reads the exponential's product.
// CHECK-LABEL: func.func @an_earlier_cluster_stands_between(
// CHECK: nn.fused
// CHECK: nn.exp
// CHECK-NEXT: nn.yield
// CHECK: nn.fused
// CHECK: nn.neg
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield
// CHECK: nn.fused
// CHECK: nn.add
// CHECK-NEXT: nn.yield
func.func @an_earlier_cluster_stands_between(%p: tensor<4x16xf32>, %q: tensor<4x32xf32>, %w: tensor<32x16xf32>, %v: tensor<16x32xf32>) -> (tensor<4x16xf32>, tensor<4x32xf32>) {
  %n = nn.neg %p : tensor<4x16xf32>
  %e = nn.exp %q : tensor<4x32xf32>
  %m = nn.matmul %e, %w : tensor<4x32xf32>, tensor<32x16xf32> -> tensor<4x16xf32>
  %s = nn.add %n, %m : tensor<4x16xf32>, tensor<4x16xf32>
  %k = nn.matmul %n, %v : tensor<4x16xf32>, tensor<16x32xf32> -> tensor<4x32xf32>
  %t = nn.add %e, %k : tensor<4x32xf32>, tensor<4x32xf32>
  return %s, %t : tensor<4x16xf32>, tensor<4x32xf32>
}

// The first product joins the activation, which the matrix product reads, and it reads the sum: so the
// second may not join the sum, though the matrix product that stands between ends before it.
// CHECK-LABEL: @a_cluster_that_reaches_back
// CHECK: nn.row_sum
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK: nn.mul
func.func @a_cluster_that_reaches_back(%p: tensor<8x16xf32>, %w: tensor<16x4xf32>, %z: tensor<8x4xf32>)
    -> (tensor<8x16xf32>, tensor<8x4xf32>) {
  %b1 = nn.activation gelu %p : tensor<8x16xf32>
  %a = nn.matmul %b1, %w : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32>
  %t1 = nn.row_sum %z : tensor<8x4xf32> -> tensor<8x1xf32>
  %b2 = nn.mul %b1, %t1 : tensor<8x16xf32>, tensor<8x1xf32>
  %op = nn.mul %a, %t1 : tensor<8x4xf32>, tensor<8x1xf32>
  return %b2, %op : tensor<8x16xf32>, tensor<8x4xf32>
}
