// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @rank(%x: tensor<2x8x64xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) {
  // expected-error@+1 {{'nn.rope' op expected input of rank 2, got: 3}}
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<2x8x64xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @no_heads(%x: tensor<16x64xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) {
  // expected-error@+1 {{'nn.rope' op expected a positive number of heads, got: 0}}
  %0 = nn.rope %x, %cos, %sin heads 0 : tensor<16x64xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @odd_head_dim(%x: tensor<16x12xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) {
  // expected-error@+1 {{'nn.rope' op expected columns divisible by twice the number of heads, 8, got: 12}}
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<16x12xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @table_rank(%x: tensor<16x64xf32>, %cos: tensor<64xf32>, %sin: tensor<64xf32>) {
  // expected-error@+1 {{'nn.rope' op expected cos of rank 2, got: 1}}
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<16x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @table_columns(%x: tensor<16x64xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) {
  // expected-error@+1 {{'nn.rope' op expected cos of shape 8x8, got: 8x16}}
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<16x64xf32>, tensor<8x16xf32>
  return
}

// -----

func.func @positions(%x: tensor<16x64xf32>, %cos: tensor<6x8xf32>, %sin: tensor<6x8xf32>) {
  // expected-error@+1 {{'nn.rope' op expected a number of tokens divisible by the rows of the tables, 6, got: 16}}
  %0 = nn.rope %x, %cos, %sin heads 4 : tensor<16x64xf32>, tensor<6x8xf32>
  return
}

// -----

func.func @positions(%x: tensor<16x64xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>, %p: tensor<8xi32>) {
  // expected-error@+1 {{'nn.rope' op expected positions of shape 16, got: 8}}
  %0 = nn.rope %x, %cos, %sin positions(%p : tensor<8xi32>) heads 4 : tensor<16x64xf32>, tensor<8x8xf32>
  return
}
