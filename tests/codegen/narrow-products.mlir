// RUN: gradc compile %s --gemm library --emit exec -o %t.library
// RUN: FileCheck %s < %t.library
// RUN: gradc compile %s -o %t.exe | FileCheck %s --check-prefix EXE

// The library multiplies f32 alone: products of narrow operands, and of rounded ones, are kernels
// whatever makes the others.
// CHECK: exec.program @train_step
// CHECK: exec.gemm m 8 n 16 k 4
// CHECK-NOT: exec.gemm
// CHECK: exec.launch @[[ROUNDED:matmul_k[0-9]+]] {{.*}} product
// CHECK-NOT: exec.gemm
// CHECK: exec.launch @[[NARROW:matmul_k[0-9]+]] {{.*}} product
// CHECK: exec.kernel @[[ROUNDED]]
// CHECK: nn.matmul {{.*}} tf32 : tensor<8x16xf32>
// CHECK: exec.kernel @[[NARROW]]
// CHECK: nn.matmul {{.*}} : tensor<8x12xbf16>
// EXE: wrote

module attributes {nn.model = {family = "mlp", vocab = 12, max_positions = 8}} {
func.func @loss(
    %embed: tensor<12x4xf32> {nn.param = {name = "embed"}},
    %first: tensor<4x16xf32> {nn.param = {name = "first"}},
    %second: tensor<16x12xf32> {nn.param = {name = "second"}},
    %third: tensor<12x12xf32> {nn.param = {name = "third"}},
    %tokens: tensor<8xi32>, %targets: tensor<8xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %embed : tensor<8xi32>, tensor<12x4xf32> -> tensor<8x4xf32>
  %a = nn.matmul %x, %first : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
  %b = nn.matmul %a, %second tf32 : tensor<8x16xf32>, tensor<16x12xf32> -> tensor<8x12xf32>
  %c = nn.cast %b : tensor<8x12xf32> to tensor<8x12xbf16>
  %w = nn.cast %third : tensor<12x12xf32> to tensor<12x12xbf16>
  %logits = nn.matmul %c, %w : tensor<8x12xbf16>, tensor<12x12xbf16> -> tensor<8x12xf32>
  %each, %lse = nn.cross_entropy %logits, %targets
      : tensor<8x12xf32>, tensor<8xi32> -> tensor<8x1xf32>, tensor<8x1xf32>
  %loss = nn.sum %each : tensor<8x1xf32>
  return %loss : tensor<f32>
}
}
