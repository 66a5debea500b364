// Views: other names for memory that is there already. They fold into their users.
#ifndef GRADC_IR_Nn_VIEW_OPS
#define GRADC_IR_Nn_VIEW_OPS
include "ir/NnBase.td"

class Nn_ViewOp<string mnemonic, list<Trait> traits = []> : Nn_ComputeOp<mnemonic, !listconcat([
    Differentiable, Precision,
    DeclareOpInterfaceMethods<FusionOpInterface, ["getFusionRole", "takesRowStride"]>], traits)>;

def Nn_ReshapeOp : Nn_ViewOp<"reshape", [ViewOpInterface]> {
  let summary = "The same elements in another shape";
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_SliceOp : Nn_ViewOp<"slice", [DeclareOpInterfaceMethods<ViewOpInterface, ["getPlace"]>]> {
  let summary = "A range of columns or rows";
  let description = [{
    Columns offset … offset + size of the last dimension, size being the result's; with `row` rows,
    entries of the first dimension.

    ```mlir
    %q = nn.slice %qkv at 0 : tensor<8x192xf32> to tensor<8x64xf32>
    %x1 = nn.slice %x at row 4 : tensor<8x64xf32> to tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$offset, UnitAttr:$rows);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `at` (`row` $rows^)? $offset attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_ConcatOp : Nn_ViewOp<"concat", [DeclareOpInterfaceMethods<JoinOpInterface>]> {
  let summary = "Matrices side by side, or one below the other";
  let description = [{
    Columns of the operands, in order; with `rows` their rows, entries of the first dimension.
    Operands whose producers can write with a row stride, which rows do not need, are written in
    place; the rest are copied.

    ```mlir
    %dqkv = nn.concat %dq, %dk, %dv : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32> to tensor<8x192xf32>
    ```
  }];
  let arguments = (ins Variadic<Nn_Float>:$inputs, UnitAttr:$rows);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$inputs (`rows` $rows^)? attr-dict `:` type($inputs) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Nn_TransposeOp : Nn_ViewOp<"transpose", [DeclareOpInterfaceMethods<ViewOpInterface, ["getPlace"]>]> {
  let summary = "The last two dimensions swapped";
  let description = [{
    Folds into the matrix products that read it; what no product absorbs is refused by the memory
    plan rather than copied silently.
  }];
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_AfterOp : Nn_ViewOp<"after", [ViewOpInterface, AllTypesMatch<["input", "result"]>]> {
  let summary = "The same value, to be read only once another exists";
  let description = [{
    Ties what is computed a second time to the backward: an op that reads the result depends on
    `trigger`, so that no pass can move it before, fuse it with, or merge it into its first copy.

    ```mlir
    %late = nn.after %x, %dy : tensor<8x64xf32>, tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_Tensor:$trigger);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $trigger attr-dict `:` type($input) `,` type($trigger)";
}
#endif
