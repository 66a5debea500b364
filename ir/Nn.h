// The nn dialect: everything a file that works on training graphs includes.
#pragma once

#include "ir/HostTensor.h"
#include "ir/row/Builder.h"
#include "ir/row/RowProgram.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/NnDialect.h.inc"
#include "ir/NnEnums.h.inc"

namespace gradc::nn {

/// How the mixed-precision pass may treat an op; see PrecisionOpInterface.
enum class PrecisionClass { low, full, follow };

/// The part an op plays when kernels are formed; see FusionOpInterface.
enum class FusionRole { row, library, kernel, view, constant };

/// What a row op does that a product can do as it writes its result; see EpilogueOpInterface.
enum class EpilogueStep { addBias, gelu, geluGradient, columnPartials, foldPartials };

/// Values from `low` to `high`, which integers exclude.
struct Interval {
  double low, high;
};

/// Rows and columns that a row op runs over.
struct RowSpace {
  int64_t rows = 0;
  int64_t columns = 0;
  bool operator==(const RowSpace &) const = default;
};

/// Where a tensor lies in the memory of another, in elements.
struct Place {
  int64_t offset = 0;    ///< of its first element
  int64_t rowStride = 0; ///< from row to row; 0: contiguous
};

/// The shape of a tensor type with all but the last dimension flattened; 1 x 1 for a scalar.
RowSpace rowSpaceOf(mlir::Type type);

/// How a tensor of `type` is indexed in `space` by broadcasting: its whole shape a matrix, [.., 1]
/// a row, [columns] a column, a single element a scalar.
row::BufferKind broadcastKind(mlir::Type type, RowSpace space);

/// True when each operand of the row op is a matrix or a scalar and each result a matrix.
bool allMatrixOrScalar(mlir::Operation *op);

/// Checks a row op's operands and results against its rows, columns and kinds.
llvm::LogicalResult verifyRowOp(mlir::Operation *op);

/// Bytes of all tensor operands and results.
int64_t defaultBytes(mlir::Operation *op);

/// The tensor that memory holds of one of this type: another one where it lies in panels.
mlir::RankedTensorType storedType(mlir::RankedTensorType type);

/// Bytes of a tensor of this type, contiguous.
int64_t byteSize(mlir::Type type);

/// The row program's element type for a tensor element type.
row::Dtype rowDtype(mlir::Type elementType);

/// A gradient shaped as the broadcast result, summed to the shape of the operand that was
/// broadcast.
mlir::Value sumToType(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value gradient,
                      mlir::Type type);

/// Arguments of `function` that are neither parameters nor optimizer state: the last two (tokens,
/// and targets or position), or five where the random numbers' seed, step and first row follow.
unsigned inputCount(mlir::FunctionType function);

/// The value in another element type: itself where it is of that type already.
mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                   mlir::Type elementType);

/// An fp8 format's largest number and the power of two below it.
struct Float8Range {
  double largest, largestPower;
};
Float8Range rangeOf(mlir::Type format);

/// Largest magnitude of each row of `value`.
mlir::Value rowAmax(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// The largest of some magnitudes, a scalar: `amax` itself where it is one.
mlir::Value largestOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value amax);

/// What the epilogue reads and writes besides operands and result.
bool addsBias(Epilogue epilogue);
bool hasGelu(Epilogue epilogue);    ///< the tanh form, of the result
bool readsAux(Epilogue epilogue);   ///< multiplies by the GELU's slope there
bool writesAux(Epilogue epilogue);  ///< what the GELU is of
bool sumsResult(Epilogue epilogue); ///< over its rows: a bias gradient
bool givesBiasGradient(Epilogue epilogue);

/// Whether the value is an argument of a function that is a parameter of the model.
bool isParameter(mlir::Value value);

/// A splat constant of `type`.
mlir::Value splat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);

} // namespace gradc::nn

#include "ir/NnInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/NnAttrs.h.inc"
#define GET_OP_CLASSES
#include "ir/NnOps.h.inc"
