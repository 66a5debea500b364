// Gradients of slices: concats with zeros, whose sum is one concat.
// RUN: gradc-opt %s --canonicalize --verify-values | FileCheck %s

// CHECK-LABEL: @slices_of_columns
// CHECK-NEXT: %[[ALL:.*]] = nn.concat %arg0, %arg1, %arg2 :
// CHECK-NEXT: return %[[ALL]]
func.func @slices_of_columns(%q: tensor<2x3xf32>, %k: tensor<2x1xf32>, %v: tensor<2x2xf32>) -> tensor<2x6xf32> {
  %zero1 = nn.constant dense<0.0> : tensor<2x3xf32>
  %zero2 = nn.constant dense<0.0> : tensor<2x2xf32>
  %zero3 = nn.constant dense<0.0> : tensor<2x4xf32>
  %0 = nn.concat %q, %zero1 : tensor<2x3xf32>, tensor<2x3xf32> to tensor<2x6xf32>
  %1 = nn.concat %zero1, %k, %zero2 : tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x2xf32> to tensor<2x6xf32>
  %2 = nn.concat %zero3, %v : tensor<2x4xf32>, tensor<2x2xf32> to tensor<2x6xf32>
  %3 = nn.add %2, %0 : tensor<2x6xf32>, tensor<2x6xf32>
  %4 = nn.add %3, %1 : tensor<2x6xf32>, tensor<2x6xf32>
  return %4 : tensor<2x6xf32>
}

// What no slice reads stays zero.
// CHECK-LABEL: @slices_of_rows
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<1x2xf32>
// CHECK-NEXT: nn.concat %arg0, %[[ZERO]], %arg1 rows :
func.func @slices_of_rows(%x: tensor<2x2xf32>, %y: tensor<1x2xf32>) -> tensor<4x2xf32> {
  %zero1 = nn.constant dense<0.0> : tensor<2x2xf32>
  %zero2 = nn.constant dense<0.0> : tensor<3x2xf32>
  %0 = nn.concat %x, %zero1 rows : tensor<2x2xf32>, tensor<2x2xf32> to tensor<4x2xf32>
  %1 = nn.concat %zero2, %y rows : tensor<3x2xf32>, tensor<1x2xf32> to tensor<4x2xf32>
  %2 = nn.add %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// CHECK-LABEL: @slices_that_overlap
// CHECK: nn.add
func.func @slices_that_overlap(%x: tensor<2x3xf32>, %y: tensor<2x2xf32>) -> tensor<2x4xf32> {
  %zero1 = nn.constant dense<0.0> : tensor<2x1xf32>
  %zero2 = nn.constant dense<0.0> : tensor<2x2xf32>
  %0 = nn.concat %x, %zero1 : tensor<2x3xf32>, tensor<2x1xf32> to tensor<2x4xf32>
  %1 = nn.concat %zero2, %y : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x4xf32>
  %2 = nn.add %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
