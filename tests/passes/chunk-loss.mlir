// RUN: gradc-opt %s --chunk-loss=rows=3 --verify-values -split-input-file | FileCheck %s
// RUN: gradc-opt %s --chunk-loss=rows=0 --verify-values -split-input-file | FileCheck %s --check-prefix WHOLE
// RUN: gradc-opt %s --chunk-loss --verify-values -split-input-file | FileCheck %s --check-prefix AUTO
// RUN: not gradc-opt %s --chunk-loss=rows=-2 -split-input-file 2>&1 | FileCheck %s --check-prefix NEGATIVE

// NEGATIVE: expected -1 or more rows of a chunk, got: -2

// Seven rows: two chunks of three and one of what is left, each reading its rows in their place.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: nn.explain = {loss = ["logits 7 x 9 in 3 chunks of 3 rows, the last of 1: 0.00 MiB at a time instead of 0.00 MiB (as asked for)"]}
// CHECK: %[[X0:.*]] = nn.slice %arg0 at row 0 : tensor<7x6xf32> to tensor<3x6xf32>
// CHECK: %[[L0:.*]] = nn.matmul %[[X0]], %arg1 transpose_rhs
// CHECK: %[[T0:.*]] = nn.slice %arg2 at row 0 : tensor<7xi32> to tensor<3xi32>
// CHECK: %[[LOSS0:.*]], %{{.*}} = nn.cross_entropy %[[L0]], %[[T0]]
// CHECK: nn.slice %arg0 at row 3
// CHECK: %[[LOSS1:.*]], %{{.*}} = nn.cross_entropy
// CHECK: nn.slice %arg0 at row 6 : tensor<7x6xf32> to tensor<1x6xf32>
// CHECK: %[[LOSS2:.*]], %{{.*}} = nn.cross_entropy
// CHECK: %[[LOSS:.*]] = nn.concat %[[LOSS0]], %[[LOSS1]], %[[LOSS2]] rows
// CHECK: return %[[LOSS]]

// WHOLE-LABEL: func.func @forward(
// WHOLE-SAME: logits 7 x 9 whole: 0.00 MiB (as asked for)
// WHOLE-NOT: nn.slice
// WHOLE: nn.matmul %arg0, %arg1 transpose_rhs
// WHOLE-NOT: nn.concat

// AUTO-LABEL: func.func @forward(
// AUTO-SAME: logits 7 x 9 whole: 0.00 MiB (auto: at most 64.00 MiB as f32)
func.func @forward(%x: tensor<7x6xf32>, %w: tensor<9x6xf32>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %loss = nn.linear_cross_entropy %x, %w, %t transpose_weight : tensor<7x6xf32>, tensor<9x6xf32>, tensor<7xi32> -> tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}

// -----

// Loss and gradients from one pass over the logits; the weight's gradient is summed up.
// CHECK-LABEL: func.func @gradients(
// CHECK: %[[G0:.*]] = nn.slice %arg0 at row 0 : tensor<6x1xf32> to tensor<3x1xf32>
// CHECK: %[[D0:.*]] = nn.cross_entropy_grad %[[G0]], %[[L0:.*]], %{{.*}}, %{{.*}}
// CHECK: %[[DX0:.*]] = nn.matmul %[[D0]], %arg2 transpose_rhs
// CHECK: %[[DW0:.*]] = nn.matmul %{{.*}}, %[[D0]] transpose_lhs acc %arg4
// CHECK: nn.matmul %{{.*}}, %arg2 :
// CHECK: %[[D1:.*]] = nn.cross_entropy_grad
// CHECK: %[[DX1:.*]] = nn.matmul %[[D1]], %arg2 transpose_rhs
// CHECK: %[[DW1:.*]] = nn.matmul %{{.*}}, %[[D1]] transpose_lhs acc %[[DW0]]
// CHECK: %[[DX:.*]] = nn.concat %[[DX0]], %[[DX1]] rows : tensor<3x5xf32>, tensor<3x5xf32> to tensor<6x5xf32>
// CHECK: %[[LOSS:.*]] = nn.concat %{{.*}}, %{{.*}} rows
// CHECK: return %[[DX]], %[[DW1]], %[[LOSS]]
func.func @gradients(%g: tensor<6x1xf32>, %x: tensor<6x5xf32>, %w: tensor<5x9xf32>, %t: tensor<6xi32>, %a: tensor<5x9xf32>) -> (tensor<6x5xf32>, tensor<5x9xf32>, tensor<6x1xf32>) {
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t acc %a : (tensor<6x1xf32>, tensor<6x5xf32>, tensor<5x9xf32>, tensor<6xi32>, tensor<5x9xf32>) -> (tensor<6x5xf32>, tensor<5x9xf32>, tensor<6x1xf32>)
  return %0#0, %0#1, %0#2 : tensor<6x5xf32>, tensor<5x9xf32>, tensor<6x1xf32>
}

// -----

// Narrow operands: sums in f32, rounded once. Logits whose loss is not read have been computed
// before; they are no FLOPs of the model.
// CHECK-LABEL: func.func @narrow(
// CHECK: nn.matmul {{.*}} transpose_rhs {nn.recomputed} : tensor<3x5xbf16>, tensor<9x5xbf16> -> tensor<3x9xbf16>
// CHECK: %[[D0:.*]] = nn.cross_entropy_grad
// CHECK: nn.matmul %[[D0]], %arg2 : tensor<3x9xbf16>, tensor<9x5xbf16> -> tensor<3x5xf32>
// CHECK: %[[DW0:.*]] = nn.matmul %[[D0]], %{{.*}} transpose_lhs : tensor<3x9xbf16>, tensor<3x5xbf16> -> tensor<9x5xf32>
// CHECK: %[[DW1:.*]] = nn.matmul %{{.*}} transpose_lhs acc %[[DW0]]
// CHECK: nn.cast %[[DW1]] : tensor<9x5xf32> to tensor<9x5xbf16>
func.func @narrow(%g: tensor<6x1xf32>, %x: tensor<6x5xbf16>, %w: tensor<9x5xbf16>, %t: tensor<6xi32>) -> (tensor<6x5xf32>, tensor<9x5xbf16>) {
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t transpose_weight : (tensor<6x1xf32>, tensor<6x5xbf16>, tensor<9x5xbf16>, tensor<6xi32>) -> (tensor<6x5xf32>, tensor<9x5xbf16>, tensor<6x1xf32>)
  return %0#0, %0#1 : tensor<6x5xf32>, tensor<9x5xbf16>
}

// -----

// Other logits stay as they are.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: logits 7 x 9 whole: no product of its operands' type that the loss alone reads
// CHECK-NOT: nn.slice
func.func @whole(%l: tensor<7x9xf32>, %t: tensor<7xi32>) -> tensor<7x1xf32> {
  %loss, %lse = nn.cross_entropy %l, %t : tensor<7x9xf32>, tensor<7xi32> -> tensor<7x1xf32>, tensor<7x1xf32>
  return %loss : tensor<7x1xf32>
}
