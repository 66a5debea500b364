// RUN: gradc compile %s --target cuda:sm_80 --emit exec -o %t.exec
// RUN: FileCheck %s < %t.exec
// RUN: gradc compile %s --emit exec -o %t.cpu
// RUN: FileCheck %s --check-prefix CPU < %t.cpu

// Slices that begin at odd columns of a wider matrix, whose rows are whole vectors: kernels for GPUs
// know what their operands are aligned to. The CPU's take any address, and so does the plan for it.
// CHECK-DAG: exec.kernel @rope{{.*}} strides [101, {{.*}}] aligned [4,
// CHECK-DAG: exec.kernel @add_activation{{.*}} strides [101, {{.*}}] aligned [4,
// CHECK-DAG: exec.kernel @attention_k{{.*}} strides [100, 100, 100, {{.*}}] aligned [4, 4, 4,
// CPU-NOT: aligned

module attributes {nn.model = {family = "slices", vocab = 97, max_positions = 24, micro_batch = 2, seq = 24}} {
func.func @loss(
    %embed: tensor<97x24xf32> {nn.param = {name = "embed"}},
    %wide: tensor<24x101xf32> {nn.param = {name = "wide", init_std = 0.2}},
    %inner: tensor<48x24xf32> {nn.param = {name = "inner", init_std = 0.2}},
    %packed: tensor<24x100xf32> {nn.param = {name = "packed", init_std = 0.2}},
    %head: tensor<32x97xf32> {nn.param = {name = "head", init_std = 0.2}},
    %tokens: tensor<48xi32>, %targets: tensor<48xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %embed : tensor<48xi32>, tensor<97x24xf32> -> tensor<48x24xf32>
  %a = nn.matmul %x, %wide : tensor<48x24xf32>, tensor<24x101xf32> -> tensor<48x101xf32>
  %part = nn.slice %a at 1 : tensor<48x101xf32> to tensor<48x48xf32>
  %turned = nn.slice %a at 53 : tensor<48x101xf32> to tensor<48x48xf32>
  %cos = nn.constant dense<0.8> : tensor<24x8xf32>
  %sin = nn.constant dense<0.6> : tensor<24x8xf32>
  %rope = nn.rope %turned, %cos, %sin heads 3 : tensor<48x48xf32>, tensor<24x8xf32>
  %sum = nn.add %part, %rope : tensor<48x48xf32>, tensor<48x48xf32>
  %b = nn.activation silu %sum : tensor<48x48xf32>
  %c = nn.matmul %b, %inner : tensor<48x48xf32>, tensor<48x24xf32> -> tensor<48x24xf32>
  %qkv = nn.matmul %c, %packed : tensor<48x24xf32>, tensor<24x100xf32> -> tensor<48x100xf32>
  %q = nn.slice %qkv at 1 : tensor<48x100xf32> to tensor<48x32xf32>
  %k = nn.slice %qkv at 33 : tensor<48x100xf32> to tensor<48x32xf32>
  %v = nn.slice %qkv at 65 : tensor<48x100xf32> to tensor<48x32xf32>
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 2 kv_heads 2 scale 0.25 causal
      : tensor<48x32xf32>, tensor<48x32xf32>, tensor<48x32xf32> -> tensor<48x32xf32>, tensor<2x2x24xf32>
  %logits = nn.matmul %o, %head : tensor<48x32xf32>, tensor<32x97xf32> -> tensor<48x97xf32>
  %each, %lses = nn.cross_entropy %logits, %targets
      : tensor<48x97xf32>, tensor<48xi32> -> tensor<48x1xf32>, tensor<48x1xf32>
  %loss = nn.sum %each : tensor<48x1xf32>
  return %loss : tensor<f32>
}
}
