// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @rows(%tokens: tensor<8xi32>) {
  // expected-error@+1 {{'nn.documents' op expected tokens divisible by the length of a row, 3, got: 8}}
  %first, %positions = nn.documents %tokens seq 3 separator 0 : tensor<8xi32>
  return
}

// -----

func.func @no_row(%tokens: tensor<8xi32>) {
  // expected-error@+1 {{'nn.documents' op expected a positive length of a row, got: 0}}
  %first, %positions = nn.documents %tokens seq 0 separator 0 : tensor<8xi32>
  return
}

// -----

func.func @rank(%tokens: tensor<2x4xi32>) {
  // expected-error@+1 {{'nn.documents' op expected tokens of rank 1, got: 2}}
  %first, %positions = nn.documents %tokens seq 4 separator 0 : tensor<2x4xi32>
  return
}

// -----

func.func @separator(%tokens: tensor<8xi32>) {
  // expected-error@+1 {{'nn.documents' op expected a separator that is an i32 of 0 or more, got: -1}}
  %first, %positions = nn.documents %tokens seq 4 separator -1 : tensor<8xi32>
  return
}
