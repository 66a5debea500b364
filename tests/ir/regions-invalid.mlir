// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @nothing_sliced(%zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected one sliced operand or more, got: 0}}
  %0 = "nn.microbatches"(%zero) <{operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%sum: tensor<8xf32>):
    nn.yield %sum : tensor<8xf32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sliced_scalar(%x: tensor<f32>, %zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected sliced operand #0 of rank 1 or more, got: 0}}
  %0 = nn.microbatches sliced(%x : tensor<f32>) carried(%zero : tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%slice: tensor<f32>, %sum: tensor<8xf32>):
    nn.yield %sum : tensor<8xf32>
  }
  return
}

// -----

func.func @entries(%x: tensor<4x8xf32>, %y: tensor<3x8xf32>, %zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected sliced operand #1 to have 4 entries, got: 3}}
  %0 = nn.microbatches sliced(%x, %y : tensor<4x8xf32>, tensor<3x8xf32>) carried(%zero : tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>, %sum: tensor<8xf32>):
    nn.yield %sum : tensor<8xf32>
  }
  return
}

// -----

func.func @slice_type(%x: tensor<4x8xf32>, %zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected block argument #0 of type 'tensor<8xf32>', got: 'tensor<4x8xf32>'}}
  %0 = nn.microbatches sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%slice: tensor<4x8xf32>, %sum: tensor<8xf32>):
    nn.yield %sum : tensor<8xf32>
  }
  return
}

// -----

func.func @arguments(%x: tensor<4x8xf32>, %zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected 2 block arguments, got: 1}}
  %0 = nn.microbatches sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%slice: tensor<8xf32>):
    nn.yield %slice : tensor<8xf32>
  }
  return
}

// -----

func.func @yielded(%x: tensor<4x8xf32>, %zero: tensor<4xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected yielded value #0 of type 'tensor<4xf32>', got: 'tensor<8xf32>'}}
  %0 = nn.microbatches sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%slice: tensor<8xf32>, %sum: tensor<4xf32>):
    nn.yield %slice : tensor<8xf32>
  }
  return
}

// -----

func.func @results(%x: tensor<4x8xf32>, %zero: tensor<8xf32>) {
  // expected-error@+1 {{'nn.microbatches' op expected result #0 of type 'tensor<8xf32>', got: 'tensor<4x8xf32>'}}
  %0 = nn.microbatches sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>) -> (tensor<4x8xf32>) {
  ^bb0(%slice: tensor<8xf32>, %sum: tensor<8xf32>):
    nn.yield %sum : tensor<8xf32>
  }
  return
}

// -----

func.func @fused_argument(%x: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.fused' op expected block argument #0 of type 'tensor<8x64xf32>', got: 'tensor<64xf32>'}}
  %y = nn.fused(%x : tensor<8x64xf32>) -> (tensor<64xf32>) {
  ^bb0(%x0: tensor<64xf32>):
    nn.yield %x0 : tensor<64xf32>
  }
  return
}

// -----

func.func @fused_yield(%x: tensor<8x64xf32>) {
  // expected-error@+1 {{'nn.fused' op expected 1 yielded values, got: 0}}
  %y = nn.fused(%x : tensor<8x64xf32>) -> (tensor<8x64xf32>) {
  ^bb0(%x0: tensor<8x64xf32>):
    nn.yield
  }
  return
}

// -----

func.func @fused_product(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{'nn.fused' op expected row ops, views and constants in its body, got: 'nn.matmul'}}
  %y = nn.fused(%x : tensor<8x8xf32>) -> (tensor<8x8xf32>) {
  ^bb0(%x0: tensor<8x8xf32>):
    %0 = nn.matmul %x0, %x0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    nn.yield %0 : tensor<8x8xf32>
  }
  return
}

// -----

func.func @fused_rows(%x: tensor<8x64xf32>, %z: tensor<4x64xf32>) {
  // expected-error@+1 {{'nn.fused' op expected every op of its body to have 8 rows of 64 columns, got: 4 rows of 64 columns of 'nn.neg'}}
  %y, %w = nn.fused(%x, %z : tensor<8x64xf32>, tensor<4x64xf32>) -> (tensor<8x64xf32>, tensor<4x64xf32>) {
  ^bb0(%x0: tensor<8x64xf32>, %z0: tensor<4x64xf32>):
    %0 = nn.exp %x0 : tensor<8x64xf32>
    %1 = nn.neg %z0 : tensor<4x64xf32>
    nn.yield %0, %1 : tensor<8x64xf32>, tensor<4x64xf32>
  }
  return
}

// -----

func.func @fused_capture(%x: tensor<8x64xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %y = nn.fused() -> (tensor<8x64xf32>) {
    // expected-error@+1 {{'nn.neg' op using value defined outside the region}}
    %0 = nn.neg %x : tensor<8x64xf32>
    nn.yield %0 : tensor<8x64xf32>
  }
  return
}

// -----

func.func @yield_of_a_function(%x: tensor<8xf32>) {
  // expected-error@+1 {{'nn.yield' op expects parent op to be one of 'nn.microbatches, nn.fused'}}
  nn.yield %x : tensor<8xf32>
}
