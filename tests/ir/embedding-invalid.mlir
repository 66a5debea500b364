// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @table_rank(%i: tensor<8xi32>, %t: tensor<97xf32>) {
  // expected-error@+1 {{'nn.embedding' op expected table of rank 2, got: 1}}
  %0 = nn.embedding %i, %t : tensor<8xi32>, tensor<97xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @result_shape(%i: tensor<8xi32>, %t: tensor<97x64xf32>) {
  // expected-error@+1 {{'nn.embedding' op expected result of shape 8x64, got: 97x64}}
  %0 = nn.embedding %i, %t : tensor<8xi32>, tensor<97x64xf32> -> tensor<97x64xf32>
  return
}

// -----

func.func @float_indices(%i: tensor<8xf32>, %t: tensor<97x64xf32>) {
  // expected-error@+1 {{'nn.embedding' op operand #0 must be statically shaped, non-empty tensor of 32-bit signless integer values, but got 'tensor<8xf32>'}}
  %0 = nn.embedding %i, %t : tensor<8xf32>, tensor<97x64xf32> -> tensor<8x64xf32>
  return
}

// -----

func.func @gradient_shape(%i: tensor<8xi32>, %g: tensor<7x64xf32>) {
  // expected-error@+1 {{'nn.embedding_grad' op expected gradient of shape 8x64, got: 7x64}}
  %0 = nn.embedding_grad %i, %g : tensor<8xi32>, tensor<7x64xf32> -> tensor<97x64xf32>
  return
}

// -----

func.func @gradient_result_rank(%i: tensor<8xi32>, %g: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.embedding_grad' op expected result of rank 2, got: 1}}
  %0 = nn.embedding_grad %i, %g : tensor<8xi32>, tensor<8x64xf32> -> tensor<97xf32>
  return
}

// -----

func.func @accumulator(%i: tensor<8xi32>, %g: tensor<8x64xf32>, %a: tensor<96x64xf32>) {
  // expected-error@+1 {{'nn.embedding_grad' op expected accumulator to have the type of result, 'tensor<97x64xf32>', got: 'tensor<96x64xf32>'}}
  %0 = nn.embedding_grad %i, %g acc %a : tensor<96x64xf32> : tensor<8xi32>, tensor<8x64xf32> -> tensor<97x64xf32>
  return
}

// -----

func.func @narrow_sums(%i: tensor<8xi32>, %g: tensor<8x64xbf16>) {
  // expected-error@+1 {{'nn.embedding_grad' op result #0 must be statically shaped, non-empty tensor of 32-bit float values, but got 'tensor<97x64xbf16>'}}
  %0 = nn.embedding_grad %i, %g : tensor<8xi32>, tensor<8x64xbf16> -> tensor<97x64xbf16>
  return
}
