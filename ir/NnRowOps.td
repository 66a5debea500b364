// Ops whose rows are reduced: norms, softmax, cross-entropy, and the sums of gradients.
#ifndef GRADC_IR_Nn_ROW_OPS
#define GRADC_IR_Nn_ROW_OPS
include "ir/NnBase.td"

defvar RowWithKinds = DeclareOpInterfaceMethods<RowOpInterface, ["getOperandKind", "getResultKind"]>;
defvar RowWithResultKind = DeclareOpInterfaceMethods<RowOpInterface, ["getResultKind"]>;
defvar RowWithSpace = DeclareOpInterfaceMethods<RowOpInterface,
    ["getRowSpace", "getOperandKind", "getResultKind"]>;

// Computes in fp32 and widens what it reads itself.
defvar FullOfNarrow = DeclareOpInterfaceMethods<PrecisionOpInterface,
    ["getPrecisionClass", "takesNarrow"]>;

def Nn_LayerNormOp : Nn_RowOp<"layer_norm", [RowWithResultKind, Differentiable, Precision,
    AllTypesMatch<["input", "result"]>, AllTypesMatch<["mean", "rstd"]>]> {
  let summary = "Layer normalisation of each row";
  let description = [{
    `result = (input - mean) * rstd * weight + bias`, with mean and rstd = 1/sqrt(variance + epsilon)
    of each row, which the backward reads; the variance is the biased one.

    ```mlir
    %y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-5
        : tensor<8x64xf32>, tensor<64xf32> -> tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$weight, Nn_Float:$bias, F64Attr:$epsilon);
  let results = (outs Nn_Float:$result, Nn_Float:$mean, Nn_Float:$rstd);
  let assemblyFormat = [{
    $input `,` $weight `,` $bias `eps` $epsilon attr-dict `:` type($input) `,` type($weight) `,` type($bias) `->` type($mean)
  }];
  let hasVerifier = 1;
}

def Nn_LayerNormGradOp : Nn_RowOp<"layer_norm_grad", [Row, Precision,
    AllTypesMatch<["gradient", "input", "result"]>]> {
  let summary = "Gradient of layer_norm by its input";
  let description = [{
    With x̂ = (input - mean)·rstd and g = gradient·weight: `result = rstd·(g - mean(g) - x̂·mean(g·x̂))`.
  }];
  let arguments = (ins Nn_Float:$gradient, Nn_Float:$input, Nn_Float:$weight, Nn_Float:$mean,
                       Nn_Float:$rstd);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{ $gradient `,` $input `,` $weight `,` $mean `,` $rstd attr-dict `:`
    type($input) `,` type($weight) `,` type($mean) `,` type($rstd) }];
}

def Nn_RmsNormOp : Nn_RowOp<"rms_norm", [RowWithResultKind, Differentiable, Precision,
    AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square normalisation of each row";
  let description = [{
    `result = input * rstd * weight`, rstd = 1/sqrt(mean(input²) + epsilon).
  }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$weight, F64Attr:$epsilon);
  let results = (outs Nn_Float:$result, Nn_Float:$rstd);
  let assemblyFormat = [{
    $input `,` $weight `eps` $epsilon attr-dict `:` type($input) `,` type($weight) `->` type($rstd)
  }];
  let hasVerifier = 1;
}

def Nn_RmsNormGradOp : Nn_RowOp<"rms_norm_grad", [Row, Precision,
    AllTypesMatch<["gradient", "input", "result"]>]> {
  let summary = "Gradient of rms_norm by its input";
  let description = [{
    With x̂ = input·rstd and g = gradient·weight: `result = rstd·(g - x̂·mean(g·x̂))`.
  }];
  let arguments = (ins Nn_Float:$gradient, Nn_Float:$input, Nn_Float:$weight, Nn_Float:$rstd);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{ $gradient `,` $input `,` $weight `,` $rstd attr-dict `:`
    type($input) `,` type($weight) `,` type($rstd) }];
}

def Nn_SoftmaxOp : Nn_RowOp<"softmax", [Row, Differentiable, StaysFull, SameOperandsAndResultType]> {
  let summary = "Softmax of each row";
  let description = "`exp(input - max) / sum(exp(input - max))`. A row of -inf gives 0.";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Nn_SoftmaxGradOp : Nn_RowOp<"softmax_grad", [Row, StaysFull, SameOperandsAndResultType]> {
  let summary = "Gradient of softmax";
  let description = "`result = output·(gradient - sum(gradient·output))`.";
  let arguments = (ins Nn_Float:$gradient, Nn_Float:$output);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$gradient `,` $output attr-dict `:` type($output)";
}

def Nn_CrossEntropyOp : Nn_RowOp<"cross_entropy", [RowWithSpace, Differentiable, FullOfNarrow, Ranged]> {
  let summary = "Negative log-likelihood of each row's target";
  let description = [{
    `loss = lse - logits[target]` with lse = log(sum(exp(logits))); 0 where target is negative, which
    marks a position without a label.

    ```mlir
    %loss, %lse = nn.cross_entropy %logits, %targets : tensor<8x97xf32>, tensor<8xi32> -> tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$logits, Nn_Index:$targets);
  let results = (outs Nn_Float:$loss, Nn_Float:$lse);
  let assemblyFormat = [{
    $logits `,` $targets attr-dict `:` type($logits) `,` type($targets) `->` type($loss) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def Nn_CrossEntropyGradOp : Nn_RowOp<"cross_entropy_grad", [RowWithKinds, FullOfNarrow, Ranged,
    AllTypesMatch<["logits", "result"]>]> {
  let summary = "Gradient of cross_entropy by the logits";
  let description = [{
    `result = gradient·(exp(logits - lse) - [column = target])`; 0 where target is negative.
  }];
  let arguments = (ins Nn_Float:$gradient, Nn_Float:$logits, Nn_Index:$targets, Nn_Float:$lse);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{ $gradient `,` $logits `,` $targets `,` $lse attr-dict `:`
    type($gradient) `,` type($logits) `,` type($targets) `,` type($lse) }];
}

def Nn_RowSumOp : Nn_RowOp<"row_sum", [RowWithSpace, Differentiable, StaysFull]> {
  let summary = "Sum of each row";
  let description = [{
    ```mlir
    %s = nn.row_sum %x : tensor<8x64xf32> -> tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Nn_ColumnPartialsOp : Nn_RowOp<"column_partials", [RowWithSpace, StaysFull, EpilogueStep]> {
  let summary = "Sums of the columns over each chunk of rows";
  let description = [{
    The first half of a sum over rows: row r goes to entry r / 64 of the result. `nn.fold_rows` adds
    the entries in order, so that the sum's order, and every bit, is the same for any number of
    threads.

    ```mlir
    %p = nn.column_partials %dy : tensor<100x64xf32> -> tensor<2x64xf32>
    %db = nn.fold_rows %p : tensor<2x64xf32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_TensorOf<[F32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_CountValidOp : Nn_RowOp<"count_valid", [RowWithSpace, Ranged]> {
  let summary = "Number of targets that are labels";
  let description = "How many entries are not negative, as f32 (exact below 2^24).";
  let arguments = (ins Nn_Index:$targets);
  let results = (outs Nn_Scalar:$result);
  let assemblyFormat = "$targets attr-dict `:` type($targets)";
}

def Nn_FoldRowsOp : Nn_KernelOp<"fold_rows", [Fusion, Cost, StaysFull, Differentiable, EpilogueStep]> {
  let summary = "Sum over rows, in row order";
  let arguments = (ins Nn_TensorOf<[F32]>:$input);
  let results = (outs Nn_TensorOf<[F32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_SumOp : Nn_KernelOp<"sum", [Fusion, Cost, StaysFull, Differentiable]> {
  let summary = "Sum of all elements, in order";
  let arguments = (ins Nn_TensorOf<[F32]>:$input);
  let results = (outs Nn_Scalar:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Nn_SquareSumsOp : Nn_KernelOp<"square_sums", [Fusion, Cost, StaysFull]> {
  let summary = "Sums of squares of chunks of 16384 elements";
  let description = [{
    The first half of a gradient norm: `nn.sum` adds the entries in order.

    ```mlir
    %p = nn.square_sums %g : tensor<768x768xf32> -> tensor<36xf32>
    ```
  }];
  let arguments = (ins Nn_TensorOf<[F32]>:$input);
  let results = (outs Nn_TensorOf<[F32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
#endif
