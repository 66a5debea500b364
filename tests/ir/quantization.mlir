// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @scales
func.func @scales(%x: tensor<8x64xbf16>, %r: tensor<f32>) {
  // CHECK: %[[A:.*]] = nn.row_amax %{{.*}} : tensor<8x64xbf16> -> tensor<8x1xf32>
  %a = nn.row_amax %x : tensor<8x64xbf16> -> tensor<8x1xf32>
  // CHECK: nn.scale_of_amax %[[A]] for f8E4M3FN : tensor<8x1xf32>
  %s = nn.scale_of_amax %a for f8E4M3FN : tensor<8x1xf32>
  // CHECK: nn.scale_of_amax %{{.*}} for f8E5M2 : tensor<f32>
  %t = nn.scale_of_amax %r for f8E5M2 : tensor<f32>
  return
}

// CHECK-LABEL: @numbers
func.func @numbers(%x: tensor<8x64xf32>, %s: tensor<f32>, %r: tensor<f32>, %a: tensor<8x1xf32>) {
  // CHECK: nn.quantize %{{.*}} by %{{.*}} : tensor<8x64xf32> to tensor<8x64xf8E5M2>
  %0 = nn.quantize %x by %s : tensor<8x64xf32> to tensor<8x64xf8E5M2>
  // CHECK: nn.fake_quantize %{{.*}} by %{{.*}} in f8E4M3FN : tensor<8x64xf32> to tensor<8x64xbf16>
  %1 = nn.fake_quantize %x by %s in f8E4M3FN : tensor<8x64xf32> to tensor<8x64xbf16>
  // CHECK: nn.fake_quantize %{{.*}} by %{{.*}} in f8E4M3FN record %{{.*}} of %{{.*}} : tensor<8x1xf32> : tensor<8x64xf32> to tensor<8x64xf32>
  %2 = nn.fake_quantize %x by %s in f8E4M3FN record %r of %a : tensor<8x1xf32> : tensor<8x64xf32> to tensor<8x64xf32>
  // CHECK: nn.quantize_gradient %{{.*}} in f8E5M2 : tensor<8x64xf32>
  %3 = nn.quantize_gradient %x in f8E5M2 : tensor<8x64xf32>
  // CHECK: nn.quantize_gradient %{{.*}} in f8E5M2 record %{{.*}} : tensor<8x64xf32>
  %4 = nn.quantize_gradient %x in f8E5M2 record %r : tensor<8x64xf32>
  return
}
