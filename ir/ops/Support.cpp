// Questions that every op of the dialect asks about types, and the helpers that backwards share.
#include "ir/Nn.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

RowSpace gradc::nn::rowSpaceOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() == 0)
    return {1, 1};
  int64_t columns = tensor.getShape().back();
  return {columns == 0 ? 0 : tensor.getNumElements() / columns, columns};
}

row::BufferKind gradc::nn::broadcastKind(Type type, RowSpace space) {
  RowSpace own = rowSpaceOf(type);
  if (own == space)
    return row::BufferKind::matrix;
  if (own.rows == 1 && own.columns == 1)
    return row::BufferKind::scalar;
  if (own.rows == 1 && own.columns == space.columns)
    return row::BufferKind::column;
  return row::BufferKind::row;
}

bool gradc::nn::allMatrixOrScalar(Operation *op) {
  auto rowOp = cast<RowOpInterface>(op);
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    row::BufferKind kind = rowOp.getOperandKind(i);
    if (kind != row::BufferKind::matrix && kind != row::BufferKind::scalar)
      return false;
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (rowOp.getResultKind(i) != row::BufferKind::matrix)
      return false;
  return true;
}

RankedTensorType gradc::nn::storedType(RankedTensorType type) {
  auto panels = dyn_cast_if_present<PanelsAttr>(type.getEncoding());
  return panels ? panels.storedType(type) : type;
}

int64_t gradc::nn::byteSize(Type type) {
  RankedTensorType tensor = storedType(cast<RankedTensorType>(type));
  return tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
}

int64_t gradc::nn::defaultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                            SmallVector<Type>(op->getResultTypes())))
    bytes += byteSize(type);
  return bytes;
}

row::Dtype gradc::nn::rowDtype(Type elementType) {
  if (elementType.isBF16())
    return row::Dtype::bf16;
  if (elementType.isF16())
    return row::Dtype::f16;
  if (isa<Float8E4M3FNType>(elementType))
    return row::Dtype::f8e4m3;
  if (isa<Float8E5M2Type>(elementType))
    return row::Dtype::f8e5m2;
  return elementType.isInteger(32) ? row::Dtype::i32 : row::Dtype::f32;
}

unsigned gradc::nn::inputCount(FunctionType function) {
  constexpr unsigned ids = 2, randomKeys = 3;
  auto isKey = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0 && tensor.getElementType().isInteger(32);
  };
  bool random = function.getNumInputs() >= ids + randomKeys &&
                llvm::all_of(function.getInputs().take_back(randomKeys), isKey);
  return random ? ids + randomKeys : ids;
}

bool gradc::nn::isParameter(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  return function && function.getArgAttr(argument.getArgNumber(), "nn.param");
}

Value gradc::nn::castTo(OpBuilder &builder, Location loc, Value value, Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elementType)
    return value;
  return CastOp::create(builder, loc, type.clone(elementType), value);
}

Value gradc::nn::splat(OpBuilder &builder, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  Attribute element =
      tensor.getElementType().isInteger()
          ? Attribute(builder.getIntegerAttr(tensor.getElementType(), static_cast<int64_t>(value)))
          : Attribute(builder.getFloatAttr(tensor.getElementType(), value));
  return ConstantOp::create(builder, loc, tensor,
                            cast<ElementsAttr>(DenseElementsAttr::get(tensor, element)));
}

Value gradc::nn::sumToType(OpBuilder &builder, Location loc, Value gradient, Type type) {
  if (gradient.getType() == type)
    return gradient;
  auto target = cast<RankedTensorType>(type);
  RowSpace space = rowSpaceOf(gradient.getType());
  if (rowSpaceOf(type) == space)
    return ReshapeOp::create(builder, loc, type, gradient);
  switch (broadcastKind(type, space)) {
  case row::BufferKind::row:
    return RowSumOp::create(builder, loc, type, gradient);
  case row::BufferKind::column: {
    int64_t chunks = (space.rows + row::rowsPerTask - 1) / row::rowsPerTask;
    auto partials = RankedTensorType::get({chunks, space.columns}, builder.getF32Type());
    Value sums = ColumnPartialsOp::create(builder, loc, partials, gradient);
    Value folded = FoldRowsOp::create(
        builder, loc, RankedTensorType::get({space.columns}, builder.getF32Type()), sums);
    return target.getRank() == 1 ? folded : ReshapeOp::create(builder, loc, type, folded);
  }
  default: {
    Value sum = SumOp::create(builder, loc, gradient);
    return target.getRank() == 0 ? sum : ReshapeOp::create(builder, loc, type, sum);
  }
  }
}
