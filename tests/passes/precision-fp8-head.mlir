// RUN: gradc-opt %s --precision=mode=fp8 --verify-values | FileCheck %s

// Which products are the head, and stay of bf16, does not depend on what stands between them and the
// loss, nor between the hidden layers.

// CHECK-LABEL: func.func @bias_scale_and_reshape(
// CHECK: nn.fake_quantize
// CHECK: %[[Y:.*]] = nn.matmul
// CHECK: nn.quantize_gradient %[[Y]]
// CHECK-NOT: nn.fake_quantize
// CHECK: %[[LOGITS:.*]] = nn.matmul %{{.*}}, %{{.*}} : tensor<4x16xbf16>, tensor<16x5xbf16> -> tensor<4x5xbf16>
// CHECK-NEXT: nn.add %[[LOGITS]]
// CHECK-NOT: nn.quantize_gradient
// CHECK: return
func.func @bias_scale_and_reshape(
    %w: tensor<8x16xf32> {nn.param = {name = "w"}}, %head: tensor<16x5xf32> {nn.param = {name = "head"}},
    %bias: tensor<5xf32> {nn.param = {name = "bias"}}, %x: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<4x1xf32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = nn.activation relu %0 : tensor<4x16xf32>
  %2 = nn.matmul %1, %head : tensor<4x16xf32>, tensor<16x5xf32> -> tensor<4x5xf32>
  %3 = nn.add %2, %bias : tensor<4x5xf32>, tensor<5xf32>
  %4 = nn.scale %3 by 0.125 : tensor<4x5xf32>
  %5 = nn.reshape %4 : tensor<4x5xf32> to tensor<2x2x5xf32>
  %6 = nn.reshape %5 : tensor<2x2x5xf32> to tensor<4x5xf32>
  %7, %lse = nn.cross_entropy %6, %targets : tensor<4x5xf32>, tensor<4xi32> -> tensor<4x1xf32>, tensor<4x1xf32>
  return %7 : tensor<4x1xf32>
}

// CHECK-LABEL: func.func @returned_with_a_bias(
// CHECK-NOT: nn.fake_quantize
// CHECK: nn.matmul %{{.*}} : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
// CHECK-NOT: nn.quantize_gradient
// CHECK: return
func.func @returned_with_a_bias(
    %w: tensor<8x16xf32> {nn.param = {name = "w"}}, %bias: tensor<16xf32> {nn.param = {name = "bias"}},
    %x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = nn.add %0, %bias : tensor<4x16xf32>, tensor<16xf32>
  return %1 : tensor<4x16xf32>
}

// The last layer before the head: residual, norm and view lead to a product, not to the loss.
// CHECK-LABEL: func.func @residual_norm_and_view_before_the_head(
// CHECK: %[[Y:.*]] = nn.matmul %{{.*}} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
// CHECK-NEXT: nn.quantize_gradient %[[Y]]
// CHECK: nn.matmul %{{.*}} : tensor<4x4xbf16>, tensor<4x5xbf16> -> tensor<4x5xbf16>
// CHECK-NOT: nn.quantize_gradient
// CHECK: return
func.func @residual_norm_and_view_before_the_head(
    %w: tensor<8x8xf32> {nn.param = {name = "w"}}, %norm: tensor<8xf32> {nn.param = {name = "norm"}},
    %head: tensor<4x5xf32> {nn.param = {name = "head"}}, %x: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<4x1xf32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.add %x, %0 : tensor<4x8xf32>, tensor<4x8xf32>
  %2, %r = nn.rms_norm %1, %norm eps 0.1 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x1xf32>
  %3 = nn.slice %2 at 4 : tensor<4x8xf32> to tensor<4x4xf32>
  %4 = nn.matmul %3, %head : tensor<4x4xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
  %5, %lse = nn.cross_entropy %4, %targets : tensor<4x5xf32>, tensor<4xi32> -> tensor<4x1xf32>, tensor<4x1xf32>
  return %5 : tensor<4x1xf32>
}
