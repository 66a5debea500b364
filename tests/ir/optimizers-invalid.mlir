// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @adamw_gradient(%p: tensor<8x6xf32>, %g: tensor<6xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.adamw' op expected gradient of shape 8x6, got: 6}}
  %0:3 = nn.adamw %p, %g, %p, %p, %s, %s, %s, %s, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>)
  return
}

// -----

func.func @sgd_state(%p: tensor<8x6xf32>, %m: tensor<2x4x6xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.sgd' op expected optimizer state of shape 8x6, got: 2x4x6}}
  %0:2 = nn.sgd %p, %p, %m, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<2x4x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @lion_gradient(%p: tensor<8x6xf32>, %g: tensor<f32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.lion' op expected gradient of shape 8x6, got: scalar}}
  %0:2 = nn.lion %p, %g, %p, %s, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<f32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<8x6xf32>)
  return
}

// -----

func.func @learning_rate(%p: tensor<8x6xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{'nn.sgd' op operand #3 must be 0D tensor of 32-bit float values, but got 'tensor<1xf32>'}}
  %0:2 = nn.sgd %p, %p, %p, %s, %s, %s, %s {decay = true} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>)
  return
}
