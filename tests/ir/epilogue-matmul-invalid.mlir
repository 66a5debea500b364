// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @none(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected an epilogue; a product without one is nn.matmul}}
  %0 = nn.epilogue_matmul %x, %w epilogue none : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @batches(%x: tensor<2x8x64xf32>, %w: tensor<2x64x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected lhs of rank 2, got: 3}}
  %0 = nn.epilogue_matmul %x, %w epilogue gelu : tensor<2x8x64xf32>, tensor<2x64x96xf32> -> tensor<2x8x96xf32>
  return
}

// -----

func.func @no_bias(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected a bias where the epilogue adds one, and aux where it reads one}}
  %0 = nn.epilogue_matmul %x, %w epilogue bias : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @no_aux(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected a second result where the epilogue gives aux or a bias gradient}}
  %0 = nn.epilogue_matmul %x, %w epilogue gelu_aux : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @long_bias(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>, %b: tensor<97xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected bias of shape 96, got: 97}}
  %0 = nn.epilogue_matmul %x, %w epilogue bias bias(%b : tensor<97xf32>) : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @wide_aux(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>, %a: tensor<8x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected aux to have the type of result, 'tensor<8x96xbf16>', got: 'tensor<8x96xf32>'}}
  %0 = nn.epilogue_matmul %x, %w epilogue gelu_gradient aux(%a : tensor<8x96xf32>) : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
  return
}

// -----

func.func @gradient_of_rows(%x: tensor<8x64xf32>, %dy: tensor<8x96xf32>) {
  // expected-error@+1 {{'nn.epilogue_matmul' op expected bias gradient of shape 64, got: 96}}
  %0, %1 = nn.epilogue_matmul %x, %dy transpose_lhs epilogue bias_gradient_lhs : tensor<8x64xf32>, tensor<8x96xf32> -> tensor<64x96xf32>, tensor<96xf32>
  return
}
