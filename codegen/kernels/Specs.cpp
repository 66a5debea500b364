// Specs from ops, and their limits.
#include "codegen/kernels/Specs.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gradc::codegen {

int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }
int64_t rowsOf(Value value) { return nn::rowSpaceOf(value.getType()).rows; }
int64_t columnsOf(Value value) { return nn::rowSpaceOf(value.getType()).columns; }
row::Dtype dtypeOf(Value value) { return nn::rowDtype(getElementTypeOrSelf(value)); }

RuntimeSizes runtimeSizes(Operation *op) {
  if (isa<nn::SumOp, nn::SquareSumsOp>(op))
    return RuntimeSizes::all;
  return isa<nn::FoldRowsOp>(op) ? RuntimeSizes::rows : RuntimeSizes::none;
}

RopeSpec specOf(nn::RopeOp op, ArrayRef<int64_t> strides) {
  RopeSpec spec;
  spec.seq = rowsOf(op.getCos());
  spec.heads = op.getHeads();
  spec.headDim = columnsOf(op.getInput()) / spec.heads;
  spec.inverse = op.getInverse();
  auto stridesOf = [&](int64_t rowStride) -> RopeSpec::Strides {
    int64_t token = rowStride ? rowStride : columnsOf(op.getInput());
    return {spec.seq * token, token, spec.headDim};
  };
  spec.x = stridesOf(strides[0]);
  spec.out = stridesOf(strides[op->getNumOperands()]);
  spec.dtype = dtypeOf(op.getInput());
  spec.positions = op.getPositions() != nullptr;
  return spec;
}

std::string verify(const RopeSpec &s) {
  if (s.seq < 1 || s.heads < 1 || s.headDim < 1)
    return "rope: expected positive sizes";
  if (s.headDim % 2 != 0)
    return llvm::formatv("rope: head dimension {0} is odd", s.headDim);
  if (s.dtype == row::Dtype::i32)
    return "rope: expected f32, bf16 or f16, got: i32";
  return "";
}

DocumentsSpec specOf(nn::DocumentsOp op) {
  return {static_cast<int64_t>(op.getSeq()), static_cast<int32_t>(op.getSeparator())};
}

EmbeddingSpec specOf(nn::EmbeddingOp op) {
  return {rowsOf(op.getTable()), columnsOf(op.getTable()), dtypeOf(op.getTable()),
          dtypeOf(op.getResult())};
}

EmbeddingGradientSpec specOf(nn::EmbeddingGradOp op) {
  return {rowsOf(op.getResult()), columnsOf(op.getResult()), op.getAccumulator() != nullptr,
          dtypeOf(op.getGradient())};
}

static std::string verifySpec(int64_t vocab, int64_t channels,
                              std::initializer_list<row::Dtype> dtypes) {
  if (vocab < 1 || channels < 1)
    return "embedding: expected positive sizes";
  if (llvm::is_contained(dtypes, row::Dtype::i32))
    return "embedding: expected f32, bf16 or f16, got: i32";
  return "";
}
std::string verify(const EmbeddingSpec &s) {
  return verifySpec(s.vocab, s.channels, {s.table, s.out});
}
std::string verify(const EmbeddingGradientSpec &s) {
  return verifySpec(s.vocab, s.channels, {s.dy});
}

} // namespace gradc::codegen
