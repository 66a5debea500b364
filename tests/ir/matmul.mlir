// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @plain
func.func @plain(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) -> tensor<8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  %0 = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}

// CHECK-LABEL: @transposed_rhs
func.func @transposed_rhs(%x: tensor<8x64xf32>, %w: tensor<96x64xf32>) -> tensor<8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_rhs : tensor<8x64xf32>, tensor<96x64xf32> -> tensor<8x96xf32>
  %0 = nn.matmul %x, %w transpose_rhs : tensor<8x64xf32>, tensor<96x64xf32> -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}

// CHECK-LABEL: @batches_both_transposed
func.func @batches_both_transposed(%x: tensor<3x64x8xf32>, %w: tensor<3x96x64xf32>) -> tensor<3x8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_lhs transpose_rhs : tensor<3x64x8xf32>, tensor<3x96x64xf32> -> tensor<3x8x96xf32>
  %0 = nn.matmul %x, %w transpose_lhs transpose_rhs : tensor<3x64x8xf32>, tensor<3x96x64xf32> -> tensor<3x8x96xf32>
  return %0 : tensor<3x8x96xf32>
}

// CHECK-LABEL: @accumulated
func.func @accumulated(%x: tensor<8x64xf32>, %dy: tensor<8x96xf32>, %g: tensor<64x96xf32>) -> tensor<64x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_lhs acc %{{.*}} : tensor<64x96xf32> : tensor<8x64xf32>, tensor<8x96xf32> -> tensor<64x96xf32>
  %0 = nn.matmul %x, %dy transpose_lhs acc %g : tensor<64x96xf32> : tensor<8x64xf32>, tensor<8x96xf32> -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}

// CHECK-LABEL: @narrow
func.func @narrow(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>, %c: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
  %0 = nn.matmul %x, %w : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} acc %{{.*}} : tensor<8x96xf32> : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf32>
  %1 = nn.matmul %x, %w acc %c : tensor<8x96xf32> : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf32>
  return %1 : tensor<8x96xf32>
}

// CHECK-LABEL: @rounded_operands
func.func @rounded_operands(%x: tensor<8x64xf32>, %w: tensor<96x64xf32>) -> tensor<8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_rhs tf32 : tensor<8x64xf32>, tensor<96x64xf32> -> tensor<8x96xf32>
  %0 = nn.matmul %x, %w transpose_rhs tf32 : tensor<8x64xf32>, tensor<96x64xf32> -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}

// CHECK-LABEL: @float8
func.func @float8(%x: tensor<8x64xf8E5M2>, %w: tensor<64x96xf8E4M3FN>, %s: tensor<f32>, %c: tensor<8x96xf32>) -> tensor<8x96xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} scales %[[S:.*]], %[[S]] : tensor<8x64xf8E5M2>, tensor<64x96xf8E4M3FN> -> tensor<8x96xbf16>
  %0 = nn.matmul %x, %w scales %s, %s : tensor<8x64xf8E5M2>, tensor<64x96xf8E4M3FN> -> tensor<8x96xbf16>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} scales %[[S]], %[[S]] acc %{{.*}} : tensor<8x96xf32> : tensor<8x64xf8E5M2>
  %1 = nn.matmul %x, %w scales %s, %s acc %c : tensor<8x96xf32> : tensor<8x64xf8E5M2>, tensor<64x96xf8E4M3FN> -> tensor<8x96xf32>
  return %1 : tensor<8x96xf32>
}
