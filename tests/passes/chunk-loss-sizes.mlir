// RUN: gradc-opt %s --chunk-loss -split-input-file | FileCheck %s
// RUN: gradc-opt %s "--chunk-loss=allowed-rows=600" -split-input-file | FileCheck %s --check-prefix ALLOWED

// Rows are as many as the bound lets through, in equal chunks where there are some.
// CHECK-LABEL: func.func @large(
// CHECK-SAME: logits 1024 x 50304 in 4 chunks of 256 rows: 49.12 MiB at a time instead of 196.50 MiB (auto: at most 64.00 MiB as f32)
func.func @large(%x: tensor<1024x1xf32>, %w: tensor<1x50304xf32>, %t: tensor<1024xi32>) -> tensor<1024x1xf32> {
  %loss = nn.linear_cross_entropy %x, %w, %t : tensor<1024x1xf32>, tensor<1x50304xf32>, tensor<1024xi32> -> tensor<1024x1xf32>
  return %loss : tensor<1024x1xf32>
}

// -----

// CHECK-LABEL: func.func @no_equal_chunks(
// CHECK-SAME: logits 1021 x 50304 in 4 chunks of 256 rows, the last of 253
func.func @no_equal_chunks(%x: tensor<1021x1xf32>, %w: tensor<1x50304xf32>, %t: tensor<1021xi32>) -> tensor<1021x1xf32> {
  %loss = nn.linear_cross_entropy %x, %w, %t : tensor<1021x1xf32>, tensor<1x50304xf32>, tensor<1021xi32> -> tensor<1021x1xf32>
  return %loss : tensor<1021x1xf32>
}

// -----

// A bound that one row exceeds still gives a row to each chunk.
// CHECK-LABEL: func.func @wide(
// CHECK-SAME: logits 3 x 20000000 in 3 chunks of 1 rows: 76.29 MiB at a time
func.func @wide(%x: tensor<3x1xf32>, %w: tensor<1x20000000xf32>, %t: tensor<3xi32>) -> tensor<3x1xf32> {
  %loss = nn.linear_cross_entropy %x, %w, %t : tensor<3x1xf32>, tensor<1x20000000xf32>, tensor<3xi32> -> tensor<3x1xf32>
  return %loss : tensor<3x1xf32>
}

// -----

// A target may allow larger chunks.
// ALLOWED-LABEL: func.func @allowed(
// ALLOWED-SAME: logits 1024 x 50304 in 2 chunks of 512 rows: 98.25 MiB at a time instead of 196.50 MiB (auto: at most 64.00 MiB as f32 or 600 rows)
func.func @allowed(%x: tensor<1024x1xf32>, %w: tensor<1x50304xf32>, %t: tensor<1024xi32>) -> tensor<1024x1xf32> {
  %loss = nn.linear_cross_entropy %x, %w, %t : tensor<1024x1xf32>, tensor<1x50304xf32>, tensor<1024xi32> -> tensor<1024x1xf32>
  return %loss : tensor<1024x1xf32>
}
