// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @scale_of_bf16(%a: tensor<8x1xf32>) {
  // expected-error@+1 {{'nn.scale_of_amax' op expected a format of f8E4M3FN or f8E5M2, got: 'bf16'}}
  %s = nn.scale_of_amax %a for bf16 : tensor<8x1xf32>
  return
}

// -----

func.func @gradient_in_another_format(%x: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.quantize_gradient' op expected a format of f8E4M3FN or f8E5M2, got: 'f8E4M3FNUZ'}}
  %0 = nn.quantize_gradient %x in f8E4M3FNUZ : tensor<8x64xf32>
  return
}

// -----

func.func @fake_format(%x: tensor<8x64xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.fake_quantize' op expected a format of f8E4M3FN or f8E5M2, got: 'f32'}}
  %0 = nn.fake_quantize %x by %s in f32 : tensor<8x64xf32> to tensor<8x64xbf16>
  return
}

// -----

func.func @fake_shape(%x: tensor<8x64xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.fake_quantize' op expected operand #0 to broadcast to 64 rows of 8 columns, got: 'tensor<8x64xf32>'}}
  %0 = nn.fake_quantize %x by %s in f8E5M2 : tensor<8x64xf32> to tensor<64x8xbf16>
  return
}

// -----

func.func @numbers_shape(%x: tensor<8x64xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.quantize' op expected result of shape 8x64, got: 4x2x64}}
  %0 = nn.quantize %x by %s : tensor<8x64xf32> to tensor<4x2x64xf8E5M2>
  return
}

// -----

func.func @numbers_of_bf16(%x: tensor<8x64xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.quantize' op result #0 must be statically shaped, non-empty tensor of f8E4M3FN type or f8E5M2 type values, but got 'tensor<8x64xbf16>'}}
  %0 = nn.quantize %x by %s : tensor<8x64xf32> to tensor<8x64xbf16>
  return
}

// -----

func.func @row_amax_shape(%x: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.row_amax' op expected result #0 to have one value for each of 8 rows, got: 'tensor<4x1xf32>'}}
  %0 = nn.row_amax %x : tensor<8x64xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @record_without_magnitude(%x: tensor<8x64xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.fake_quantize' op expected a record and a magnitude together, or neither}}
  %0 = "nn.fake_quantize"(%x, %s, %s) <{format = f8E4M3FN, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (tensor<8x64xf32>, tensor<f32>, tensor<f32>) -> tensor<8x64xf32>
  return
}
