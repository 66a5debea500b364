// A language model of one hidden layer over bytes: from each byte it guesses the next.
//
// The module holds @loss, which training needs, and @logits, which generating needs. Both take the
// parameters first, in the same order; each has an `nn.param` with its name in saved files. Shapes
// are fixed: here 8 rows of 128 bytes, 1024 tokens in one row after another.

module attributes {nn.model = {family = "byte-mlp", vocab = 256, max_positions = 128}} {

// Parameters, tokens, targets -> the sum of the loss over all targets that are not negative.
func.func @loss(
    %embed:  tensor<256x64xf32>  {nn.param = {name = "embed.weight", class = "embedding"}},
    %inner:  tensor<64x128xf32>  {nn.param = {name = "inner.weight", init_std = 0.1}},
    %bias:   tensor<128xf32>     {nn.param = {name = "inner.bias"}},
    %head:   tensor<128x256xf32> {nn.param = {name = "head.weight"}},
    %tokens: tensor<1024xi32>, %targets: tensor<1024xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %embed : tensor<1024xi32>, tensor<256x64xf32> -> tensor<1024x64xf32>
  %product = nn.matmul %x, %inner : tensor<1024x64xf32>, tensor<64x128xf32> -> tensor<1024x128xf32>
  %sum = nn.add %product, %bias : tensor<1024x128xf32>, tensor<128xf32>
  %hidden = nn.activation relu %sum : tensor<1024x128xf32>
  %logits = nn.matmul %hidden, %head
      : tensor<1024x128xf32>, tensor<128x256xf32> -> tensor<1024x256xf32>
  %each, %lse = nn.cross_entropy %logits, %targets
      : tensor<1024x256xf32>, tensor<1024xi32> -> tensor<1024x1xf32>, tensor<1024x1xf32>
  %loss = nn.sum %each : tensor<1024x1xf32>
  return %loss : tensor<f32>
}

// Parameters, one row of tokens, the position wanted -> its logits.
func.func @logits(
    %embed:  tensor<256x64xf32>  {nn.param = {name = "embed.weight", class = "embedding"}},
    %inner:  tensor<64x128xf32>  {nn.param = {name = "inner.weight", init_std = 0.1}},
    %bias:   tensor<128xf32>     {nn.param = {name = "inner.bias"}},
    %head:   tensor<128x256xf32> {nn.param = {name = "head.weight"}},
    %tokens: tensor<128xi32>, %position: tensor<1xi32>) -> tensor<1x256xf32> {
  %all = nn.embedding %tokens, %embed : tensor<128xi32>, tensor<256x64xf32> -> tensor<128x64xf32>
  // Rows do not mix in this model, so the one that is wanted is picked at once.
  %x = nn.embedding %position, %all : tensor<1xi32>, tensor<128x64xf32> -> tensor<1x64xf32>
  %product = nn.matmul %x, %inner : tensor<1x64xf32>, tensor<64x128xf32> -> tensor<1x128xf32>
  %sum = nn.add %product, %bias : tensor<1x128xf32>, tensor<128xf32>
  %hidden = nn.activation relu %sum : tensor<1x128xf32>
  %logits = nn.matmul %hidden, %head
      : tensor<1x128xf32>, tensor<128x256xf32> -> tensor<1x256xf32>
  return %logits : tensor<1x256xf32>
}

}
