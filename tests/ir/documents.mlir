// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @documents
func.func @documents(%tokens: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  // CHECK: nn.documents %{{.*}} seq 4 separator 0 : tensor<8xi32>
  %first, %positions = nn.documents %tokens seq 4 separator 0 : tensor<8xi32>
  return %first, %positions : tensor<8xi32>, tensor<8xi32>
}
