// Pointwise ops, with broadcasting of columns [C], rows [.., 1] and scalars to a matrix.
#ifndef GRADC_IR_Nn_POINTWISE_OPS
#define GRADC_IR_Nn_POINTWISE_OPS
include "ir/NnBase.td"

// The first operand has the result's shape; the second broadcasts to it.
class Nn_BinaryOp<string mnemonic, string formula, list<Trait> traits = []>
    : Nn_RowOp<mnemonic, !listconcat([Row, Differentiable, Precision, AllTypesMatch<["lhs", "result"]>],
                                     traits)> {
  let summary = "Pointwise " # formula;
  let description = "`result = " # formula # [{`. `rhs` broadcasts to `lhs`: equal trailing dimensions,
    with 1 or nothing where it repeats.

    ```mlir
    %y = nn.}] # mnemonic # [{ %x, %bias : tensor<8x64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}
def Nn_AddOp : Nn_BinaryOp<"add", "lhs + rhs", [EpilogueStep]> { let hasFolder = 1; }
def Nn_SubOp : Nn_BinaryOp<"sub", "lhs - rhs">;
def Nn_MulOp : Nn_BinaryOp<"mul", "lhs * rhs"> { let hasFolder = 1; }
def Nn_DivOp : Nn_BinaryOp<"div", "lhs / rhs", [Ranged]>;

class Nn_UnaryOp<string mnemonic, string formula, list<Trait> traits = []>
    : Nn_RowOp<mnemonic, !listconcat([Row, Differentiable, Precision, SameOperandsAndResultType], traits)> {
  let summary = "Pointwise " # formula;
  let description = "`result = " # formula # "`.";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}
def Nn_NegOp : Nn_UnaryOp<"neg", "-input"> { let hasFolder = 1; }
def Nn_ExpOp : Nn_UnaryOp<"exp", "exp(input)">;
def Nn_LogOp : Nn_UnaryOp<"log", "log(input), natural", [Ranged]>;
def Nn_SqrtOp : Nn_UnaryOp<"sqrt", "sqrt(input)", [Ranged]>;
def Nn_TanhOp : Nn_UnaryOp<"tanh", "tanh(input)">;

def Nn_ScaleOp : Nn_UnaryOp<"scale", "factor * input"> {
  let arguments = (ins Nn_Float:$input, F64Attr:$factor);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Nn_ActivationOp : Nn_UnaryOp<"activation", "f(input), f an activation function", [EpilogueStep]> {
  let description = [{
    `gelu` is x·Φ(x) with the exact error function; `gelu_tanh` its tanh form
    0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))); `silu` is x·σ(x).

    ```mlir
    %y = nn.activation gelu_tanh %x : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_ActivationKindAttr:$kind);
  let assemblyFormat = "$kind $input attr-dict `:` type($input)";
}

def Nn_ActivationGradOp : Nn_RowOp<"activation_grad",
    [Row, Precision, EpilogueStep, SameOperandsAndResultType]> {
  let summary = "Gradient of an activation function";
  let description = "`result = gradient * f'(input)`.";
  let arguments = (ins Nn_Float:$gradient, Nn_Float:$input, Nn_ActivationKindAttr:$kind);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$kind $gradient `,` $input attr-dict `:` type($input)";
}

def Nn_CastOp : Nn_RowOp<"cast", [Row, Differentiable, Precision, SameOperandsAndResultShape,
    DeclareOpInterfaceMethods<LowCopyOpInterface, ["getCopyPart"]>]> {
  let summary = "The same values in another float type";
  let description = [{
    Rounds to nearest, ties to even; what is too large becomes infinite. What only widens the
    rounded result of an op that can give it in f32 is left out (canonicalisation).

    ```mlir
    %y = nn.cast %x : tensor<8x64xf32> to tensor<8x64xbf16>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Nn_DropoutOp : Nn_RowOp<"dropout", [Differentiable, Precision,
    DeclareOpInterfaceMethods<RowOpInterface, ["isElementwise"]>,
    DeclareOpInterfaceMethods<StochasticOpInterface>, AllTypesMatch<["input", "result"]>]> {
  let summary = "Zeros elements at random and scales the others up";
  let description = [{
    `result = input / (1 - rate)` where u >= rate, else 0; u in [0, 1) is the uniform number of the
    element's global index under (seed, step, stream). `first_row` is the row of the whole step that
    row 0 is: masks do not depend on how a step is split into microbatches. Each use in a model has
    a stream of its own, an operand so that the layers share one kernel.

    ```mlir
    %y = nn.dropout %x rate 0.1 random(%seed, %step, %first_row, %stream) : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_IndexScalar:$seed, Nn_IndexScalar:$step,
                       Nn_IndexScalar:$first_row, Nn_IndexScalar:$stream, F64Attr:$rate);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{
    $input `rate` $rate `random` `(` $seed `,` $step `,` $first_row `,` $stream `)` attr-dict
    `:` type($input)
  }];
  let hasVerifier = 1;
}

def Nn_BroadcastOp : Nn_RowOp<"broadcast", [Row, Differentiable, Precision]> {
  let summary = "Repeats a scalar, a row or a column to a shape";
  let description = [{
    ```mlir
    %y = nn.broadcast %s : tensor<f32> to tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
}

def Nn_MaximumOp : Nn_RowOp<"maximum", [Row, SameOperandsAndResultType]> {
  let summary = "Pointwise larger of two values";
  let description = "NaN where either is.";
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}

def Nn_ClipCoefficientOp : Nn_RowOp<"clip_coefficient", [Row, Ranged, SameOperandsAndResultType]> {
  let summary = "Factor that clips a gradient to a norm";
  let description = [{
    `min(1, limit / (norm + 1e-6))`, and 1 where limit is 0, which turns clipping off. A norm that is
    not finite gives a result that is not finite, so that it is seen.
  }];
  let arguments = (ins Nn_Scalar:$norm, Nn_Scalar:$limit);
  let results = (outs Nn_Scalar:$result);
  let assemblyFormat = "$norm `,` $limit attr-dict `:` type($norm)";
}

def Nn_SelectFiniteOp : Nn_RowOp<"select_finite",
    [Row, AllTypesMatch<["value", "otherwise", "result"]>]> {
  let summary = "A value, or another where a norm is not finite";
  let description = [{
    `result = value` where `norm` is finite, else `otherwise`: skips an update whose gradients
    overflowed.

    ```mlir
    %p1 = nn.select_finite %norm, %updated, %p : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Nn_Scalar:$norm, Nn_Float:$value, Nn_Float:$otherwise);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$norm `,` $value `,` $otherwise attr-dict `:` type($value)";
}

// Not in a resource beside the module, which a printer may have left out.
def Nn_WrittenElements
    : ElementsAttrBase<CPred<"::llvm::isa<::mlir::DenseElementsAttr>($_self)">, "elements written out">;

def Nn_ConstantOp : Nn_ComputeOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>,
    DeclareOpInterfaceMethods<FusionOpInterface, ["getFusionRole"]>]> {
  let summary = "A tensor known at compile time";
  let description = [{
    Lies in the executable's read-only data, or is an immediate where it is a splat read by a row
    program.

    ```mlir
    %one = nn.constant dense<1.0> : tensor<f32>
    ```
  }];
  let arguments = (ins Nn_WrittenElements:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}
#endif
