// RUN: gradc-opt %s --precision=mode=bf16 | FileCheck %s --check-prefix=BF16
// RUN: gradc-opt %s --precision=mode=tf32 | FileCheck %s --check-prefix=TF32
// RUN: not gradc-opt %s --precision=mode=fp4 2>&1 | FileCheck %s --check-prefix=WRONG

// Products run low; a bias stays f32; the residual stream, of f32, makes the branch wide again; a
// value is cast once for its two readers; the loss is of f32.
// BF16-LABEL: func.func @f
// BF16-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8xf32>)
// BF16-DAG: %[[WL:.*]] = nn.cast %[[W]] : tensor<8x8xf32> to tensor<8x8xbf16>
// BF16-DAG: %[[XL:.*]] = nn.cast %[[X]] : tensor<4x8xf32> to tensor<4x8xbf16>
// BF16: %[[P:.*]] = nn.matmul %[[XL]], %[[WL]] : {{.*}} -> tensor<4x8xbf16>
// BF16: %[[A:.*]] = nn.add %[[P]], %[[B]] : tensor<4x8xbf16>, tensor<8xf32>
// BF16: nn.matmul %[[XL]], %[[WL]] transpose_rhs
// BF16: %[[WIDE:.*]] = nn.cast %{{.*}} : tensor<4x8xbf16> to tensor<4x8xf32>
// BF16: nn.add %[[X]], %[[WIDE]] : tensor<4x8xf32>
// BF16: nn.row_sum {{.*}} : tensor<4x8xf32> -> tensor<4x1xf32>
// TF32-COUNT-2: nn.matmul {{.*}} tf32
// TF32-NOT: bf16
// WRONG: expected a precision of fp32, tf32, bf16, fp16, fp8, got: fp4
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x1xf32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.add %0, %b : tensor<4x8xf32>, tensor<8xf32>
  %2 = nn.matmul %x, %w transpose_rhs : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = nn.mul %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
  %4 = nn.add %x, %3 : tensor<4x8xf32>, tensor<4x8xf32>
  %5 = nn.row_sum %4 : tensor<4x8xf32> -> tensor<4x1xf32>
  return %5 : tensor<4x1xf32>
}

// A head that is one op with its loss reads narrow operands, too, and gives f32.
// BF16-LABEL: func.func @head
// BF16: nn.linear_cross_entropy %{{.*}}, %{{.*}}, %arg2 : tensor<4x8xbf16>, tensor<8x9xbf16>, tensor<4xi32> -> tensor<4x1xf32>
// TF32-LABEL: func.func @head
// TF32: nn.linear_cross_entropy %arg0, %arg1, %arg2 tf32 : tensor<4x8xf32>
func.func @head(%x: tensor<4x8xf32>, %w: tensor<8x9xf32>, %t: tensor<4xi32>) -> tensor<4x1xf32> {
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<4x8xf32>, tensor<8x9xf32>, tensor<4xi32> -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}
