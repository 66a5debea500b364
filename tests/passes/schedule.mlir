// RUN: gradc-opt %s --schedule --verify-values | FileCheck %s

// What only reads arguments moves down to its first use; what reads a computed value stays.
// CHECK-LABEL: func.func @sinks_what_holds_nothing(
// CHECK-NEXT: %[[H:.*]] = nn.exp %arg0
// CHECK-NEXT: %[[M:.*]] = nn.matmul %[[H]], %[[H]]
// CHECK-NEXT: %[[L:.*]] = nn.tanh %arg1
// CHECK-NEXT: nn.add %[[M]], %[[L]]
func.func @sinks_what_holds_nothing(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %late = nn.tanh %y : tensor<4x4xf32>
  %h = nn.exp %x : tensor<4x4xf32>
  %m = nn.matmul %h, %h : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.add %m, %late : tensor<4x4xf32>, tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
