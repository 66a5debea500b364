// What an op knows about itself. Passes, planner, interpreter and emitters ask these interfaces and
// never the op's name: adding an op touches its own definition only.
#ifndef GRADC_IR_Nn_INTERFACES
#define GRADC_IR_Nn_INTERFACES
include "mlir/IR/OpBase.td"

def EvaluateOpInterface : OpInterface<"EvaluateOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op's reference meaning, in f64, on whole tensors: the oracle against which passes and
    kernels are checked. Implementations are plain loops written from the op's definition and share
    no code with what they check.
  }];
  let methods = [
    InterfaceMethod<[{
      Computes `results` (already shaped) from `operands`. Fails, with a diagnostic on the op, on
      values that the op refuses (an index out of range).
    }], "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<::gradc::nn::HostTensor>":$operands,
           "::llvm::MutableArrayRef<::gradc::nn::HostTensor>":$results)>,
  ];
}

def OperandRangeOpInterface : OpInterface<"OperandRangeOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op accepts, or makes sense of, some values of an operand only: indices of a table's rows, a
    divisor that is not near 0. Random arguments (ir/Interpreter.h) keep to it.
  }];
  let methods = [
    InterfaceMethod<"What it asks of the elements of an operand; none: nothing.",
      "::std::optional<::gradc::nn::Interval>", "getOperandRange", (ins "unsigned":$operand)>,
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op builds its own backward: given the gradients of its results, the gradients of its
    operands (a vector-Jacobian product), as ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<[{
      `resultGradients[i]` is null where nothing depends on result i. Sets `operandGradients[j]`
      (null on entry) for each operand that has one, of that operand's type. A record of magnitudes
      (nn.fake_quantize) gets its next value there.
    }], "void", "buildBackward",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGradients)>,
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{ How the precision pass may treat the op. }];
  let methods = [
    InterfaceMethod<"`low`: runs on narrow inputs; `full`: computes in fp32 whatever its inputs; "
                    "`follow`: takes the type of its inputs.",
      "::gradc::nn::PrecisionClass", "getPrecisionClass", (ins), [{}],
      [{ return ::gradc::nn::PrecisionClass::follow; }]>,
    InterfaceMethod<"Whether an op of class `full` reads this operand as it is, widening it itself.",
      "bool", "takesNarrow", (ins "unsigned":$operand), [{}], [{ return false; }]>,
    InterfaceMethod<"Makes the op round its inputs to tf32 as it reads them; for class `low`.",
      "void", "roundInputs", (ins), [{}], [{ return; }]>,
    InterfaceMethod<"Whether an op of class `low` gives fp32 all the same.",
      "bool", "givesFull", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Whether the op, which sums in fp32, may give this result so instead of rounding it.",
      "bool", "mayGiveFull", (ins "unsigned":$result), [{}], [{ return false; }]>,
    InterfaceMethod<"Whether the op can read its operands as fp8 numbers with scales.",
      "bool", "takesFloat8", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Makes an op that takes them read fp8 operands: `values` for its own, in order, "
                    "and a scale for each.",
      "void", "readQuantized", (ins "::mlir::ValueRange":$values, "::mlir::ValueRange":$scales),
      [{}], [{ return; }]>,
  ];
}

def LowCopyOpInterface : OpInterface<"LowCopyOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op makes a copy of one value in a narrow type, or is on the way to one: a cast; the
    magnitudes, the scale and the numbers of fp8. A parameter's copies are kept and made again only
    when it changes.
  }];
  let methods = [
    InterfaceMethod<"The value of which alone the result is made; null where there is no such value.",
      "::mlir::Value", "getOriginal", (ins)>,
    InterfaceMethod<"What the result is of the copy, if it is worth keeping: its values (an empty name), "
                    "`fp8` numbers or their `fp8_scale`. None on the way to a copy.",
      "::std::optional<::llvm::StringRef>", "getCopyPart", (ins), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The fp8 format of numbers and their scale; null of other copies.",
      "::mlir::Type", "getCopyFormat", (ins), [{}], [{ return {}; }]>,
  ];
}

def PanelsOpInterface : OpInterface<"PanelsOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op can read an operand in panels (#nn.panels), as its kernel would otherwise pack it first.
  }];
  let methods = [
    InterfaceMethod<"That operand; null where this op reads none so.",
      "::mlir::OpOperand *", "getPanelsOperand", (ins)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    Arithmetic and traffic of one execution: what the planner, `explain` and MFU count.
  }];
  let methods = [
    InterfaceMethod<"Floating-point operations (a multiply-add is two). Masked work is not counted.",
      "int64_t", "getFlops", (ins), [{}], [{
        int64_t flops = 0;
        for (::mlir::Value result : $_op->getResults())
          flops += ::llvm::cast<::mlir::RankedTensorType>(result.getType()).getNumElements();
        return flops; }]>,
    InterfaceMethod<"Bytes that must be moved: every operand read once, every result written once.",
      "int64_t", "getBytes", (ins), [{}], [{ return ::gradc::nn::defaultBytes($_op); }]>,
    InterfaceMethod<"Whether getFlops counts towards model FLOPs (MFU): matrix products and attention.",
      "bool", "isModelFlops", (ins), [{}], [{ return false; }]>,
  ];
}

def FusionOpInterface : OpInterface<"FusionOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The part an op plays when kernels are formed: `row` joins row programs; `library` and `kernel`
    stand alone; `view` and `constant` cost nothing.
  }];
  let methods = [
    InterfaceMethod<"By default `row` for ops that are row programs, else `kernel`.",
      "::gradc::nn::FusionRole", "getFusionRole", (ins), [{}], [{
        return ::mlir::isa<::gradc::nn::RowOpInterface>($_op.getOperation())
                   ? ::gradc::nn::FusionRole::row : ::gradc::nn::FusionRole::kernel; }]>,
    InterfaceMethod<"Operand whose memory the given result may take over, element for element, when "
                    "this op is its last use; -1 for none. Row ops answer through their program.",
      "int64_t", "getInPlaceOperand", (ins "unsigned":$result), [{}], [{ return -1; }]>,
    InterfaceMethod<"Operand that the op adds to where the result is written, so that it must lie there "
                    "before; -1 for none.",
      "int64_t", "getAccumulatorOperand", (ins), [{}], [{ return -1; }]>,
    InterfaceMethod<"Whether operand (or result, where isResult) may be a slice of a wider matrix: "
                    "rows contiguous, with a row stride of its own.",
      "bool", "takesRowStride", (ins "unsigned":$index, "bool":$isResult), [{}], [{ return false; }]>,
    InterfaceMethod<"Makes the op add `addend` to the given result as it writes it, when it can and does "
                    "not do so already; says whether it did.",
      "bool", "absorbSum", (ins "unsigned":$result, "::mlir::Value":$addend), [{}],
      [{ return false; }]>,
  ];
}

def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The result is memory that is there already: that of the first operand, or a part of it.
  }];
  let methods = [
    InterfaceMethod<[{
      Where in the first operand's memory, whose rows are `rowStride` elements apart (0: contiguous).
      A row stride is given only where FusionOpInterface::takesRowStride allows one. Fails, with a
      diagnostic on the op, where the result lies in no such place.
    }], "::llvm::FailureOr<::gradc::nn::Place>", "getPlace", (ins "int64_t":$rowStride), [{}],
      [{ return ::gradc::nn::Place{0, rowStride}; }]>,
  ];
}

def JoinOpInterface : OpInterface<"JoinOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The result's memory is made of its operands, each of which its producer may write there at once.
  }];
  let methods = [
    InterfaceMethod<"Where an operand lies in the result's memory, which is contiguous.",
      "::gradc::nn::Place", "getPartPlace", (ins "unsigned":$operand)>,
  ];
}

def EpilogueOpInterface : OpInterface<"EpilogueOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op does to a matrix, its first operand, what a library's product can do to its result while
    it writes it. Passes put the steps together and ask the target (KernelLibrary::takesEpilogue).
  }];
  let methods = [
    InterfaceMethod<"What it does; none with these operands or attributes.",
      "::std::optional<::gradc::nn::EpilogueStep>", "getEpilogueStep", (ins)>,
  ];
}

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    A matrix product: `op(lhs) · op(rhs) [+ accumulator]`, op being the transpose where asked for,
    and its epilogue. The result is the op's first.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::Value", "getLhs", (ins)>,
    InterfaceMethod<"", "::mlir::Value", "getRhs", (ins)>,
    InterfaceMethod<"Null where there is none.", "::mlir::Value", "getAccumulator", (ins)>,
    InterfaceMethod<"Of fp8 operands; else null.", "::mlir::Value", "getLhsScale", (ins)>,
    InterfaceMethod<"Of fp8 operands; else null.", "::mlir::Value", "getRhsScale", (ins)>,
    InterfaceMethod<"", "bool", "getTransposeLhs", (ins)>,
    InterfaceMethod<"", "bool", "getTransposeRhs", (ins)>,
    InterfaceMethod<"Whether operands are rounded to 10 bits of mantissa.", "bool", "getTf32", (ins)>,
    InterfaceMethod<"What becomes of the result.", "::gradc::nn::Epilogue", "getEpilogue", (ins), [{}],
      [{ return ::gradc::nn::Epilogue::None; }]>,
    InterfaceMethod<"What the epilogue adds; null where it adds nothing.", "::mlir::Value", "getBias",
      (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"What the epilogue reads besides; null where it reads nothing.", "::mlir::Value",
      "getAux", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"What the epilogue gives besides the result: aux or a bias gradient; null where it "
                    "gives nothing.", "::mlir::Value", "getExtra", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"Makes lhs (0) or rhs (1) be read from `copy`, its transpose.", "void",
      "readTransposed", (ins "unsigned":$operand, "::mlir::Value":$copy)>,
  ];
}

def StochasticOpInterface : OpInterface<"StochasticOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    The op draws random numbers while training. They come from counters (seed, step, stream, global
    element index; ir/row/Philox.h), so that the op is a pure function of its operands.
  }];
  let methods = [
    InterfaceMethod<"Turns the op into what it does in evaluation, where nothing is random.",
      "void", "makeDeterministic", (ins)>,
  ];
}

def RowOpInterface : OpInterface<"RowOpInterface"> {
  let cppNamespace = "::gradc::nn";
  let description = [{
    An op that is a row program (ir/row/RowProgram.h). It states its rows and columns, how each
    operand and result is indexed in them, and its scalar body, once, for every target.
  }];
  let methods = [
    InterfaceMethod<"The op's rows and columns; by default the first result's shape, with all but "
                    "the last dimension flattened into rows.",
      "::gradc::nn::RowSpace", "getRowSpace", (ins), [{}],
      [{ return ::gradc::nn::rowSpaceOf($_op->getResult(0).getType()); }]>,
    InterfaceMethod<"How an operand is indexed; by default as broadcasting says.",
      "::gradc::row::BufferKind", "getOperandKind", (ins "unsigned":$operand), [{}], [{
        return ::gradc::nn::broadcastKind($_op->getOperand(operand).getType(), $_op.getRowSpace()); }]>,
    InterfaceMethod<"How a result is indexed: matrix, row or columnPartial.",
      "::gradc::row::BufferKind", "getResultKind", (ins "unsigned":$result), [{}],
      [{ return ::gradc::row::BufferKind::matrix; }]>,
    InterfaceMethod<"Whether the body looks at nothing but the elements at one index of equally shaped "
                    "operands and scalars, so that any flat view of the data will do.",
      "bool", "isElementwise", (ins), [{}], [{ return ::gradc::nn::allMatrixOrScalar($_op); }]>,
    InterfaceMethod<[{
      Emits the body. `operands` are nodes of the operands' values; `buffers` their program buffers
      (-1 where the operand is computed in the same program), for gathers. Sets one node a result;
      for a columnPartial result the node whose sum over rows it is.
    }], "void", "buildRow",
      (ins "::gradc::row::Builder &":$builder, "::llvm::ArrayRef<::gradc::row::NodeId>":$operands,
           "::llvm::ArrayRef<int32_t>":$buffers,
           "::llvm::MutableArrayRef<::gradc::row::NodeId>":$results)>,
  ];
  let verify = [{ return ::gradc::nn::verifyRowOp($_op); }];
}
#endif
