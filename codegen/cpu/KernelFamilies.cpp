// The kernels that the CPU target can make.
#include "codegen/cpu/KernelFamilies.h"
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Documents.h"
#include "codegen/cpu/Embedding.h"
#include "codegen/cpu/FoldRows.h"
#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/ObjectFile.h"
#include "codegen/cpu/Panels.h"
#include "codegen/cpu/Rope.h"
#include "codegen/cpu/RowProgram.h"
#include "codegen/kernels/CeilDiv.h"
#include "codegen/kernels/KernelTable.h"
#include "codegen/kernels/RowWork.h"
#include "codegen/kernels/Specs.h"
#include "ir/Cluster.h"
#include "runtime/cpu/GemmWorkspace.h"

using namespace mlir;

namespace gradc::codegen {
namespace {

using Table = KernelTable<CpuTarget, const CpuTarget &>;
using Emission = Table::Emission;

OpBuilder atEnd(Emission &to) { return OpBuilder::atBlockEnd(to.module.getBody()); }

//===-- clusters
//---------------------------------------------------------------------------------===//

KernelGeometry fusedGeometry(nn::FusedOp op, const KernelLayout &layout, const CpuTarget &) {
  nn::ClusterProgram cluster = nn::buildClusterProgram(op, layout.rowStrides);
  return {cluster.extent, row::taskCount(cluster.program, cluster.extent)};
}
void emitFused(nn::FusedOp op, Emission &to) {
  OpBuilder builder = atEnd(to);
  emitRowProgram(builder, to.module, nn::buildClusterProgram(op, to.layout.rowStrides).program,
                 to.name, to.target);
}

//===-- sums
//-------------------------------------------------------------------------------------===//

KernelGeometry foldRowsGeometry(nn::FoldRowsOp op, const KernelLayout &, const CpuTarget &) {
  return {rowsOf(op.getInput()), ceilDiv(columnsOf(op.getInput()), foldColumnsPerTask)};
}
void emitFoldRowsOp(nn::FoldRowsOp op, Emission &to) {
  OpBuilder builder = atEnd(to);
  emitFoldRows(builder, to.module, to.name, columnsOf(op.getInput()), to.target);
}
KernelGeometry sumGeometry(nn::SumOp op, const KernelLayout &, const CpuTarget &) {
  return {elementsOf(op.getInput()), 1};
}
void emitSum(nn::SumOp, Emission &to) {
  OpBuilder builder = atEnd(to);
  emitFoldAll(builder, to.module, to.name, to.target);
}
KernelGeometry squareSumsGeometry(nn::SquareSumsOp op, const KernelLayout &, const CpuTarget &) {
  return {elementsOf(op.getInput()), elementsOf(op.getResult())};
}
void emitSquareSums(nn::SquareSumsOp, Emission &to) {
  OpBuilder builder = atEnd(to);
  emitChunkSquareSums(builder, to.module, to.name, to.target);
}

//===-- matrix products

bool readsPanels(nn::MatmulOp op) {
  return cast<RankedTensorType>(op.getRhs().getType()).getEncoding() != nullptr;
}

GemmSpec specOf(nn::MatmulOp op, ArrayRef<int64_t> strides, const CpuTarget &target) {
  auto matrix = [](Value value, int64_t stride, bool transposed) -> GemmSpec::Matrix {
    int64_t perRow = stride ? stride : columnsOf(value);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    return {transposed ? 1 : perRow, transposed ? perRow : 1, shape[shape.size() - 2] * perRow,
            dtypeOf(value)};
  };
  ArrayRef<int64_t> left = cast<RankedTensorType>(op.getLhs().getType()).getShape();
  ArrayRef<int64_t> result = cast<RankedTensorType>(op.getType()).getShape();
  size_t rank = result.size();
  GemmSpec spec;
  spec.m = result[rank - 2];
  spec.n = result[rank - 1];
  spec.k = left[rank - (op.getTransposeLhs() ? 2 : 1)];
  for (int64_t dim : result.drop_back(2))
    spec.batch *= dim;
  spec.a = matrix(op.getLhs(), strides[0], op.getTransposeLhs());
  spec.b = matrix(op.getRhs(), strides[1], op.getTransposeRhs());
  spec.c = matrix(op.getResult(), strides.back(), false);
  spec.accumulate = op.getAccumulator() != nullptr;
  spec.roundInputs = op.getTf32() ? InputRounding::tf32 : InputRounding::none;
  spec.scaled = op.getLhsScale() != nullptr;
  spec.panelsB = readsPanels(op);
  spec.threads = target.threads;
  return spec;
}
/// Before operands are placed, from which their strides follow.
GemmSpec contiguousSpec(nn::MatmulOp op, const CpuTarget &target) {
  return specOf(op, SmallVector<int64_t>(op->getNumOperands() + op->getNumResults(), 0), target);
}
KernelGeometry matmulGeometry(nn::MatmulOp op, const KernelLayout &layout,
                              const CpuTarget &target) {
  GemmSpec spec = specOf(op, layout.rowStrides, target);
  return {spec.m, gemmTaskCount(spec)};
}
void emitMatmul(nn::MatmulOp op, Emission &to) {
  emitGemm(to.module, to.name, specOf(op, to.layout.rowStrides, to.target), to.target);
}

KernelGeometry packPanelsGeometry(nn::PackPanelsOp op, const KernelLayout &, const CpuTarget &) {
  return {rowsOf(op.getInput()), packPanelsTaskCount(op)};
}
void emitPackPanelsOp(nn::PackPanelsOp op, Emission &to) {
  emitPackPanels(to.module, to.name, op, to.target);
}

//===-- attention
//--------------------------------------------------------------------------------===//

KernelGeometry attentionGeometry(nn::AttentionOp op, const KernelLayout &layout,
                                 const CpuTarget &) {
  return {rowsOf(op.getQuery()), attentionForwardTaskCount(codegen::specOf(op, layout.rowStrides))};
}
void emitAttention(nn::AttentionOp op, Emission &to) {
  emitAttentionForward(to.module, to.name, codegen::specOf(op, to.layout.rowStrides), to.target);
}

KernelGeometry attentionGradGeometry(nn::AttentionGradOp op, const KernelLayout &layout,
                                     const CpuTarget &) {
  return {rowsOf(op.getQuery()),
          attentionBackwardTaskCount(codegen::specOf(op, layout.rowStrides))};
}
void emitAttentionGrad(nn::AttentionGradOp op, Emission &to) {
  emitAttentionBackward(to.module, to.name, codegen::specOf(op, to.layout.rowStrides), to.target);
}

//===-- rope, documents and embeddings
//-----------------------------------------------------------===//

KernelGeometry ropeGeometry(nn::RopeOp op, const KernelLayout &layout, const CpuTarget &) {
  int64_t tokens = rowsOf(op.getInput());
  return {tokens, taskCount(codegen::specOf(op, layout.rowStrides), tokens)};
}
void emitRopeOp(nn::RopeOp op, Emission &to) {
  emitRope(to.module, to.name, codegen::specOf(op, to.layout.rowStrides), to.target);
}

KernelGeometry documentsGeometry(nn::DocumentsOp op, const KernelLayout &, const CpuTarget &) {
  int64_t tokens = elementsOf(op.getTokens());
  return {tokens, taskCount(codegen::specOf(op), tokens)};
}
void emitDocumentsOp(nn::DocumentsOp op, Emission &to) {
  emitDocuments(to.module, to.name, codegen::specOf(op), to.target);
}

KernelGeometry embeddingGeometry(nn::EmbeddingOp op, const KernelLayout &, const CpuTarget &) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(codegen::specOf(op), tokens)};
}
void emitEmbeddingOp(nn::EmbeddingOp op, Emission &to) {
  emitEmbedding(to.module, to.name, codegen::specOf(op), to.target);
}

KernelGeometry embeddingGradGeometry(nn::EmbeddingGradOp op, const KernelLayout &,
                                     const CpuTarget &) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(codegen::specOf(op), tokens)};
}
void emitEmbeddingGradOp(nn::EmbeddingGradOp op, Emission &to) {
  emitEmbeddingGradient(to.module, to.name, codegen::specOf(op), to.target);
}

//===-- the table
//--------------------------------------------------------------------------------===//

const Table &table() {
  static const Table::Family families[] = {
      Table::family<nn::FusedOp, fusedGeometry, emitFused>(),
      Table::family<nn::FoldRowsOp, foldRowsGeometry, emitFoldRowsOp>(),
      Table::family<nn::SumOp, sumGeometry, emitSum>(),
      Table::family<nn::SquareSumsOp, squareSumsGeometry, emitSquareSums>(),
      Table::family<nn::MatmulOp, matmulGeometry, emitMatmul>(),
      Table::family<nn::PackPanelsOp, packPanelsGeometry, emitPackPanelsOp>(),
      Table::family<nn::AttentionOp, attentionGeometry, emitAttention>(),
      Table::family<nn::AttentionGradOp, attentionGradGeometry, emitAttentionGrad>(),
      Table::family<nn::RopeOp, ropeGeometry, emitRopeOp>(),
      Table::family<nn::DocumentsOp, documentsGeometry, emitDocumentsOp>(),
      Table::family<nn::EmbeddingOp, embeddingGeometry, emitEmbeddingOp>(),
      Table::family<nn::EmbeddingGradOp, embeddingGradGeometry, emitEmbeddingGradOp>(),
  };
  static const Table table("CPU", families);
  return table;
}

} // namespace

llvm::FailureOr<KernelGeometry> CpuKernelLibrary::geometry(Operation *op,
                                                           const KernelLayout &layout) const {
  return table().geometry(op, layout, target);
}

bool CpuKernelLibrary::emitsProduct(Operation *product) const {
  auto isF32 = [](Value value) { return dtypeOf(value) == row::Dtype::f32; };
  bool isPlain = !cast<nn::MatmulOp>(product).getTf32() &&
                 llvm::all_of(product->getOperands(), isF32) &&
                 llvm::all_of(product->getResults(), isF32);
  if (products == Products::generated || !isPlain || readsPanels(cast<nn::MatmulOp>(product)))
    return true;
  if (products == Products::library)
    return false;
  return times->prefersGenerated(contiguousSpec(cast<nn::MatmulOp>(product), target));
}

Attribute CpuKernelLibrary::panelsOf(Operation *reader) const {
  auto product = dyn_cast<nn::MatmulOp>(reader);
  if (!product || !emitsProduct(product))
    return {};
  return codegen::panelsOf(reader->getContext(), contiguousSpec(product, target),
                           product.getTransposeRhs(), target);
}

int64_t CpuKernelLibrary::gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const {
  return rt::gemmWorkspaceBytes(m, n, k);
}

RuntimeSizes CpuKernelLibrary::runtimeSizes(Operation *op) const {
  return codegen::runtimeSizes(op);
}

std::optional<KernelWork> CpuKernelLibrary::work(Operation *op, const KernelLayout &layout) const {
  auto fused = dyn_cast<nn::FusedOp>(op);
  if (!fused)
    return std::nullopt;
  nn::ClusterProgram cluster = nn::buildClusterProgram(fused, layout.rowStrides);
  bool isOneLoop = row::loopCount(cluster.program) <= 1;
  return rowWork(cluster, {.computes = isOneLoop});
}

llvm::FailureOr<OwningOpRef<ModuleOp>> emitKernels(ModuleOp module, const CpuTarget &target) {
  loadKernelDialects(*module.getContext());
  return table().emit(module, target);
}

} // namespace gradc::codegen
