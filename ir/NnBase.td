// The nn dialect, its enums, types and op classes.
#ifndef GRADC_IR_Nn_BASE
#define GRADC_IR_Nn_BASE
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "ir/NnInterfaces.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::gradc::nn";
  let summary = "Training graphs of transformers, on tensors";
  let description = [{
    The ops a transformer's training step is made of, forward and backward, on ranked tensors of
    static shape. Activations are matrices [tokens, features], where tokens = batch x sequence with
    the sequence inner; ops that need to know the batch (attention, rope) carry it as an attribute.
    There is no layout but row-major: slices and transposes are views that fold into their users.

    A model definition is a module with a function `@loss`: parameters (arguments with an `nn.param`
    dictionary), tokens and targets [tokens] i32, to the sum of the loss over valid labels. A model
    with dropout takes three more scalars i32, what its random numbers are keyed by: seed, step, and
    the row of the whole step that its first token is. Optionally
    also `@logits`: parameters, tokens, position [1] i32, to the logits [1, vocab] of that row.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

def Nn_ActivationKind : I32EnumAttr<"ActivationKind", "activation functions", [
  I32EnumAttrCase<"Gelu", 0, "gelu">, I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
  I32EnumAttrCase<"Silu", 2, "silu">, I32EnumAttrCase<"Relu", 3, "relu">]> {
  let cppNamespace = "::gradc::nn";
  let genSpecializedAttr = 0;
}
def Nn_ActivationKindAttr : EnumAttr<Nn_Dialect, Nn_ActivationKind, "activation_kind">;

// Numbered as GradcEpilogue (runtime/Abi.h).
def Nn_Epilogue : I32EnumAttr<"Epilogue", "what becomes of a product as it is written", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Bias", 1, "bias">,
  I32EnumAttrCase<"Gelu", 2, "gelu">, I32EnumAttrCase<"GeluAux", 3, "gelu_aux">,
  I32EnumAttrCase<"GeluBias", 4, "gelu_bias">, I32EnumAttrCase<"GeluAuxBias", 5, "gelu_aux_bias">,
  I32EnumAttrCase<"GeluGradient", 6, "gelu_gradient">,
  I32EnumAttrCase<"GeluGradientBiasGradient", 7, "gelu_gradient_bias_gradient">,
  I32EnumAttrCase<"BiasGradientLhs", 8, "bias_gradient_lhs">,
  I32EnumAttrCase<"BiasGradientRhs", 9, "bias_gradient_rhs">]> {
  let cppNamespace = "::gradc::nn";
  let genSpecializedAttr = 0;
}
def Nn_EpilogueAttr : EnumAttr<Nn_Dialect, Nn_Epilogue, "epilogue">;

def Nn_PanelsAttr : AttrDef<Nn_Dialect, "Panels",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "panels";
  let summary = "Encoding of a matrix that lies in memory as a product's kernel reads its rhs";
  let description = [{
    The tensor's values and shape are those of the matrix, k x n, or n x k where `transposed`; in
    memory it is panels of `width` columns of the k x n matrix one behind the other, a panel being
    the `width` words of each step of the depth k side by side, in steps up to a multiple of
    `depth_unit`. A word is an f32: the element, rounded to 10 bits of mantissa where `tf32`; or, of
    `pairs`, two bf16 of two steps. Behind the depth's end they are zero, behind the columns' end
    anything. A target says in which panels it reads an operand (KernelLibrary::panelsOf).

    ```mlir
    tensor<768x2304xf32, #nn.panels<width = 24, depth_unit = 8>>
    ```
  }];
  let parameters = (ins "int64_t":$width, "int64_t":$depth_unit,
                        DefaultValuedParameter<"bool", "false">:$transposed,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        DefaultValuedParameter<"bool", "false">:$pairs);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What memory holds of a matrix of this shape: panels x steps x width words, as f32.
    ::mlir::RankedTensorType storedType(::mlir::RankedTensorType matrix) const;
  }];
}

// Shapes are known and not empty.
class Nn_TensorWith<list<Type> elements, Pred encoding>
    : RankedTensorOf<elements, [HasStaticShapePred,
          CPred<"::llvm::cast<::mlir::ShapedType>($_self).getNumElements() > 0">, encoding],
          "statically shaped, non-empty tensor">;
class Nn_TensorOf<list<Type> elements> : Nn_TensorWith<elements,
    CPred<"!::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding()">>;
// A matrix in panels: only the ops that say so read it.
def Nn_Panels : Nn_TensorWith<[F32, BF16, F16],
    CPred<"::llvm::isa_and_present<::gradc::nn::PanelsAttr>(::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">>;
def Nn_Float : Nn_TensorOf<[F32, BF16, F16]>;
def Nn_Float8 : Nn_TensorOf<[F8E4M3FN, F8E5M2]>;
def Nn_Index : Nn_TensorOf<[I32]>;
def Nn_Scalar : 0DTensorOf<[F32]>,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def Nn_IndexScalar : 0DTensorOf<[I32]>,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;
def Nn_Tensor : AnyTypeOf<[Nn_Float, Nn_Float8, Nn_Index]>;

// Every op evaluates, has a cost and a part in fusion.
class Nn_Op<string mnemonic, list<Trait> traits = []> : Op<Nn_Dialect, mnemonic, traits>;

class Nn_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Nn_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<EvaluateOpInterface>], traits)>;

// A row program's op. Rows are independent.
class Nn_RowOp<string mnemonic, list<Trait> traits = []>
    : Nn_ComputeOp<mnemonic, !listconcat([FusionOpInterface, CostOpInterface], traits)>;

// An op with an emitter of its own.
class Nn_KernelOp<string mnemonic, list<Trait> traits = []>
    : Nn_ComputeOp<mnemonic, traits>;

defvar Row = DeclareOpInterfaceMethods<RowOpInterface>;
defvar Fusion = FusionOpInterface;
defvar Cost = CostOpInterface;
defvar Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Ranged = DeclareOpInterfaceMethods<OperandRangeOpInterface>;
defvar Precision = PrecisionOpInterface;
defvar StaysFull = DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecisionClass"]>;
defvar EpilogueStep = DeclareOpInterfaceMethods<EpilogueOpInterface>;
defvar RunsLow = DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecisionClass"]>;
#endif
