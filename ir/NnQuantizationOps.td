// Fp8 with a scale a tensor: value = number · scale. Scales are powers of two, so that dividing and
// multiplying by them rounds nothing.
#ifndef GRADC_IR_Nn_QUANTIZATION_OPS
#define GRADC_IR_Nn_QUANTIZATION_OPS
include "ir/NnBase.td"

defvar LowCopyPart = DeclareOpInterfaceMethods<LowCopyOpInterface, ["getCopyPart", "getCopyFormat"]>;
defvar Float8Format = TypeAttrBase<"::mlir::FloatType", "an fp8 format">;

def Nn_RowAmaxOp : Nn_RowOp<"row_amax", [DeclareOpInterfaceMethods<LowCopyOpInterface>,
    DeclareOpInterfaceMethods<RowOpInterface, ["getRowSpace", "getOperandKind", "getResultKind"]>]> {
  let summary = "Largest magnitude of each row";
  let description = [{
    `result = max |input|` over the columns; NaN where the row holds one.

    ```mlir
    %a = nn.row_amax %x : tensor<8x64xbf16> -> tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_TensorOf<[F32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Nn_ScaleOfAmaxOp : Nn_RowOp<"scale_of_amax", [LowCopyPart, Ranged,
    DeclareOpInterfaceMethods<RowOpInterface, ["getRowSpace", "getOperandKind", "getResultKind"]>]> {
  let summary = "Scale with which values up to a magnitude fit an fp8 format";
  let description = [{
    The least power of two s with `amax / s` within the format, amax being the largest of the
    operand's elements; at least 2^-126; 1 where amax is 0. Where amax is not finite the scale is
    NaN, and so is all that it scales: nothing hides it.

    ```mlir
    %s = nn.scale_of_amax %a for f8E4M3FN : tensor<8x1xf32>
    ```
  }];
  let arguments = (ins Nn_TensorOf<[F32]>:$amax, Float8Format:$format);
  let results = (outs Nn_Scalar:$scale);
  let assemblyFormat = "$amax `for` $format attr-dict `:` type($amax)";
  let hasVerifier = 1;
}

def Nn_QuantizeOp : Nn_RowOp<"quantize", [Row, LowCopyPart, Ranged]> {
  let summary = "The fp8 numbers of a tensor";
  let description = [{
    `result = input / scale`, rounded to nearest even; what is too large becomes the format's
    largest number of its sign, but an infinity becomes NaN, so that it is seen. Reference values
    are cut to the format's range but not rounded, as in all of the interpreter.

    ```mlir
    %q = nn.quantize %x by %s : tensor<8x64xbf16> to tensor<8x64xf8E4M3FN>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_Scalar:$scale);
  let results = (outs Nn_Float8:$result);
  let assemblyFormat = "$input `by` $scale attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Nn_TransposedCopyOp : Nn_KernelOp<"transposed_copy", [Fusion, CostOpInterface, LowCopyPart]> {
  let summary = "The transpose of fp8 numbers, in memory of its own";
  let description = [{
    For products that read fp8 along the inner dimension alone (quantize-products).

    ```mlir
    %t = nn.transposed_copy %q : tensor<8x64xf8E4M3FN> to tensor<64x8xf8E4M3FN>
    ```
  }];
  let arguments = (ins Nn_Float8:$input);
  let results = (outs Nn_Float8:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Nn_FakeQuantizeOp : Nn_RowOp<"fake_quantize", [Row, Differentiable, Ranged, AttrSizedOperandSegments]> {
  let summary = "A tensor's values as an fp8 format with a scale has them";
  let description = [{
    nn.quantize, and multiplied by the scale again, which bf16 and f32 hold exactly. Products of two
    such values read the fp8 numbers themselves (the quantize-products pass). The gradient passes
    straight through, also where a value is cut to the format's range.

    `record` is for scales that are made of the magnitudes of earlier steps: `amax` has those of
    this one, and where other operands get their gradient the record gets the largest of them, its
    next value. Neither is read for the result.

    ```mlir
    %y = nn.fake_quantize %x by %s in f8E4M3FN : tensor<8x64xf32> to tensor<8x64xbf16>
    %y = nn.fake_quantize %x by %s in f8E4M3FN record %r of %a : tensor<8x1xf32>
        : tensor<8x64xf32> to tensor<8x64xbf16>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Nn_Scalar:$scale, Optional<Nn_Scalar>:$record,
                       Optional<Nn_TensorOf<[F32]>>:$amax, Float8Format:$format);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = [{
    $input `by` $scale `in` $format (`record` $record^ `of` $amax `:` type($amax))? attr-dict
    `:` type($input) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_QuantizeGradientOp : Nn_ComputeOp<"quantize_gradient", [Differentiable,
    ViewOpInterface, DeclareOpInterfaceMethods<FusionOpInterface, ["getFusionRole", "takesRowStride"]>,
    AllTypesMatch<["input", "result"]>]> {
  let summary = "The same value, whose gradient goes back as fp8 has it";
  let description = [{
    Says what autodiff is to do: the gradient passes through nn.fake_quantize, with a scale made of
    its own magnitudes or, where there is a `record`, of those of earlier steps; the record then
    gets its next value as in nn.fake_quantize. The quantize-products pass removes the op.

    ```mlir
    %z = nn.quantize_gradient %y in f8E5M2 : tensor<8x64xbf16>
    %z = nn.quantize_gradient %y in f8E5M2 record %r : tensor<8x64xbf16>
    ```
  }];
  let arguments = (ins Nn_Float:$input, Optional<Nn_Scalar>:$record, Float8Format:$format);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `in` $format (`record` $record^)? attr-dict `:` type($input)";
  let hasVerifier = 1;
}
#endif
