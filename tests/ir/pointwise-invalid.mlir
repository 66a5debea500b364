// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @rhs_of_other_columns(%x: tensor<4x8xf32>, %y: tensor<7xf32>) {
  // expected-error@+1 {{'nn.add' op expected operand #1 to broadcast to 4 rows of 8 columns, got: 'tensor<7xf32>'}}
  %0 = nn.add %x, %y : tensor<4x8xf32>, tensor<7xf32>
  return
}

// -----

func.func @row_without_its_trailing_one(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'nn.sub' op expected operand #1 to broadcast to 4 rows of 8 columns, got: 'tensor<4xf32>'}}
  %0 = nn.sub %x, %y : tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @rhs_larger_than_lhs(%x: tensor<8xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'nn.mul' op expected operand #1 to broadcast to 1 rows of 8 columns, got: 'tensor<4x8xf32>'}}
  %0 = nn.mul %x, %y : tensor<8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @rows_inside_the_batch_alone(%x: tensor<2x4x8xf32>, %y: tensor<4x1xf32>) {
  // expected-error@+1 {{'nn.div' op expected operand #1 to broadcast to 8 rows of 8 columns, got: 'tensor<4x1xf32>'}}
  %0 = nn.div %x, %y : tensor<2x4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @broadcast_that_shrinks(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'nn.broadcast' op expected operand #0 to broadcast to 4 rows of 1 columns, got: 'tensor<4x8xf32>'}}
  %0 = nn.broadcast %x : tensor<4x8xf32> to tensor<4x1xf32>
  return
}

// -----

func.func @integer_operand(%x: tensor<4xi32>) {
  // expected-error@+1 {{'nn.exp' op operand #0 must be statically shaped, non-empty tensor of 32-bit float or bfloat16 type or 16-bit float values, but got 'tensor<4xi32>'}}
  %0 = nn.exp %x : tensor<4xi32>
  return
}

// -----

func.func @unknown_size(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'nn.exp' op operand #0 must be statically shaped, non-empty tensor}}
  %0 = nn.exp %x : tensor<?x8xf32>
  return
}

// -----

func.func @empty(%x: tensor<0x8xf32>) {
  // expected-error@+1 {{'nn.exp' op operand #0 must be statically shaped, non-empty tensor}}
  %0 = nn.exp %x : tensor<0x8xf32>
  return
}

// -----

func.func @unknown_activation(%x: tensor<8xf32>) {
  // expected-error@+2 {{failed to parse Nn_ActivationKindAttr}}
  // expected-error@+1 {{expected ::gradc::nn::ActivationKind to be one of: gelu, gelu_tanh, silu, relu}}
  %0 = nn.activation swish %x : tensor<8xf32>
  return
}

// -----

func.func @clip_of_a_vector(%x: tensor<8xf32>) {
  // expected-error@+1 {{'nn.clip_coefficient' op operand #0 must be 0D tensor of 32-bit float values}}
  %0 = nn.clip_coefficient %x, %x : tensor<8xf32>
  return
}

// -----

func.func @constant_in_a_resource() {
  // expected-error@+1 {{failed to satisfy constraint: elements written out}}
  %0 = nn.constant dense_resource<__elided__> : tensor<2xf32>
  return
}
