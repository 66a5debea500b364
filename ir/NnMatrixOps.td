// Matrix products, attention, rotary embedding, documents and table look-ups.
#ifndef GRADC_IR_Nn_MATRIX_OPS
#define GRADC_IR_Nn_MATRIX_OPS
include "ir/NnBase.td"

defvar ModelCost = DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "isModelFlops"]>;
defvar StridedFusion = DeclareOpInterfaceMethods<FusionOpInterface, ["takesRowStride"]>;

def Nn_MatmulOp : Nn_ComputeOp<"matmul", [Differentiable, ModelCost, ProductOpInterface,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<PrecisionOpInterface,
        ["getPrecisionClass", "roundInputs", "mayGiveFull", "takesFloat8", "readQuantized"]>,
    DeclareOpInterfaceMethods<FusionOpInterface,
        ["getFusionRole", "getInPlaceOperand", "takesRowStride", "absorbSum",
         "getAccumulatorOperand"]>, DeclareOpInterfaceMethods<PanelsOpInterface>]> {
  let summary = "Matrix product, with transposes, batches and an accumulator";
  let description = [{
    `result = op(lhs) · op(rhs) [+ accumulator]` on the last two dimensions, op being the transpose
    where asked for; leading dimensions are batches and equal. lhs and rhs are of one element type;
    the result is of f32 or of theirs. Sums in f32, rounded to the result once; an accumulator is
    therefore f32, like its result. `tf32`: operands, of f32, are rounded to 10 bits of mantissa
    (nearest, ties to even) as they are read. Reference values are exact: the interpreter, which
    rounds nothing, ignores it.

    Operands of fp8, each of either format, come with the scales by which nn.quantize divided: the
    product is multiplied by both. Such a result is never fp8 itself.

    rhs may lie in panels (#nn.panels), of the matrix op(rhs); the product has the same bits.

    ```mlir
    %y = nn.matmul %x, %w transpose_rhs : tensor<8x64xf32>, tensor<96x64xf32> -> tensor<8x96xf32>
    %g = nn.matmul %x, %dy transpose_lhs acc %g0
        : tensor<8x64xf32>, tensor<8x96xf32> -> tensor<64x96xf32>
    %z = nn.matmul %a, %b : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xf32>
    %q = nn.matmul %a8, %b8 scales %sa, %sb
        : tensor<8x64xf8E5M2>, tensor<64x96xf8E4M3FN> -> tensor<8x96xbf16>
    %p = nn.matmul %x, %panels
        : tensor<8x64xf32>, tensor<64x96xf32, #nn.panels<width = 24, depth_unit = 8>> -> tensor<8x96xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Nn_Float, Nn_Float8]>:$lhs,
                       AnyTypeOf<[Nn_Float, Nn_Float8, Nn_Panels]>:$rhs,
                       Optional<Nn_Float>:$accumulator, Optional<Nn_Scalar>:$lhs_scale,
                       Optional<Nn_Scalar>:$rhs_scale, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs, UnitAttr:$tf32);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?
    (`tf32` $tf32^)? (`scales` $lhs_scale^ `,` $rhs_scale)?
    (`acc` $accumulator^ `:` type($accumulator) )? attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  // The result has the element type of lhs.
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "bool":$transposeLhs,
                                 "bool":$transposeRhs, CArg<"bool", "false">:$tf32)>];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = "void readTransposed(unsigned operand, ::mlir::Value copy);";
}

def Nn_EpilogueMatmulOp : Nn_ComputeOp<"epilogue_matmul", [ModelCost, ProductOpInterface,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<FusionOpInterface,
        ["getFusionRole", "getInPlaceOperand", "takesRowStride", "getAccumulatorOperand"]>]> {
  let summary = "A matrix product, and what becomes of its result as a library writes it";
  let description = [{
    nn.matmul of matrices, with an epilogue. With x what nn.matmul gives, in f32, rounded to the
    result's type only behind the epilogue:

    | epilogue | result | extra |
    |---|---|---|
    | `bias` | x + bias, of an element a column | |
    | `gelu`, `gelu_bias` | GELU (tanh form) of x, or of x + bias | |
    | `gelu_aux`, `gelu_aux_bias` | the same | what the GELU is of, in the result's type |
    | `gelu_gradient` | x · GELU'(aux) | |
    | `gelu_gradient_bias_gradient` | the same | its sums over rows |
    | `bias_gradient_lhs`, `bias_gradient_rhs` | x | that operand's sums over the inner dimension |

    Only the product-epilogues and bias-gradients passes make it, for targets whose library takes
    such products.

    ```mlir
    %h, %a = nn.epilogue_matmul %x, %w epilogue gelu_aux_bias bias(%b : tensor<96xbf16>)
        : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>, tensor<8x96xbf16>
    %dw, %db = nn.epilogue_matmul %x, %dy transpose_lhs epilogue bias_gradient_rhs
        : tensor<8x64xbf16>, tensor<8x96xbf16> -> tensor<64x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Nn_Float, Nn_Float8]>:$lhs, AnyTypeOf<[Nn_Float, Nn_Float8]>:$rhs,
                       Optional<Nn_Float>:$accumulator, Optional<Nn_Scalar>:$lhs_scale,
                       Optional<Nn_Scalar>:$rhs_scale, Optional<Nn_Float>:$bias, Optional<Nn_Float>:$aux,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs, UnitAttr:$tf32,
                       Nn_EpilogueAttr:$epilogue);
  let results = (outs Nn_Float:$result, Optional<Nn_Float>:$extra);
  let assemblyFormat = [{
    $lhs `,` $rhs (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?
    (`tf32` $tf32^)? (`scales` $lhs_scale^ `,` $rhs_scale)? (`acc` $accumulator^ `:` type($accumulator) )?
    `epilogue` $epilogue (`bias` `(` $bias^ `:` type($bias) `)`)? (`aux` `(` $aux^ `:` type($aux) `)`)?
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($result) (`,` type($extra)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "void readTransposed(unsigned operand, ::mlir::Value copy);";
}

def Nn_PackPanelsOp : Nn_KernelOp<"pack_panels", [Fusion,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "A matrix in panels, as products read it";
  let description = [{
    Each result is the input's values in the memory layout that its type says: what a product would
    do with the operand at each of its runs, done once. All layouts are made in one pass over the
    input. The reference value is the input (tf32's rounding is the kernel's, as it is a product's).

    ```mlir
    %p, %t = nn.pack_panels %w : tensor<64x96xf32>
        to tensor<64x96xf32, #nn.panels<width = 24, depth_unit = 8>>,
           tensor<64x96xf32, #nn.panels<width = 24, depth_unit = 8, transposed = true>>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Variadic<Nn_Panels>:$results);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($results)";
  let hasVerifier = 1;
}

def Nn_AttentionOp : Nn_KernelOp<"attention", [Differentiable, RunsLow, ModelCost, StridedFusion, Ranged,
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<StochasticOpInterface>]> {
  let summary = "Scaled dot-product attention of grouped heads";
  let description = [{
    For each batch b and head h, on matrices of head_dim columns:
    `result = softmax(scale · q·kᵀ, masked) · v`; heads / kv_heads query heads share a key head.
    `causal`: query i sees keys j <= i and, with a `window w` (0: none), j > i - w. A row that sees
    nothing gives 0. `lse` [batch, heads, seq] is the log of the softmax's sum, for the backward.
    `first_key` [tokens]: besides, query i sees no key before its own number there, a position in its
    row: where its document starts (nn.documents). What a mask hides has no effect, whatever it holds.
    `dropout`: the softmax's results pass through nn.dropout before v; the element index is that of
    [batch, heads, seq, seq], the first batch being `first_row` / seq.

    query [tokens, heads·head_dim], key and value [tokens, kv_heads·head_dim], tokens = batch·seq.

    ```mlir
    %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal
        : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<2x4x8xf32>
    %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 4 scale 0.25 causal
        dropout 0.1 random(%seed, %step, %first_row, %stream) : …
    %o, %lse = nn.attention %q, %k, %v first_key(%first : tensor<16xi32>) batch 2 heads 4 kv_heads 4
        scale 0.25 causal : …
    ```
  }];
  let arguments = (ins Nn_Float:$query, Nn_Float:$key, Nn_Float:$value,
                       Optional<Nn_Index>:$first_key, Optional<Nn_IndexScalar>:$seed, Optional<Nn_IndexScalar>:$step,
                       Optional<Nn_IndexScalar>:$first_row, Optional<Nn_IndexScalar>:$stream, I64Attr:$batch, I64Attr:$heads,
                       I64Attr:$kv_heads, F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout);
  let results = (outs Nn_Float:$result, Nn_TensorOf<[F32]>:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`first_key` `(` $first_key^ `:` type($first_key) `)`)?
    `batch` $batch `heads` $heads `kv_heads` $kv_heads `scale` $scale (`causal` $causal^)? (`window` $window^)?
    (`dropout` $dropout^ `random` `(` $seed `,` $step `,` $first_row `,` $stream `)`)?
    attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def Nn_AttentionGradOp : Nn_KernelOp<"attention_grad", [RunsLow, ModelCost, StridedFusion,
    AttrSizedOperandSegments]> {
  let summary = "Gradients of attention by query, key and value";
  let description = [{
    With P recomputed from lse and D = rowsum(gradient ∘ output): dv = Pᵀ·gradient,
    dS = P ∘ (gradient·vᵀ - D), dq = scale·dS·k, dk = scale·dSᵀ·q. With dropout's factors M:
    dv = (P∘M)ᵀ·gradient, dS = P ∘ ((gradient·vᵀ)∘M - D).
  }];
  let arguments = (ins Nn_Float:$query, Nn_Float:$key, Nn_Float:$value, Nn_Float:$output,
                       Nn_TensorOf<[F32]>:$lse, Nn_Float:$gradient,
                       Optional<Nn_Index>:$first_key, Optional<Nn_IndexScalar>:$seed, Optional<Nn_IndexScalar>:$step,
                       Optional<Nn_IndexScalar>:$first_row, Optional<Nn_IndexScalar>:$stream, I64Attr:$batch, I64Attr:$heads,
                       I64Attr:$kv_heads, F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout);
  let results = (outs Nn_Float:$query_gradient, Nn_Float:$key_gradient, Nn_Float:$value_gradient);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $output `,` $lse `,` $gradient
    (`first_key` `(` $first_key^ `)`)? `batch` $batch `heads` $heads `kv_heads` $kv_heads `scale` $scale
    (`causal` $causal^)? (`window` $window^)?
    (`dropout` $dropout^ `random` `(` $seed `,` $step `,` $first_row `,` $stream `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_RopeOp : Nn_KernelOp<"rope", [Differentiable, Precision, Cost, Ranged,
    DeclareOpInterfaceMethods<FusionOpInterface, ["getInPlaceOperand", "takesRowStride"]>,
    AllTypesMatch<["input", "result"]>, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "Rotary position embedding, half-split";
  let description = [{
    Each head's row (a, b), halves of head_dim, becomes (a·cos - b·sin, b·cos + a·sin) with the
    tables' row at the token's position: where it stands in its sequence (token mod seq) or, with
    `positions` [tokens], its number there. `inverse` rotates back, which is the gradient.

    ```mlir
    %y = nn.rope %x, %cos, %sin heads 4 : tensor<16x64xf32>, tensor<8x8xf32>
    %y = nn.rope %x, %cos, %sin positions(%p : tensor<16xi32>) heads 4 : tensor<16x64xf32>, tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_TensorOf<[F32]>:$cos, Nn_TensorOf<[F32]>:$sin,
                       Optional<Nn_Index>:$positions, I64Attr:$heads, UnitAttr:$inverse);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin (`positions` `(` $positions^ `:` type($positions) `)`)? `heads` $heads
    (`inverse` $inverse^)? attr-dict `:` type($input) `,` type($cos)
  }];
  let hasVerifier = 1;
}

def Nn_DocumentsOp : Nn_KernelOp<"documents", [Precision, Cost, Fusion,
    AllTypesMatch<["tokens", "first_key", "positions"]>]> {
  let summary = "Where the documents of packed rows begin";
  let description = [{
    Rows of `seq` tokens hold documents one after another, each up to and with a token `separator`;
    a row's first token begins a document whatever was before it. `first_key[n]` is the position in
    its row of the first token of token n's document, `positions[n]` how many tokens of its document
    are before it.

    ```mlir
    // with tokens 5 0 6 7 in a row: first_key 0 0 2 2, positions 0 1 0 1
    %first, %positions = nn.documents %tokens seq 4 separator 0 : tensor<8xi32>
    ```
  }];
  let arguments = (ins Nn_Index:$tokens, I64Attr:$seq, I64Attr:$separator);
  let results = (outs Nn_Index:$first_key, Nn_Index:$positions);
  let assemblyFormat = "$tokens `seq` $seq `separator` $separator attr-dict `:` type($tokens)";
  let hasVerifier = 1;
}

def Nn_EmbeddingOp : Nn_KernelOp<"embedding", [Differentiable, Precision, Cost, Fusion, Ranged]> {
  let summary = "Rows of a table";
  let description = [{
    `result[n] = table[indices[n]]`; a negative index gives a row of zeros. The result may be of
    another float type than the table.

    ```mlir
    %x = nn.embedding %tokens, %table : tensor<8xi32>, tensor<97x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Nn_Index:$indices, Nn_Float:$table);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$indices `,` $table attr-dict `:` type($indices) `,` type($table) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_EmbeddingGradOp : Nn_KernelOp<"embedding_grad", [Precision, Cost, Ranged,
    DeclareOpInterfaceMethods<FusionOpInterface, ["getInPlaceOperand", "absorbSum", "getAccumulatorOperand"]>]> {
  let summary = "Gradient of embedding by its table";
  let description = [{
    `result[indices[n]] += gradient[n]`, n in order, on zeros or on `accumulator`. The sums are f32
    whatever the gradient's type.
  }];
  let arguments = (ins Nn_Index:$indices, Nn_Float:$gradient,
                       Optional<Nn_TensorOf<[F32]>>:$accumulator);
  let results = (outs Nn_TensorOf<[F32]>:$result);
  let assemblyFormat = [{
    $indices `,` $gradient (`acc` $accumulator^ `:` type($accumulator))? attr-dict
    `:` type($indices) `,` type($gradient) `->` type($result)
  }];
  let hasVerifier = 1;
}
#endif
