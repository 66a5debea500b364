// The head of a language model and its loss as one op, whose logits need not exist all at once.
#ifndef GRADC_IR_Nn_LOSS_OPS
#define GRADC_IR_Nn_LOSS_OPS
include "ir/NnBase.td"

def Nn_LinearCrossEntropyOp : Nn_ComputeOp<"linear_cross_entropy", [Differentiable, Fusion, Ranged,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "isModelFlops"]>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecisionClass", "roundInputs", "givesFull"]>]> {
  let summary = "Cross-entropy of a matrix product's rows";
  let description = [{
    The loss of nn.cross_entropy on the logits `input · weight`: one value a row, 0 where the target
    is negative. The logits [rows, columns] are no value of the graph: the chunk-loss pass computes
    them a few rows at a time. `weight` is [features, columns], with `transpose_weight` [columns,
    features]. The logits have the element type of input and weight, the loss is f32. `tf32` is
    nn.matmul's.

    Where the op's gradient is computed in any case, its loss is taken from there (canonicalisation).

    ```mlir
    %loss = nn.linear_cross_entropy %x, %w, %targets transpose_weight
        : tensor<8x64xf32>, tensor<97x64xf32>, tensor<8xi32>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$weight, Nn_Index:$targets,
                       UnitAttr:$transpose_weight, UnitAttr:$tf32);
  let results = (outs Nn_TensorOf<[F32]>:$loss);
  let assemblyFormat = [{
    $input `,` $weight `,` $targets (`transpose_weight` $transpose_weight^)? (`tf32` $tf32^)?
    attr-dict `:` type($input) `,` type($weight) `,` type($targets) `->` type($loss)
  }];
  let extraClassDeclaration = [{
    /// Rows and columns of the logits.
    ::gradc::nn::RowSpace getLogitsSpace();
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Nn_LinearCrossEntropyGradOp : Nn_ComputeOp<"linear_cross_entropy_grad", [Ranged,
    DeclareOpInterfaceMethods<PrecisionOpInterface,
        ["getPrecisionClass", "roundInputs", "givesFull", "mayGiveFull"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "isModelFlops"]>,
    DeclareOpInterfaceMethods<FusionOpInterface, ["absorbSum"]>]> {
  let summary = "Gradients of linear_cross_entropy by input and weight, and its loss";
  let description = [{
    With d = gradient·(softmax(input · weight) - [column = target]), 0 where the target is negative:
    `input_gradient = d · weightᵀ`, `weight_gradient = inputᵀ · d [+ accumulator]`, transposed as
    weight is. `loss` is linear_cross_entropy's: the logits that the gradients need give it, too.
    d has the logits' element type; the gradients are of f32 or of their operand's type, and an
    accumulator is f32, like its result.

    ```mlir
    %dx, %dw, %loss = nn.linear_cross_entropy_grad %g, %x, %w, %targets transpose_weight
        : (tensor<8x1xf32>, tensor<8x64xf32>, tensor<97x64xf32>, tensor<8xi32>)
        -> (tensor<8x64xf32>, tensor<97x64xf32>, tensor<8x1xf32>)
    ```
  }];
  let arguments = (ins Nn_TensorOf<[F32]>:$gradient, Nn_Float:$input, Nn_Float:$weight,
                       Nn_Index:$targets, Optional<Nn_TensorOf<[F32]>>:$accumulator,
                       UnitAttr:$transpose_weight, UnitAttr:$tf32);
  let results = (outs Nn_Float:$input_gradient, Nn_Float:$weight_gradient,
                      Nn_TensorOf<[F32]>:$loss);
  let assemblyFormat = [{
    $gradient `,` $input `,` $weight `,` $targets (`acc` $accumulator^)?
    (`transpose_weight` $transpose_weight^)? (`tf32` $tf32^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Rows and columns of the logits.
    ::gradc::nn::RowSpace getLogitsSpace();
  }];
  let hasVerifier = 1;
}
#endif
