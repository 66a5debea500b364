// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @logits_rank(%l: tensor<2x4x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected logits of rank 2, got: 3}}
  %loss, %lse = nn.cross_entropy %l, %t : tensor<2x4x97xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @number_of_targets(%l: tensor<8x97xf32>, %t: tensor<7xi32>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected operand #1 to have one value for each of 8 rows, got: 'tensor<7xi32>'}}
  %loss, %lse = nn.cross_entropy %l, %t : tensor<8x97xf32>, tensor<7xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @targets_rank(%l: tensor<8x97xf32>, %t: tensor<2x4xi32>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected targets of rank 1, got: 2}}
  %loss, %lse = nn.cross_entropy %l, %t : tensor<8x97xf32>, tensor<2x4xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @loss_shape(%l: tensor<8x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected result #0 to have one value for each of 8 rows, got: 'tensor<8x97xf32>'}}
  %loss, %lse = nn.cross_entropy %l, %t : tensor<8x97xf32>, tensor<8xi32> -> tensor<8x97xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @lse_type(%l: tensor<8x97xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected lse to have the type of loss, 'tensor<8x1xf32>', got: 'tensor<8x1xbf16>'}}
  %loss, %lse = nn.cross_entropy %l, %t : tensor<8x97xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xbf16>
  return
}

// -----

func.func @gradient_of_the_loss(%g: tensor<8x97xf32>, %l: tensor<8x97xf32>, %t: tensor<8xi32>, %s: tensor<8x1xf32>) {
  // expected-error@+1 {{'nn.cross_entropy_grad' op expected operand #0 to have one value for each of 8 rows, got: 'tensor<8x97xf32>'}}
  %0 = nn.cross_entropy_grad %g, %l, %t, %s : tensor<8x97xf32>, tensor<8x97xf32>, tensor<8xi32>, tensor<8x1xf32>
  return
}
