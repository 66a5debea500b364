// RUN: gradc compile %s --target cuda:sm_80 --emit exec -o %t.gpu
// RUN: FileCheck %s < %t.gpu
// RUN: gradc compile %s --emit exec -o %t.cpu
// RUN: FileCheck %s --check-prefix CPU < %t.cpu

// Long rows that no vector divides begin at whole vectors on a GPU, for its kernels and products alike;
// gradients still take the place of what they are gradients of. Short rows lie as they always do.
// CHECK: exec.gemm m 8 n 4099 {{.*}} c <<arena, [[LOGITS:[0-9]+]], bytes 131196>, f32, rows 4100
// CHECK: exec.launch @cross_entropy{{[a-z_0-9]*}} {{.*}}<arena, [[LOGITS]], bytes 131196>]
// CHECK: exec.kernel @cross_entropy_k{{.*}} strides [4100,
// CPU-NOT: 4100

module attributes {nn.model = {family = "mlp", vocab = 4099, max_positions = 8}} {
func.func @loss(
    %embed: tensor<4099x5xf32> {nn.param = {name = "embed"}},
    %head: tensor<5x4099xf32> {nn.param = {name = "head"}},
    %tokens: tensor<8xi32>, %targets: tensor<8xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %embed : tensor<8xi32>, tensor<4099x5xf32> -> tensor<8x5xf32>
  %logits = nn.matmul %x, %head : tensor<8x5xf32>, tensor<5x4099xf32> -> tensor<8x4099xf32>
  %each, %lse = nn.cross_entropy %logits, %targets
      : tensor<8x4099xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  %loss = nn.sum %each : tensor<8x1xf32>
  return %loss : tensor<f32>
}
}
