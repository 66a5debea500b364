// RUN: gradc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @grouped_causal_window
func.func @grouped_causal_window(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>)
    -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} batch 2 heads 4 kv_heads 2 scale 2.500000e-01 causal window 3 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 3
      : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  // CHECK: nn.attention_grad {{.*}} batch 2 heads 4 kv_heads 2 scale 2.500000e-01 causal window 3
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %o batch 2 heads 4 kv_heads 2 scale 0.25 causal window 3
      : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>)
      -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
  return %dq, %dk, %dv : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}

// CHECK-LABEL: @documents
func.func @documents(%x: tensor<6x4xf32>, %first: tensor<6xi32>, %seed: tensor<i32>) -> tensor<6x4xf32> {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} first_key(%{{.*}} : tensor<6xi32>) batch 2 heads 1 kv_heads 1 scale 5.000000e-01 causal : tensor<6x4xf32>
  %o, %lse = nn.attention %x, %x, %x first_key(%first : tensor<6xi32>) batch 2 heads 1 kv_heads 1 scale 0.5 causal
      : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>, tensor<2x1x3xf32>
  // CHECK: nn.attention_grad {{.*}} first_key(%{{.*}}) batch 2 heads 1 kv_heads 1 scale 5.000000e-01 causal window 2 dropout 5.000000e-01 random(
  %dq, %dk, %dv = nn.attention_grad %x, %x, %x, %o, %lse, %o first_key(%first) batch 2 heads 1 kv_heads 1 scale 0.5
      causal window 2 dropout 0.5 random(%seed, %seed, %seed, %seed)
      : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<2x1x3xf32>, tensor<6x4xf32>,
         tensor<6xi32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
      -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
  return %dq : tensor<6x4xf32>
}

// CHECK-LABEL: @full
func.func @full(%x: tensor<5x3xbf16>) -> tensor<5x3xbf16> {
  // CHECK-NOT: causal
  // CHECK-NOT: window
  %o, %lse = nn.attention %x, %x, %x batch 1 heads 1 kv_heads 1 scale 1.0
      : tensor<5x3xbf16>, tensor<5x3xbf16>, tensor<5x3xbf16> -> tensor<5x3xbf16>, tensor<1x1x5xf32>
  return %o : tensor<5x3xbf16>
}
