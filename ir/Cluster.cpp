// From a cluster of row ops to the row program that computes it.
#include "ir/Cluster.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;
using row::NodeId;

RowSpace gradc::nn::rowSpaceOf(FusedOp op) {
  for (auto rowOp : op.getBody().front().getOps<RowOpInterface>())
    return rowOp.getRowSpace();
  return rowSpaceOf(op.getResult(0).getType()); // a cluster of constants only fills its results
}

namespace {

/// Builds the program of one cluster.
class ClusterBuilder {
public:
  ClusterBuilder(FusedOp op, ArrayRef<int64_t> rowStrides, bool mayBeFlat)
      : op(op), body(op.getBody().front()), rowStrides(rowStrides), space(rowSpaceOf(op)),
        flat(mayBeFlat && isFlat()),
        builder(flat ? row::Builder::flat() : row::Builder(space.columns)) {}

  ClusterProgram build() {
    bindOperands();
    for (Operation &inner : body.without_terminator())
      emit(inner);
    bindResults();
    result.program = builder.take();
    result.extent = flat ? space.rows * space.columns : space.rows;
    return std::move(result);
  }

private:
  /// One long row will do when no op looks beyond its own element and nothing is strided.
  bool isFlat() {
    for (int64_t stride : rowStrides)
      if (stride != 0)
        return false;
    for (Operation &inner : body.without_terminator())
      if (auto rowOp = dyn_cast<RowOpInterface>(inner); rowOp && !rowOp.isElementwise())
        return false;
    return true;
  }

  /// How a value from outside, or a result, is indexed: as the first op that touches it says.
  BufferKind kindOf(Value value) {
    if (Operation *producer = value.getDefiningOp())
      if (auto rowOp = dyn_cast<RowOpInterface>(producer))
        return rowOp.getResultKind(cast<OpResult>(value).getResultNumber());
    for (OpOperand &use : value.getUses())
      if (auto rowOp = dyn_cast<RowOpInterface>(use.getOwner()))
        return rowOp.getOperandKind(use.getOperandNumber());
    return broadcastKind(value.getType(), space);
  }

  int32_t addBuffer(Value value, size_t strideIndex) {
    auto type = cast<RankedTensorType>(value.getType());
    BufferKind kind = kindOf(value);
    int64_t stride = strideIndex < rowStrides.size() ? rowStrides[strideIndex] : 0;
    buffers.push_back({rowDtype(type.getElementType()), kind, stride});
    // Two operands with equal buffers stay two buffers: addBuffer never merges.
    switch (kind) {
    case BufferKind::matrix:
      return builder.matrix(buffers.back().dtype, stride);
    case BufferKind::column:
      return builder.column(buffers.back().dtype);
    case BufferKind::row:
      return builder.row(buffers.back().dtype);
    case BufferKind::scalar:
      return builder.scalar(buffers.back().dtype);
    case BufferKind::columnPartial:
      return builder.columnPartial();
    }
    llvm_unreachable("every buffer kind is handled");
  }

  void bindOperands() {
    for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
      int32_t buffer = addBuffer(argument, i);
      result.operandBuffers.push_back(buffer);
      bufferOf[argument] = buffer;
      nodeOf[argument] = builder.load(buffer);
    }
  }

  void emit(Operation &inner) {
    DenseElementsAttr constant;
    if (matchPattern(&inner, m_Constant(&constant))) {
      double value = constant.getElementType().isInteger()
                         ? static_cast<double>(constant.getSplatValue<APInt>().getSExtValue())
                         : constant.getSplatValue<APFloat>().convertToDouble();
      nodeOf[inner.getResult(0)] = builder.constant(value);
      return;
    }
    SmallVector<NodeId> operands, results(inner.getNumResults(), row::noNode);
    SmallVector<int32_t> operandBuffers;
    for (Value operand : inner.getOperands()) {
      operands.push_back(nodeOf.lookup(operand));
      auto found = bufferOf.find(operand);
      operandBuffers.push_back(found == bufferOf.end() ? -1 : found->second);
    }
    cast<RowOpInterface>(inner).buildRow(builder, operands, operandBuffers, results);
    // An op's result has its type's precision wherever it goes: what is fused changes no bit.
    for (auto [value, node] : llvm::zip(inner.getResults(), results)) {
      exactOf[value] = node;
      Type element = cast<RankedTensorType>(value.getType()).getElementType();
      nodeOf[value] = builder.round(rowDtype(element), node);
    }
  }

  void bindResults() {
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
      int32_t buffer = addBuffer(value, op.getNumOperands() + i);
      result.resultBuffers.push_back(buffer);
      // Storing rounds to the buffer's type, which is the value's.
      NodeId node = exactOf.contains(value) ? exactOf.lookup(value) : nodeOf.lookup(value);
      switch (buffers[buffer].kind) {
      case BufferKind::row:
        builder.storeRow(buffer, node);
        break;
      case BufferKind::columnPartial:
        builder.accumulateColumn(buffer, node);
        break;
      default:
        builder.store(buffer, node);
      }
    }
  }

  FusedOp op;
  Block &body;
  ArrayRef<int64_t> rowStrides;
  RowSpace space;
  bool flat;
  row::Builder builder;
  ClusterProgram result;
  SmallVector<row::Buffer> buffers;
  DenseMap<Value, NodeId> nodeOf, exactOf; ///< rounded to the value's type, and before that
  DenseMap<Value, int32_t> bufferOf;
};

} // namespace

ClusterProgram gradc::nn::buildClusterProgram(FusedOp op, ArrayRef<int64_t> rowStrides) {
  ClusterProgram flat = ClusterBuilder(op, rowStrides, /*mayBeFlat=*/true).build();
  // Of one row, or one column, shapes do not tell what a body looks at: a number of the row is
  // shaped as an element. The program tells.
  if (!flat.program.flat || row::verify(flat.program).empty())
    return flat;
  return ClusterBuilder(op, rowStrides, /*mayBeFlat=*/false).build();
}
