// RUN: gradc-opt %s --target=cuda:sm_90 --quantize-products --canonicalize --verify-values | FileCheck %s
// RUN: gradc-opt %s --target=cuda:sm_80 --quantize-products --canonicalize | FileCheck %s --check-prefix OLDER

// GPUs before sm_89 have no fp8 products: these stay of bf16, with the values that fp8 has.
// OLDER-NOT: nn.quantize

// Operands that do not lie along the inner dimension are read from a transposed copy, made once.
// CHECK-LABEL: func.func @copies(
// CHECK: %[[X:.*]] = nn.quantize %arg0 by %arg2
// CHECK: %[[XT:.*]] = nn.transposed_copy %[[X]] : tensor<32x16xf8E4M3FN> to tensor<16x32xf8E4M3FN>
// CHECK: %[[W:.*]] = nn.quantize %arg1 by %arg3
// CHECK: %[[WT:.*]] = nn.transposed_copy %[[W]] : tensor<16x48xf8E5M2> to tensor<48x16xf8E5M2>
// CHECK: nn.matmul %[[X]], %[[WT]] transpose_rhs scales
// CHECK: nn.matmul %[[XT]], %[[XT]] transpose_rhs scales
// CHECK-NOT: transposed_copy
func.func @copies(%x: tensor<32x16xbf16>, %w: tensor<16x48xf32>, %sx: tensor<f32>, %sw: tensor<f32>) -> (tensor<32x48xbf16>, tensor<16x16xbf16>) {
  %0 = nn.fake_quantize %x by %sx in f8E4M3FN : tensor<32x16xbf16> to tensor<32x16xbf16>
  %1 = nn.fake_quantize %w by %sw in f8E5M2 : tensor<16x48xf32> to tensor<16x48xbf16>
  %2 = nn.matmul %0, %1 : tensor<32x16xbf16>, tensor<16x48xbf16> -> tensor<32x48xbf16>
  %3 = nn.matmul %0, %0 transpose_lhs : tensor<32x16xbf16>, tensor<32x16xbf16> -> tensor<16x16xbf16>
  return %2, %3 : tensor<32x48xbf16>, tensor<16x16xbf16>
}

// As the library wants it; and of a size that it does not take.
// CHECK-LABEL: func.func @as_they_lie(
// CHECK-NOT: transposed_copy
// CHECK: nn.matmul %{{.*}}, %{{.*}} transpose_rhs scales
// CHECK: nn.matmul %{{.*}}, %{{.*}} : tensor<8x16xbf16>, tensor<16x48xbf16> -> tensor<8x48xbf16>
func.func @as_they_lie(%x: tensor<32x16xbf16>, %w: tensor<48x16xf32>, %y: tensor<8x16xbf16>, %v: tensor<16x48xbf16>, %s: tensor<f32>) -> (tensor<32x48xbf16>, tensor<8x48xbf16>) {
  %0 = nn.fake_quantize %x by %s in f8E4M3FN : tensor<32x16xbf16> to tensor<32x16xbf16>
  %1 = nn.fake_quantize %w by %s in f8E4M3FN : tensor<48x16xf32> to tensor<48x16xbf16>
  %2 = nn.matmul %0, %1 transpose_rhs : tensor<32x16xbf16>, tensor<48x16xbf16> -> tensor<32x48xbf16>
  %3 = nn.fake_quantize %y by %s in f8E4M3FN : tensor<8x16xbf16> to tensor<8x16xbf16>
  %4 = nn.fake_quantize %v by %s in f8E4M3FN : tensor<16x48xbf16> to tensor<16x48xbf16>
  %5 = nn.matmul %3, %4 : tensor<8x16xbf16>, tensor<16x48xbf16> -> tensor<8x48xbf16>
  return %2, %5 : tensor<32x48xbf16>, tensor<8x48xbf16>
}
