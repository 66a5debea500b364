// RUN: gradc-opt %s --autodiff -split-input-file -verify-diagnostics

// expected-error @below {{expected a function @loss}}
module {
  func.func @other() { return }
}

// -----

func.func @loss(%w: tensor<4x4xf32> {nn.param = {name = "w"}}, %tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  // expected-error @below {{expected an op with a backward}}
  %g = nn.embedding_grad %tokens, %w : tensor<4xi32>, tensor<4x4xf32> -> tensor<9x4xf32>
  %s = nn.sum %g : tensor<9x4xf32>
  return %s : tensor<f32>
}

// -----

// expected-error @below {{expected one result, the summed loss}}
func.func @loss(%w: tensor<4x4xf32> {nn.param = {name = "w"}}, %tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<4x4xf32> {
  return %w : tensor<4x4xf32>
}

// -----

// A statistic has no gradient of its own: refused, not dropped.
func.func @loss(%w: tensor<4x4xf32> {nn.param = {name = "w"}}, %tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
  // expected-error @below {{expected only the first result to reach the loss}}
  %loss, %lse = nn.cross_entropy %w, %targets : tensor<4x4xf32>, tensor<4xi32> -> tensor<4x1xf32>, tensor<4x1xf32>
  %both = nn.add %loss, %lse : tensor<4x1xf32>, tensor<4x1xf32>
  %s = nn.sum %both : tensor<4x1xf32>
  return %s : tensor<f32>
}
