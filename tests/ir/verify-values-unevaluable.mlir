// An op that cannot be evaluated is an error, not a function left unchecked.
// RUN: not gradc-opt %s --canonicalize --verify-values 2>&1 | FileCheck %s

// CHECK: error: 'builtin.unrealized_conversion_cast' op can not be evaluated: it has no reference evaluation
func.func @unknown(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %x : tensor<8xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
