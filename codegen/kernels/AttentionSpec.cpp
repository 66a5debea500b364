// Attention's spec from its ops, and its limits.
#include "codegen/kernels/AttentionSpec.h"

#include "codegen/kernels/Specs.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gradc::codegen {

AttentionSpec::Strides AttentionSpec::contiguous(int64_t seq, int64_t heads, int64_t headDim) {
  return {seq * heads * headDim, heads * headDim, headDim};
}

std::string verify(const AttentionSpec &s) {
  if (s.batch < 1 || s.seq < 1 || s.heads < 1 || s.kvHeads < 1 || s.headDim < 1 || s.window < 0)
    return "attention: expected positive sizes and a window of 0 or more";
  if (s.heads % s.kvHeads != 0)
    return llvm::formatv("attention: {0} heads are not a multiple of {1} key heads", s.heads,
                         s.kvHeads);
  if (s.headDim > 1024)
    return llvm::formatv("attention: head dimension {0} is above 1024", s.headDim);
  if (s.dtype == row::Dtype::i32)
    return "attention: expected elements of f32, bf16 or f16, got: i32";
  if (!(s.dropout >= 0 && s.dropout < 1))
    return llvm::formatv("attention: expected a dropout rate in [0, 1), got: {0}", s.dropout);
  return "";
}

namespace {

template <typename Op> AttentionSpec attentionSpec(Op op) {
  AttentionSpec spec;
  spec.dtype = nn::rowDtype(cast<RankedTensorType>(op.getQuery().getType()).getElementType());
  spec.batch = op.getBatch();
  spec.seq = rowsOf(op.getQuery()) / spec.batch;
  spec.heads = op.getHeads();
  spec.kvHeads = op.getKvHeads();
  spec.headDim = columnsOf(op.getQuery()) / spec.heads;
  spec.scale = op.getScale().convertToDouble();
  spec.causal = op.getCausal();
  spec.window = op.getWindow();
  spec.documents = op.getFirstKey() != nullptr;
  spec.dropout = op.getDropout().convertToDouble();
  return spec;
}

AttentionSpec::Strides headStrides(const AttentionSpec &spec, Value matrix, int64_t rowStride) {
  int64_t token = rowStride ? rowStride : columnsOf(matrix);
  return {spec.seq * token, token, spec.headDim};
}

} // namespace

AttentionSpec specOf(nn::AttentionOp op, ArrayRef<int64_t> strides) {
  AttentionSpec spec = attentionSpec(op);
  spec.q = headStrides(spec, op.getQuery(), strides[0]);
  spec.k = headStrides(spec, op.getKey(), strides[1]);
  spec.v = headStrides(spec, op.getValue(), strides[2]);
  spec.o = headStrides(spec, op.getResult(), strides[op->getNumOperands()]);
  return spec;
}
AttentionSpec specOf(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  AttentionSpec spec = attentionSpec(op);
  spec.q = headStrides(spec, op.getQuery(), strides[0]);
  spec.k = headStrides(spec, op.getKey(), strides[1]);
  spec.v = headStrides(spec, op.getValue(), strides[2]);
  spec.o = headStrides(spec, op.getOutput(), strides[3]);
  spec.dO = headStrides(spec, op.getGradient(), strides[5]);
  size_t results = op->getNumOperands();
  spec.dq = headStrides(spec, op.getQueryGradient(), strides[results]);
  spec.dk = headStrides(spec, op.getKeyGradient(), strides[results + 1]);
  spec.dv = headStrides(spec, op.getValueGradient(), strides[results + 2]);
  return spec;
}
} // namespace gradc::codegen
