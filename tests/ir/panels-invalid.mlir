// RUN: gradc-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expected panels of a positive width and depth_unit, got: 0 and 8}}
func.func @width(%w: tensor<8x8xf32, #nn.panels<width = 0, depth_unit = 8>>) {
  return
}

// -----

// expected-error@+1 {{expected panels of tf32 or of pairs, got both}}
func.func @words(%w: tensor<8x8xbf16, #nn.panels<width = 24, depth_unit = 8, tf32 = true, pairs = true>>) {
  return
}

// -----

// expected-error@+1 {{expected a matrix in panels, got: a tensor of rank 3}}
func.func @rank(%w: tensor<2x8x8xf32, #nn.panels<width = 24, depth_unit = 8>>) {
  return
}

// -----

// expected-error@+1 {{expected panels of f32, bf16 or f16, got: 'i32'}}
func.func @integers(%w: tensor<8x8xi32, #nn.panels<width = 24, depth_unit = 8>>) {
  return
}

// -----

// expected-error@+1 {{expected panels of f32 with tf32, got: 'bf16'}}
func.func @rounded(%w: tensor<8x8xbf16, #nn.panels<width = 24, depth_unit = 8, tf32 = true>>) {
  return
}

// -----

// expected-error@+1 {{expected pairs of bf16, got: 'f32'}}
func.func @pairs(%w: tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8, pairs = true>>) {
  return
}

// -----

// Only products read panels.
func.func @other_readers(%w: tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>>) {
  // expected-error@+1 {{'nn.scale' op operand #0 must be}}
  %0 = nn.scale %w by 5.0e-01 : tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>>
  return
}

// -----

func.func @order(%x: tensor<8x8xf32>, %w: tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs in panels of the matrix that it multiplies by, transposed = true, got: #nn.panels<}}
  %0 = nn.matmul %x, %w transpose_rhs : tensor<8x8xf32>, tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>> -> tensor<8x8xf32>
  return
}

// -----

func.func @rounding(%x: tensor<8x8xf32>, %w: tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs in panels rounded as the product's inputs are, tf32 = true, got: #nn.panels<}}
  %0 = nn.matmul %x, %w tf32 : tensor<8x8xf32>, tensor<8x8xf32, #nn.panels<width = 24, depth_unit = 8>> -> tensor<8x8xf32>
  return
}

// -----

func.func @shape(%w: tensor<8x16xf32>) {
  // expected-error@+1 {{'nn.pack_panels' op expected result of shape 8x16, got: 16x8}}
  %0 = nn.pack_panels %w : tensor<8x16xf32> to tensor<16x8xf32, #nn.panels<width = 24, depth_unit = 8>>
  return
}

// -----

func.func @element_type(%w: tensor<8x16xf32>) {
  // expected-error@+1 {{'nn.pack_panels' op expected result to have the element type of input, 'f32', got: 'bf16'}}
  %0 = nn.pack_panels %w : tensor<8x16xf32> to tensor<8x16xbf16, #nn.panels<width = 24, depth_unit = 8>>
  return
}
