// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @row_sum(%x: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.row_sum' op expected result #0 to have one value for each of 8 rows, got: 'tensor<64xf32>'}}
  %0 = nn.row_sum %x : tensor<8x64xf32> -> tensor<64xf32>
  return
}

// -----

func.func @column_partials_chunks(%x: tensor<100x64xf32>) {
  // expected-error@+1 {{'nn.column_partials' op expected result #0 to have one row of 64 columns for each 64 of 100 rows, got: 'tensor<1x64xf32>'}}
  %0 = nn.column_partials %x : tensor<100x64xf32> -> tensor<1x64xf32>
  return
}

// -----

func.func @column_partials_rank(%x: tensor<10x64xf32>) {
  // expected-error@+1 {{'nn.column_partials' op expected result of rank 2, got: 1}}
  %0 = nn.column_partials %x : tensor<10x64xf32> -> tensor<64xf32>
  return
}

// -----

func.func @fold_rows_rank(%x: tensor<64xf32>) {
  // expected-error@+1 {{'nn.fold_rows' op expected input of rank 2, got: 1}}
  %0 = nn.fold_rows %x : tensor<64xf32> -> tensor<64xf32>
  return
}

// -----

func.func @fold_rows_result(%x: tensor<2x64xf32>) {
  // expected-error@+1 {{'nn.fold_rows' op expected result of shape 64, got: 2}}
  %0 = nn.fold_rows %x : tensor<2x64xf32> -> tensor<2xf32>
  return
}

// -----

func.func @square_sums(%x: tensor<16385xf32>) {
  // expected-error@+1 {{'nn.square_sums' op expected result of shape 2, got: 1}}
  %0 = nn.square_sums %x : tensor<16385xf32> -> tensor<1xf32>
  return
}

// -----

func.func @square_sums_narrow(%x: tensor<64xbf16>) {
  // expected-error@+1 {{'nn.square_sums' op operand #0 must be statically shaped, non-empty tensor of 32-bit float values, but got 'tensor<64xbf16>'}}
  %0 = nn.square_sums %x : tensor<64xbf16> -> tensor<1xf32>
  return
}
