// RUN: gradc-opt %s --quantize-products --canonicalize --verify-values | FileCheck %s

// Two products share the numbers of what both read; the scales go with them.
// CHECK-LABEL: func.func @two_readers(
// CHECK: %[[X:.*]] = nn.quantize %arg0 by %arg2 : tensor<4x8xbf16> to tensor<4x8xf8E4M3FN>
// CHECK: %[[W:.*]] = nn.quantize %arg1 by %arg3 : tensor<8x8xf32> to tensor<8x8xf8E5M2>
// CHECK: nn.matmul %[[X]], %[[W]] scales %arg2, %arg3 : tensor<4x8xf8E4M3FN>, tensor<8x8xf8E5M2> -> tensor<4x8xbf16>
// CHECK: nn.matmul %[[X]], %[[X]] transpose_lhs scales %arg2, %arg2
// CHECK-NOT: nn.fake_quantize
func.func @two_readers(%x: tensor<4x8xbf16>, %w: tensor<8x8xf32>, %sx: tensor<f32>, %sw: tensor<f32>) -> (tensor<4x8xbf16>, tensor<8x8xbf16>) {
  %0 = nn.fake_quantize %x by %sx in f8E4M3FN : tensor<4x8xbf16> to tensor<4x8xbf16>
  %1 = nn.fake_quantize %w by %sw in f8E5M2 : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = nn.matmul %0, %1 : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %3 = nn.matmul %0, %0 transpose_lhs : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<8x8xbf16>
  return %2, %3 : tensor<4x8xbf16>, tensor<8x8xbf16>
}

// What only one operand is, and what other ops read, stays as it is; the mark of a gradient goes.
// CHECK-LABEL: func.func @other_readers(
// CHECK: %[[X:.*]] = nn.fake_quantize
// CHECK: %[[Y:.*]] = nn.matmul %[[X]], %arg1 : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
// CHECK: nn.add %[[Y]], %[[X]]
// CHECK-NOT: nn.quantize_gradient
func.func @other_readers(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %s: tensor<f32>) -> tensor<4x8xbf16> {
  %0 = nn.fake_quantize %x by %s in f8E4M3FN : tensor<4x8xbf16> to tensor<4x8xbf16>
  %1 = nn.matmul %0, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %2 = nn.quantize_gradient %1 in f8E5M2 : tensor<4x8xbf16>
  %3 = nn.add %2, %0 : tensor<4x8xbf16>, tensor<4x8xbf16>
  return %3 : tensor<4x8xbf16>
}
