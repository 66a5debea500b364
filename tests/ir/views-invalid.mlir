// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @reshape_elements(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.reshape' op expected a result of 48 elements, got: 49}}
  %0 = nn.reshape %x : tensor<8x6xf32> to tensor<7x7xf32>
  return
}

// -----

func.func @reshape_type(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.reshape' op expected result to have the element type of input, 'f32', got: 'i32'}}
  %0 = nn.reshape %x : tensor<8x6xf32> to tensor<48xi32>
  return
}

// -----

func.func @slice_beyond(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected an offset from 0 to 2, got: 3}}
  %0 = nn.slice %x at 3 : tensor<8x6xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @slice_before(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected an offset from 0 to 2, got: -1}}
  %0 = nn.slice %x at -1 : tensor<8x6xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @slice_of_rows(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected result of shape 8x6, got: 4x6}}
  %0 = nn.slice %x at 0 : tensor<8x6xf32> to tensor<4x6xf32>
  return
}

// -----

func.func @slice_rank(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected result of rank 2, got: 1}}
  %0 = nn.slice %x at 0 : tensor<8x6xf32> to tensor<6xf32>
  return
}

// -----

func.func @slice_type(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected result to have the element type of input, 'f32', got: 'f16'}}
  %0 = nn.slice %x at 0 : tensor<8x6xf32> to tensor<8x4xf16>
  return
}

// -----

func.func @slice_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'nn.slice' op expected input of rank 1 or more, got: 0}}
  %0 = nn.slice %x at 0 : tensor<f32> to tensor<f32>
  return
}

// -----

func.func @slice_beyond_the_rows(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected an offset from 0 to 4, got: 5}}
  %0 = nn.slice %x at row 5 : tensor<8x6xf32> to tensor<4x6xf32>
  return
}

// -----

func.func @slice_of_rows_and_columns(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected result of shape 4x6, got: 4x5}}
  %0 = nn.slice %x at row 0 : tensor<8x6xf32> to tensor<4x5xf32>
  return
}

// -----

func.func @concat_rows(%x: tensor<8x6xf32>, %y: tensor<2x6xf32>) {
  // expected-error@+1 {{'nn.concat' op expected result of shape 10x6, got: 9x6}}
  %0 = nn.concat %x, %y rows : tensor<8x6xf32>, tensor<2x6xf32> to tensor<9x6xf32>
  return
}

// -----

func.func @concat_of_nothing() {
  // expected-error@+1 {{'nn.concat' op expected one input or more, got: 0}}
  %0 = "nn.concat"() : () -> tensor<8x6xf32>
  return
}

// -----

func.func @concat_columns(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.concat' op expected result of shape 8x12, got: 8x11}}
  %0 = nn.concat %x, %x : tensor<8x6xf32>, tensor<8x6xf32> to tensor<8x11xf32>
  return
}

// -----

func.func @concat_rows(%x: tensor<8x6xf32>, %y: tensor<7x6xf32>) {
  // expected-error@+1 {{'nn.concat' op expected input #1 of shape 8x6, got: 7x6}}
  %0 = nn.concat %x, %y : tensor<8x6xf32>, tensor<7x6xf32> to tensor<8x12xf32>
  return
}

// -----

func.func @concat_rank(%x: tensor<8x6xf32>, %y: tensor<6xf32>) {
  // expected-error@+1 {{'nn.concat' op expected input #1 of rank 2, got: 1}}
  %0 = nn.concat %x, %y : tensor<8x6xf32>, tensor<6xf32> to tensor<8x12xf32>
  return
}

// -----

func.func @concat_type(%x: tensor<8x6xf32>, %y: tensor<8x6xbf16>) {
  // expected-error@+1 {{'nn.concat' op expected input #1 to have the element type of result, 'f32', got: 'bf16'}}
  %0 = nn.concat %x, %y : tensor<8x6xf32>, tensor<8x6xbf16> to tensor<8x12xf32>
  return
}

// -----

func.func @transpose_shape(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.transpose' op expected result of shape 6x8, got: 8x6}}
  %0 = nn.transpose %x : tensor<8x6xf32> to tensor<8x6xf32>
  return
}

// -----

func.func @transpose_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'nn.transpose' op expected input of rank 2 or more, got: 1}}
  %0 = nn.transpose %x : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @transpose_type(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{'nn.transpose' op expected result to have the element type of input, 'f32', got: 'bf16'}}
  %0 = nn.transpose %x : tensor<8x6xf32> to tensor<6x8xbf16>
  return
}
