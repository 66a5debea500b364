// What makes a training step of a loss: optimizer updates, the loop over microbatches, and the
// cluster that fusion forms.
#ifndef GRADC_IR_Nn_TRAINING_OPS
#define GRADC_IR_Nn_TRAINING_OPS
include "ir/NnBase.td"

def Nn_AdamwOp : Nn_RowOp<"adamw", [Row, Ranged, AllTypesMatch<["parameter", "new_parameter"]>,
    AllTypesMatch<["exp_avg", "exp_avg_sq", "new_exp_avg", "new_exp_avg_sq"]>]> {
  let summary = "AdamW update of one parameter";
  let description = [{
    With g = gradient·gradient_scale (the clip coefficient):
    m' = beta1·m + (1-beta1)·g; v' = beta2·v + (1-beta2)·g²;
    p' = p - lr·decay·weight_decay·p - lr·(m'/correction1) / (sqrt(v'/correction2) + eps),
    correction_i = 1 - beta_i^t. `decay` is 0 for biases and norms.
    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2.
  }];
  let arguments = (ins Nn_Float:$parameter, Nn_Float:$gradient, Nn_Float:$exp_avg, Nn_Float:$exp_avg_sq,
                       Nn_Scalar:$gradient_scale, Nn_Scalar:$learning_rate, Nn_Scalar:$beta1,
                       Nn_Scalar:$beta2, Nn_Scalar:$eps, Nn_Scalar:$weight_decay,
                       Nn_Scalar:$correction1, Nn_Scalar:$correction2, BoolAttr:$decay);
  let results = (outs Nn_Float:$new_parameter, Nn_Float:$new_exp_avg, Nn_Float:$new_exp_avg_sq);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_SgdOp : Nn_RowOp<"sgd", [Row, Ranged, AllTypesMatch<["parameter", "new_parameter"]>,
    AllTypesMatch<["momentum", "new_momentum"]>]> {
  let summary = "SGD with momentum, update of one parameter";
  let description = [{
    With g = gradient·gradient_scale + decay·weight_decay·p: u' = beta1·u + g; p' = p - lr·u'.
  }];
  let arguments = (ins Nn_Float:$parameter, Nn_Float:$gradient, Nn_Float:$momentum,
                       Nn_Scalar:$gradient_scale, Nn_Scalar:$learning_rate, Nn_Scalar:$beta1,
                       Nn_Scalar:$weight_decay, BoolAttr:$decay);
  let results = (outs Nn_Float:$new_parameter, Nn_Float:$new_momentum);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_LionOp : Nn_RowOp<"lion", [Row, Ranged, AllTypesMatch<["parameter", "new_parameter"]>,
    AllTypesMatch<["exp_avg", "new_exp_avg"]>]> {
  let summary = "Lion update of one parameter";
  let description = [{
    With g = gradient·gradient_scale: p' = p - lr·(sign(beta1·m + (1-beta1)·g) + decay·weight_decay·p);
    m' = beta2·m + (1-beta2)·g. Source: Chen et al., Symbolic Discovery of Optimization Algorithms.
  }];
  let arguments = (ins Nn_Float:$parameter, Nn_Float:$gradient, Nn_Float:$exp_avg,
                       Nn_Scalar:$gradient_scale, Nn_Scalar:$learning_rate, Nn_Scalar:$beta1,
                       Nn_Scalar:$beta2, Nn_Scalar:$weight_decay, BoolAttr:$decay);
  let results = (outs Nn_Float:$new_parameter, Nn_Float:$new_exp_avg);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_YieldOp : Nn_Op<"yield", [Pure, Terminator,
    ParentOneOf<["MicrobatchesOp", "FusedOp"]>]> {
  let summary = "Ends a region with its results";
  let arguments = (ins Variadic<Nn_Tensor>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Nn_MicrobatchesOp : Nn_Op<"microbatches", [AttrSizedOperandSegments, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Runs the microbatches of a step and carries sums over them";
  let description = [{
    The body runs once for each entry of the leading dimension of `sliced`, in order, on that entry
    of each and on the values carried from the run before (at first `initial`).

    ```mlir
    %loss, %g = nn.microbatches sliced(%tokens : tensor<4x64xi32>) carried(%zero, %zeros : tensor<f32>, tensor<8x8xf32>)
        -> (tensor<f32>, tensor<8x8xf32>) {
    ^bb0(%t: tensor<64xi32>, %loss_so_far: tensor<f32>, %g_so_far: tensor<8x8xf32>):
      …
      nn.yield %loss_next, %g_next : tensor<f32>, tensor<8x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$sliced, Variadic<Nn_Tensor>:$initial);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `sliced` `(` $sliced `:` type($sliced) `)` `carried` `(` $initial `:` type($initial) `)`
    `->` `(` type($results) `)` $body attr-dict
  }];
  let hasVerifier = 1;
}

def Nn_FusedOp : Nn_Op<"fused", [Pure, IsolatedFromAbove,
    DeclareOpInterfaceMethods<FusionOpInterface, ["getFusionRole"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<EvaluateOpInterface>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Row ops that become one kernel";
  let description = [{
    Formed by the fusion pass: its body's ops share rows and columns and are printed as one row
    program; only what it yields reaches memory.

    ```mlir
    %y = nn.fused(%x, %b : tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8x64xf32>) {
    ^bb0(%x0: tensor<8x64xf32>, %b0: tensor<64xf32>):
      %0 = nn.add %x0, %b0 : tensor<8x64xf32>, tensor<64xf32>
      %1 = nn.activation gelu_tanh %0 : tensor<8x64xf32>
      nn.yield %1 : tensor<8x64xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` ($inputs^ `:` type($inputs))? `)` `->` `(` type($results) `)` $body attr-dict
  }];
  let hasVerifier = 1;
}
#endif
