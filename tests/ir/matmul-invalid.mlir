// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @vector(%x: tensor<64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected lhs of rank 2 or more, got: 1}}
  %0 = nn.matmul %x, %w : tensor<64xf32>, tensor<64x96xf32> -> tensor<96xf32>
  return
}

// -----

func.func @ranks(%x: tensor<8x64xf32>, %w: tensor<3x64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs of rank 2, got: 3}}
  %0 = nn.matmul %x, %w : tensor<8x64xf32>, tensor<3x64x96xf32> -> tensor<3x8x96xf32>
  return
}

// -----

func.func @batches(%x: tensor<2x8x64xf32>, %w: tensor<3x64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs with the batches of lhs, 2, got: 3}}
  %0 = nn.matmul %x, %w : tensor<2x8x64xf32>, tensor<3x64x96xf32> -> tensor<2x8x96xf32>
  return
}

// -----

func.func @inner_dimension(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected an inner dimension of rhs equal to that of lhs, 64, got: 96}}
  %0 = nn.matmul %x, %w transpose_rhs : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @result(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected result of shape 8x96, got: 96x8}}
  %0 = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<96x8xf32>
  return
}

// -----

func.func @element_types(%x: tensor<8x64xf32>, %w: tensor<64x96xbf16>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs to have the element type of lhs, 'f32', got: 'bf16'}}
  %0 = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xbf16> -> tensor<8x96xf32>
  return
}

// -----

func.func @accumulator(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>, %c: tensor<96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected accumulator to have the type of result, 'tensor<8x96xf32>', got: 'tensor<96xf32>'}}
  %0 = nn.matmul %x, %w acc %c : tensor<96xf32> : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  return
}

// -----

func.func @result_type(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>) {
  // expected-error@+1 {{'nn.matmul' op expected result to have the element type f32 or that of lhs, 'bf16', got: 'f16'}}
  %0 = nn.matmul %x, %w : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf16>
  return
}

// -----

func.func @narrowed_result(%x: tensor<8x64xf32>, %w: tensor<64x96xf32>) {
  // expected-error@+1 {{'nn.matmul' op expected result to have the element type f32 or that of lhs, 'f32', got: 'bf16'}}
  %0 = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xbf16>
  return
}

// -----

func.func @narrow_accumulator(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>, %c: tensor<8x96xbf16>) {
  // expected-error@+1 {{'nn.matmul' op expected a result of f32 with an accumulator, got: 'bf16'}}
  %0 = nn.matmul %x, %w acc %c : tensor<8x96xbf16> : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
  return
}

// -----

func.func @narrow_tf32(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>) {
  // expected-error@+1 {{'nn.matmul' op expected operands of f32 with tf32, got: 'bf16'}}
  %0 = nn.matmul %x, %w tf32 : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf32>
  return
}

// -----

func.func @float8_without_scales(%x: tensor<8x64xf8E5M2>, %w: tensor<64x96xf8E4M3FN>) {
  // expected-error@+1 {{'nn.matmul' op expected two scales with operands of fp8 and with no others, lhs being of 'f8E5M2'}}
  %0 = nn.matmul %x, %w : tensor<8x64xf8E5M2>, tensor<64x96xf8E4M3FN> -> tensor<8x96xf32>
  return
}

// -----

func.func @scales_of_bf16(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.matmul' op expected two scales with operands of fp8 and with no others, lhs being of 'bf16'}}
  %0 = nn.matmul %x, %w scales %s, %s : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf32>
  return
}

// -----

func.func @one_float8(%x: tensor<8x64xf8E5M2>, %w: tensor<64x96xbf16>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.matmul' op expected rhs to have the element type of lhs, 'f8E5M2', got: 'bf16'}}
  %0 = nn.matmul %x, %w scales %s, %s : tensor<8x64xf8E5M2>, tensor<64x96xbf16> -> tensor<8x96xf32>
  return
}

// -----

func.func @one_scale(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.matmul' op expected two scales with operands of fp8 and with no others, lhs being of 'bf16'}}
  %0 = "nn.matmul"(%x, %w, %s) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> : (tensor<8x64xbf16>, tensor<64x96xbf16>, tensor<f32>) -> tensor<8x96xf32>
  return
}
