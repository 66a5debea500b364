// --verify-values says what it compared and passes where a pass keeps every value.
// RUN: gradc-opt %s --canonicalize --verify-values 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REPORT < %t.err
// REPORT: verify-values: pass 'canonicalize': 2 functions compared

// CHECK-LABEL: @double_negation
// CHECK-NOT: nn.neg
func.func @double_negation(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.neg %x : tensor<8xf32>
  %1 = nn.neg %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: @product_of_a_transpose
// CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_lhs
func.func @product_of_a_transpose(%x: tensor<8x4xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.transpose %x : tensor<8x4xf32> to tensor<4x8xf32>
  %1 = nn.matmul %0, %w : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
