// RUN: gradc-opt %s --target=cuda:sm_80 --bias-gradients --verify-values | FileCheck %s
// RUN: gradc-opt %s --bias-gradients | FileCheck %s --check-prefix CPU

// CPU-NOT: nn.epilogue_matmul

// Weights of either layout.
// CHECK-LABEL: func.func @of_rhs(
// CHECK: %[[DW:.*]], %[[DB:.*]] = nn.epilogue_matmul %arg0, %arg1 transpose_lhs epilogue bias_gradient_rhs
// CHECK-NOT: nn.column_partials
// CHECK: return %[[DB]], %[[DW]]
func.func @of_rhs(%x: tensor<70x8xbf16>, %dy: tensor<70x16xbf16>) -> (tensor<16xf32>, tensor<8x16xf32>) {
  %p = nn.column_partials %dy : tensor<70x16xbf16> -> tensor<2x16xf32>
  %db = nn.fold_rows %p : tensor<2x16xf32> -> tensor<16xf32>
  %dw = nn.matmul %x, %dy transpose_lhs : tensor<70x8xbf16>, tensor<70x16xbf16> -> tensor<8x16xf32>
  return %db, %dw : tensor<16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: func.func @of_lhs(
// CHECK: nn.epilogue_matmul %arg1, %arg0 transpose_lhs acc %arg2 : tensor<16x8xf32> epilogue bias_gradient_lhs
// CHECK-NOT: nn.fold_rows
func.func @of_lhs(%x: tensor<70x8xf32>, %dy: tensor<70x16xf32>, %g: tensor<16x8xf32>) -> (tensor<16xf32>, tensor<16x8xf32>) {
  %p = nn.column_partials %dy : tensor<70x16xf32> -> tensor<2x16xf32>
  %db = nn.fold_rows %p : tensor<2x16xf32> -> tensor<16xf32>
  %dw = nn.matmul %dy, %x transpose_lhs acc %g : tensor<16x8xf32> : tensor<70x16xf32>, tensor<70x8xf32> -> tensor<16x8xf32>
  return %db, %dw : tensor<16xf32>, tensor<16x8xf32>
}

// The product multiplies along the other side; its result is narrower than the sum; the sum is
// needed before the product.
// CHECK-LABEL: func.func @along_columns(
// CHECK: nn.fold_rows
// CHECK-LABEL: func.func @narrow_result(
// CHECK: nn.fold_rows
// CHECK-LABEL: func.func @needed_before(
// CHECK: nn.fold_rows
// CHECK-NOT: nn.epilogue_matmul
func.func @along_columns(%w: tensor<8x16xf32>, %dy: tensor<70x16xf32>) -> (tensor<16xf32>, tensor<70x8xf32>) {
  %p = nn.column_partials %dy : tensor<70x16xf32> -> tensor<2x16xf32>
  %db = nn.fold_rows %p : tensor<2x16xf32> -> tensor<16xf32>
  %dx = nn.matmul %dy, %w transpose_rhs : tensor<70x16xf32>, tensor<8x16xf32> -> tensor<70x8xf32>
  return %db, %dx : tensor<16xf32>, tensor<70x8xf32>
}
func.func @narrow_result(%x: tensor<70x8xbf16>, %dy: tensor<70x16xbf16>) -> (tensor<16xf32>, tensor<8x16xbf16>) {
  %p = nn.column_partials %dy : tensor<70x16xbf16> -> tensor<2x16xf32>
  %db = nn.fold_rows %p : tensor<2x16xf32> -> tensor<16xf32>
  %dw = nn.matmul %x, %dy transpose_lhs : tensor<70x8xbf16>, tensor<70x16xbf16> -> tensor<8x16xbf16>
  return %db, %dw : tensor<16xf32>, tensor<8x16xbf16>
}
func.func @needed_before(%x: tensor<70x8xf32>, %dy: tensor<70x16xf32>) -> tensor<8x16xf32> {
  %p = nn.column_partials %dy : tensor<70x16xf32> -> tensor<2x16xf32>
  %db = nn.fold_rows %p : tensor<2x16xf32> -> tensor<16xf32>
  %y = nn.add %dy, %db : tensor<70x16xf32>, tensor<16xf32>
  %dw = nn.matmul %x, %dy transpose_lhs : tensor<70x8xf32>, tensor<70x16xf32> -> tensor<8x16xf32>
  %z = nn.matmul %x, %y transpose_lhs acc %dw : tensor<8x16xf32> : tensor<70x8xf32>, tensor<70x16xf32> -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}
