// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @look_up
func.func @look_up(%i: tensor<8xi32>, %t: tensor<97x64xf32>) -> tensor<8x64xf32> {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<8xi32>, tensor<97x64xf32> -> tensor<8x64xf32>
  %0 = nn.embedding %i, %t : tensor<8xi32>, tensor<97x64xf32> -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// CHECK-LABEL: @gradient
func.func @gradient(%i: tensor<8xi32>, %g: tensor<8x64xf32>) -> tensor<97x64xf32> {
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} : tensor<8xi32>, tensor<8x64xf32> -> tensor<97x64xf32>
  %0 = nn.embedding_grad %i, %g : tensor<8xi32>, tensor<8x64xf32> -> tensor<97x64xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} acc %{{.*}} : tensor<97x64xf32> : tensor<8xi32>, tensor<8x64xf32> -> tensor<97x64xf32>
  %1 = nn.embedding_grad %i, %g acc %0 : tensor<97x64xf32> : tensor<8xi32>, tensor<8x64xf32> -> tensor<97x64xf32>
  return %1 : tensor<97x64xf32>
}

// CHECK-LABEL: @narrow
func.func @narrow(%i: tensor<8xi32>, %t: tensor<97x64xf32>) -> tensor<97x64xf32> {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<8xi32>, tensor<97x64xf32> -> tensor<8x64xbf16>
  %0 = nn.embedding %i, %t : tensor<8xi32>, tensor<97x64xf32> -> tensor<8x64xbf16>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} : tensor<8xi32>, tensor<8x64xbf16> -> tensor<97x64xf32>
  %1 = nn.embedding_grad %i, %0 : tensor<8xi32>, tensor<8x64xbf16> -> tensor<97x64xf32>
  return %1 : tensor<97x64xf32>
}
