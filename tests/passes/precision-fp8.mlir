// RUN: gradc-opt %s --precision=mode=fp8 --verify-values | FileCheck %s
// RUN: gradc-opt %s --precision="mode=fp8 delayed-scaling" | FileCheck %s --check-prefix=DELAYED

// A hidden layer runs in fp8: the weight is quantized from f32, the activation from bf16, and its
// result's gradient will be. The logits, which the loss reads, are of bf16.
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[W:.*]]: tensor<8x16xf32> {{.*}}, %[[H:.*]]: tensor<16x5xf32> {{.*}}, %[[X:.*]]: tensor<4x8xf32>
// CHECK-DAG: %[[HL:.*]] = nn.cast %[[H]] : tensor<16x5xf32> to tensor<16x5xbf16>
// CHECK-DAG: %[[WA:.*]] = nn.row_amax %[[W]] : tensor<8x16xf32> -> tensor<8x1xf32>
// CHECK-DAG: %[[WS:.*]] = nn.scale_of_amax %[[WA]] for f8E4M3FN : tensor<8x1xf32>
// CHECK-DAG: %[[WQ:.*]] = nn.fake_quantize %[[W]] by %[[WS]] in f8E4M3FN : tensor<8x16xf32> to tensor<8x16xbf16>
// CHECK-DAG: %[[XL:.*]] = nn.cast %[[X]] : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK-DAG: %[[XA:.*]] = nn.row_amax %[[XL]] : tensor<4x8xbf16> -> tensor<4x1xf32>
// CHECK-DAG: %[[XS:.*]] = nn.scale_of_amax %[[XA]] for f8E4M3FN : tensor<4x1xf32>
// CHECK-DAG: %[[XQ:.*]] = nn.fake_quantize %[[XL]] by %[[XS]] in f8E4M3FN : tensor<4x8xbf16> to tensor<4x8xbf16>
// CHECK: %[[Y:.*]] = nn.matmul %[[XQ]], %[[WQ]] : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
// CHECK: %[[Z:.*]] = nn.quantize_gradient %[[Y]] in f8E5M2 : tensor<4x16xbf16>
// CHECK: %[[A:.*]] = nn.activation relu %[[Z]] : tensor<4x16xbf16>
// CHECK: nn.matmul %[[A]], %[[HL]] : tensor<4x16xbf16>, tensor<16x5xbf16>

// Records come behind the parameters; the weight's scale stays one of its own magnitudes.
// DELAYED-LABEL: func.func @loss(
// DELAYED-SAME: %[[IN:[a-z0-9]*]]: tensor<f32> {nn.record = {name = "w", slot = "input_amax"}}
// DELAYED-SAME: %[[OUT:[a-z0-9]*]]: tensor<f32> {nn.record = {name = "w", slot = "gradient_amax"}}
// DELAYED-SAME: %[[X:[a-z0-9]*]]: tensor<4x8xf32>
// DELAYED: nn.scale_of_amax %{{.*}} for f8E4M3FN : tensor<8x1xf32>
// DELAYED: %[[XA:.*]] = nn.row_amax %{{.*}} : tensor<4x8xbf16>
// DELAYED: %[[XROW:.*]] = nn.reshape %[[XA]] : tensor<4x1xf32> to tensor<1x4xf32>
// DELAYED: %[[XMAX:.*]] = nn.row_amax %[[XROW]] : tensor<1x4xf32> -> tensor<1x1xf32>
// DELAYED: %[[XNEXT:.*]] = nn.reshape %[[XMAX]] : tensor<1x1xf32> to tensor<f32>
// DELAYED: %[[XS:.*]] = nn.scale_of_amax %[[IN]] for f8E4M3FN : tensor<f32>
// DELAYED: nn.fake_quantize %{{.*}} by %[[XS]] in f8E4M3FN record %[[IN]] of %[[XNEXT]] : tensor<f32>
// DELAYED: nn.quantize_gradient %{{.*}} in f8E5M2 record %[[OUT]]
func.func @loss(%w: tensor<8x16xf32> {nn.param = {name = "w"}}, %head: tensor<16x5xf32> {nn.param = {name = "head"}},
                %x: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = nn.activation relu %0 : tensor<4x16xf32>
  %2 = nn.matmul %1, %head : tensor<4x16xf32>, tensor<16x5xf32> -> tensor<4x5xf32>
  %3, %lse = nn.cross_entropy %2, %targets : tensor<4x5xf32>, tensor<4xi32> -> tensor<4x1xf32>, tensor<4x1xf32>
  %4 = nn.sum %3 : tensor<4x1xf32>
  return %4 : tensor<f32>
}
