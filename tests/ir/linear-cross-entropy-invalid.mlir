// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @input_rank(%x: tensor<2x4x64xf32>, %w: tensor<64x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected input of rank 2, got: 3}}
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<2x4x64xf32>, tensor<64x97xf32>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @weight_rank(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected weight of rank 2, got: 1}}
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<8x64xf32>, tensor<64xf32>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @weight_type(%x: tensor<8x64xf32>, %w: tensor<64x97xbf16>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected weight to have the element type of input, 'f32', got: 'bf16'}}
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<8x64xf32>, tensor<64x97xbf16>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @features(%x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected an inner dimension of weight equal to that of input, 64, got: 97}}
  %0 = nn.linear_cross_entropy %x, %w, %t transpose_weight : tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @narrow_tf32(%x: tensor<8x64xbf16>, %w: tensor<64x97xbf16>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected operands of f32 with tf32, got: 'bf16'}}
  %0 = nn.linear_cross_entropy %x, %w, %t tf32 : tensor<8x64xbf16>, tensor<64x97xbf16>, tensor<8xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @number_of_targets(%x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %t: tensor<7xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected targets of shape 8, got: 7}}
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<8x64xf32>, tensor<64x97xf32>, tensor<7xi32> -> tensor<8x1xf32>
  return
}

// -----

func.func @loss_shape(%x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy' op expected loss of shape 8x1, got: 8}}
  %0 = nn.linear_cross_entropy %x, %w, %t : tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @gradient_shape(%g: tensor<8x97xf32>, %x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy_grad' op expected gradient of shape 8x1, got: 8x97}}
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t : (tensor<8x97xf32>, tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32>) -> (tensor<8x64xf32>, tensor<64x97xf32>, tensor<8x1xf32>)
  return
}

// -----

func.func @weight_gradient_shape(%g: tensor<8x1xf32>, %x: tensor<8x64xf32>, %w: tensor<64x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy_grad' op expected weight_gradient of shape 64x97, got: 97x64}}
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t : (tensor<8x1xf32>, tensor<8x64xf32>, tensor<64x97xf32>, tensor<8xi32>) -> (tensor<8x64xf32>, tensor<97x64xf32>, tensor<8x1xf32>)
  return
}

// -----

func.func @input_gradient_type(%g: tensor<8x1xf32>, %x: tensor<8x64xbf16>, %w: tensor<64x97xbf16>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy_grad' op expected input_gradient to have the element type f32 or that of input, 'bf16', got: 'f16'}}
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t : (tensor<8x1xf32>, tensor<8x64xbf16>, tensor<64x97xbf16>, tensor<8xi32>) -> (tensor<8x64xf16>, tensor<64x97xf32>, tensor<8x1xf32>)
  return
}

// -----

func.func @accumulator_type(%g: tensor<8x1xf32>, %x: tensor<8x64xbf16>, %w: tensor<64x97xbf16>, %t: tensor<8xi32>, %a: tensor<64x97xf32>) {
  // expected-error@+1 {{'nn.linear_cross_entropy_grad' op expected accumulator to have the type of weight_gradient, 'tensor<64x97xbf16>', got: 'tensor<64x97xf32>'}}
  %0:3 = nn.linear_cross_entropy_grad %g, %x, %w, %t acc %a : (tensor<8x1xf32>, tensor<8x64xbf16>, tensor<64x97xbf16>, tensor<8xi32>, tensor<64x97xf32>) -> (tensor<8x64xf32>, tensor<64x97xbf16>, tensor<8x1xf32>)
  return
}
