// The kernels that the GPU target can make.
#include "codegen/gpu/KernelFamilies.h"

#include "codegen/gpu/Attention.h"
#include "codegen/gpu/Documents.h"
#include "codegen/gpu/Embedding.h"
#include "codegen/gpu/LibraryProducts.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/Rope.h"
#include "codegen/gpu/RowProgram.h"
#include "codegen/gpu/Sums.h"
#include "codegen/gpu/TransposedCopy.h"
#include "codegen/kernels/CeilDiv.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/Cluster.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

using Table = KernelTable<GpuTarget>;
using Emission = Table::Emission;

KernelGeometry fusedGeometry(nn::FusedOp op, ArrayRef<int64_t> strides) {
  nn::ClusterProgram cluster = nn::buildClusterProgram(op, strides);
  RowSchedule schedule = scheduleRows(cluster.program);
  return {cluster.extent, taskCount(cluster.program, schedule, cluster.extent)};
}
KernelWork fusedWork(nn::FusedOp op, ArrayRef<int64_t> strides) {
  nn::ClusterProgram cluster = nn::buildClusterProgram(op, strides);
  return rowWork(cluster, reuseOf(scheduleRows(cluster.program)));
}
void emitFused(nn::FusedOp op, Emission &to) {
  emitRowProgram(to.module, to.name, nn::buildClusterProgram(op, to.strides).program, to.target);
}

KernelGeometry foldRowsGeometry(nn::FoldRowsOp op, ArrayRef<int64_t>) {
  return {rowsOf(op.getInput()), ceilDiv(columnsOf(op.getInput()), foldColumnsPerTask)};
}
KernelWork foldRowsWork(nn::FoldRowsOp op, ArrayRef<int64_t>) {
  return sumWork(elementsOf(op.getInput()), columnsOf(op.getInput()), /*flopsEach=*/1);
}
void emitFoldRowsOp(nn::FoldRowsOp op, Emission &to) {
  emitFoldRows(to.module, to.name, columnsOf(op.getInput()), to.target);
}
KernelGeometry sumGeometry(nn::SumOp op, ArrayRef<int64_t>) {
  return {elementsOf(op.getInput()), 1};
}
KernelWork sumOpWork(nn::SumOp op, ArrayRef<int64_t>) {
  return sumWork(elementsOf(op.getInput()), 1, /*flopsEach=*/1);
}
void emitSum(nn::SumOp, Emission &to) { emitFoldAll(to.module, to.name, to.target); }
KernelGeometry squareSumsGeometry(nn::SquareSumsOp op, ArrayRef<int64_t>) {
  return {elementsOf(op.getInput()), elementsOf(op.getResult())};
}
KernelWork squareSumsWork(nn::SquareSumsOp op, ArrayRef<int64_t>) {
  return sumWork(elementsOf(op.getInput()), elementsOf(op.getResult()), /*flopsEach=*/2);
}
void emitSquareSums(nn::SquareSumsOp, Emission &to) {
  emitChunkSquareSums(to.module, to.name, to.target);
}

KernelGeometry attentionGeometry(nn::AttentionOp op, ArrayRef<int64_t> strides) {
  return {rowsOf(op.getQuery()), attentionForwardBlocks(specOf(op, strides))};
}
KernelWork attentionWork(nn::AttentionOp op, ArrayRef<int64_t> strides) {
  return attentionForwardWork(specOf(op, strides));
}
void emitAttention(nn::AttentionOp op, Emission &to) {
  AttentionSpec spec = specOf(op, to.strides);
  emitAttentionForward(to.module, to.name, spec, to.target, forwardOrder(spec).keyHeads);
}
KernelGeometry attentionGradGeometry(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  return {rowsOf(op.getQuery()), attentionBackwardBlocks(specOf(op, strides))};
}
KernelWork attentionGradWork(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  return attentionBackwardWork(specOf(op, strides));
}
void emitAttentionGrad(nn::AttentionGradOp op, Emission &to) {
  AttentionSpec spec = specOf(op, to.strides);
  emitAttentionBackward(to.module, to.name, spec, to.target, backwardOrder(spec).keyHeads);
}
template <typename Op> std::string attentionLimits(Operation *op, ArrayRef<int64_t> strides) {
  return verifyForGpu(specOf(cast<Op>(op), strides));
}

KernelGeometry ropeGeometry(nn::RopeOp op, ArrayRef<int64_t> strides) {
  int64_t tokens = rowsOf(op.getInput());
  return {tokens, taskCount(specOf(op, strides), tokens)};
}
KernelWork ropeOpWork(nn::RopeOp op, ArrayRef<int64_t> strides) {
  return ropeWork(specOf(op, strides), rowsOf(op.getInput()));
}
void emitRopeOp(nn::RopeOp op, Emission &to) {
  emitRope(to.module, to.name, specOf(op, to.strides), to.target);
}
KernelGeometry documentsGeometry(nn::DocumentsOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getTokens());
  return {tokens, taskCount(specOf(op), tokens)};
}
KernelWork documentsOpWork(nn::DocumentsOp op, ArrayRef<int64_t>) {
  return documentsWork(specOf(op), elementsOf(op.getTokens()));
}
void emitDocumentsOp(nn::DocumentsOp op, Emission &to) {
  emitDocuments(to.module, to.name, specOf(op), to.target);
}
KernelGeometry embeddingGeometry(nn::EmbeddingOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(specOf(op), tokens)};
}
KernelWork embeddingOpWork(nn::EmbeddingOp op, ArrayRef<int64_t>) {
  return embeddingWork(specOf(op), elementsOf(op.getIndices()));
}
void emitEmbeddingOp(nn::EmbeddingOp op, Emission &to) {
  emitEmbedding(to.module, to.name, specOf(op), to.target);
}
KernelGeometry embeddingGradGeometry(nn::EmbeddingGradOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(specOf(op), tokens)};
}
KernelWork embeddingGradWork(nn::EmbeddingGradOp op, ArrayRef<int64_t>) {
  return embeddingGradientWork(specOf(op), elementsOf(op.getIndices()));
}
void emitEmbeddingGradOp(nn::EmbeddingGradOp op, Emission &to) {
  emitEmbeddingGradient(to.module, to.name, specOf(op), to.target);
}

KernelGeometry transposedCopyGeometry(nn::TransposedCopyOp op, ArrayRef<int64_t>) {
  int64_t rows = rowsOf(op.getInput()), columns = columnsOf(op.getInput());
  return {rows, transposedCopyBlocks(rows, columns)};
}
KernelWork transposedCopyOpWork(nn::TransposedCopyOp op, ArrayRef<int64_t>) {
  return transposedCopyWork(rowsOf(op.getInput()), columnsOf(op.getInput()));
}
void emitTransposedCopyOp(nn::TransposedCopyOp op, Emission &to) {
  emitTransposedCopy(to.module, to.name, rowsOf(op.getInput()), columnsOf(op.getInput()),
                     to.target);
}

std::string transposedCopyLimits(Operation *op, ArrayRef<int64_t>) {
  auto input = cast<nn::TransposedCopyOp>(op).getInput();
  bool fits = rowsOf(input) % transposedBytes == 0 && columnsOf(input) % transposedBytes == 0;
  return fits ? "" : "expected rows and columns that are multiples of 16";
}

const Table &table() {
  static const Table::Family families[] = {
      Table::family<nn::FusedOp, fusedGeometry, fusedWork, emitFused>(),
      Table::family<nn::FoldRowsOp, foldRowsGeometry, foldRowsWork, emitFoldRowsOp>(),
      Table::family<nn::SumOp, sumGeometry, sumOpWork, emitSum>(),
      Table::family<nn::SquareSumsOp, squareSumsGeometry, squareSumsWork, emitSquareSums>(),
      Table::family<nn::AttentionOp, attentionGeometry, attentionWork, emitAttention>(
          attentionLimits<nn::AttentionOp>),
      Table::family<nn::AttentionGradOp, attentionGradGeometry, attentionGradWork,
                    emitAttentionGrad>(attentionLimits<nn::AttentionGradOp>),
      Table::family<nn::RopeOp, ropeGeometry, ropeOpWork, emitRopeOp>(),
      Table::family<nn::DocumentsOp, documentsGeometry, documentsOpWork, emitDocumentsOp>(),
      Table::family<nn::EmbeddingOp, embeddingGeometry, embeddingOpWork, emitEmbeddingOp>(),
      Table::family<nn::TransposedCopyOp, transposedCopyGeometry, transposedCopyOpWork,
                    emitTransposedCopyOp>(transposedCopyLimits),
      Table::family<nn::EmbeddingGradOp, embeddingGradGeometry, embeddingGradWork,
                    emitEmbeddingGradOp>(),
  };
  static const Table table("GPU", families);
  return table;
}

} // namespace

llvm::FailureOr<KernelGeometry> GpuKernels::geometry(Operation *op,
                                                     ArrayRef<int64_t> rowStrides) const {
  return table().geometry(op, rowStrides);
}

int64_t GpuKernels::gemmWorkspaceBytes(int64_t, int64_t, int64_t) const {
  return libraryWorkspaceBytes(target);
}
bool GpuKernels::takesEpilogue(Operation *product) const {
  return libraryTakesEpilogue(cast<nn::ProductOpInterface>(product));
}
Type GpuKernels::biasType(Operation *product) const {
  return libraryBiasType(cast<nn::ProductOpInterface>(product));
}
Float8Operands GpuKernels::float8Operands(Operation *product) const {
  return libraryFloat8Operands(cast<nn::ProductOpInterface>(product), target);
}

RuntimeSizes GpuKernels::runtimeSizes(Operation *op) const { return codegen::runtimeSizes(op); }

std::optional<KernelWork> GpuKernels::work(Operation *op, ArrayRef<int64_t> rowStrides) const {
  std::optional<KernelWork> work = table().work(op, rowStrides);
  if (work && work->leastBytes == 0)
    work->leastBytes = nn::defaultBytes(op);
  return work;
}

llvm::FailureOr<OwningOpRef<ModuleOp>> emitKernels(ModuleOp module, const GpuTarget &target) {
  loadGpuDialects(*module.getContext());
  return table().emit(module, target, [](exec::KernelOp kernel, ModuleOp emitted) {
    if (kernel.getTable())
      takeParts(emitted.lookupSymbol<LLVM::LLVMFuncOp>(kernel.getSymName()));
  });
}

} // namespace gradc::codegen::gpu
