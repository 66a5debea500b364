// RUN: gradc-opt %s --memory-plan -split-input-file -verify-diagnostics

// expected-error @below {{expected nn.slot on argument 0}}
func.func @f(%x: tensor<4xf32>) { return }

// -----

func.func @f(%x: tensor<4x6xf32> {nn.slot = {role = "input", name = "x"}}) -> (tensor<6x4xf32> {nn.slot = {role = "output", name = "y"}}) {
  // expected-error @below {{expected a matrix product to absorb this transpose}}
  %t = nn.transpose %x : tensor<4x6xf32> to tensor<6x4xf32>
  return %t : tensor<6x4xf32>
}
