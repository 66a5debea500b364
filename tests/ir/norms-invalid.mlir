// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @layer_norm_weight(%x: tensor<8x64xf32>, %w: tensor<8xf32>, %b: tensor<64xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected operand #1 to broadcast to 8 rows of 64 columns, got: 'tensor<8xf32>'}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<8x64xf32>, tensor<8xf32>, tensor<64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @layer_norm_scalar_weight(%x: tensor<8x64xf32>, %w: tensor<f32>, %b: tensor<64xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected weight of shape 64, got: scalar}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<8x64xf32>, tensor<f32>, tensor<64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %b: tensor<1x64xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected bias of shape 64, got: 1x64}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<8x64xf32>, tensor<64xf32>, tensor<1x64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @layer_norm_mean(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected result #1 to have one value for each of 8 rows, got: 'tensor<8x64xf32>'}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<8x64xf32>
  return
}

// -----

func.func @layer_norm_epsilon(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected a positive epsilon, got: 0.000000e+00}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 0.0 : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @layer_norm_scalar_input(%x: tensor<f32>, %w: tensor<1xf32>, %b: tensor<1xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected input of rank 1 or more, got: 0}}
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5 : tensor<f32>, tensor<1xf32>, tensor<1xf32> -> tensor<f32>
  return
}

// -----

func.func @layer_norm_grad_mean(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %m: tensor<7x1xf32>) {
  // expected-error@+1 {{'nn.layer_norm_grad' op expected operand #3 to broadcast to 8 rows of 64 columns, got: 'tensor<7x1xf32>'}}
  %dx = nn.layer_norm_grad %x, %x, %w, %m, %m : tensor<8x64xf32>, tensor<64xf32>, tensor<7x1xf32>, tensor<7x1xf32>
  return
}

// -----

func.func @rms_norm_weight(%x: tensor<8x64xf32>, %w: tensor<1x64xf32>) {
  // expected-error@+1 {{'nn.rms_norm' op expected weight of shape 64, got: 1x64}}
  %y, %rstd = nn.rms_norm %x, %w eps 1.0e-5 : tensor<8x64xf32>, tensor<1x64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @rms_norm_epsilon(%x: tensor<8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+1 {{'nn.rms_norm' op expected a positive epsilon, got: -1.000000e-05}}
  %y, %rstd = nn.rms_norm %x, %w eps -1.0e-5 : tensor<8x64xf32>, tensor<64xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @rms_norm_rstd(%x: tensor<8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+1 {{'nn.rms_norm' op expected result #1 to have one value for each of 8 rows, got: 'tensor<8xf32>'}}
  %y, %rstd = nn.rms_norm %x, %w eps 1.0e-5 : tensor<8x64xf32>, tensor<64xf32> -> tensor<8xf32>
  return
}
