// RUN: gradc-opt %s --training-step -split-input-file -verify-diagnostics

// expected-error @below {{expected @loss and @loss_and_gradients; run the autodiff pass first}}
module {
  func.func @loss() { return }
}
