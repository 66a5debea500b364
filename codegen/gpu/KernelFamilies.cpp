// The kernels that the GPU target can make.
#include "codegen/gpu/KernelFamilies.h"

#include "codegen/gpu/Attention.h"
#include "codegen/gpu/Documents.h"
#include "codegen/gpu/Embedding.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/Rope.h"
#include "codegen/gpu/RowProgram.h"
#include "codegen/gpu/Sums.h"
#include "ir/Cluster.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

/// What an emitter is given: where to print, and the op's row strides.
struct Emission {
  ModuleOp module;
  llvm::StringRef name;
  const GpuTarget &target;
  ArrayRef<int64_t> strides;
};

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
  int64_t columns = columnsOf(op.getInput());
  return {rowsOf(op.getInput()), (columns + foldColumnsPerTask - 1) / foldColumnsPerTask};
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
  emitAttentionForward(to.module, to.name, specOf(op, to.strides), to.target);
}
KernelGeometry attentionGradGeometry(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  return {rowsOf(op.getQuery()), attentionBackwardBlocks(specOf(op, strides))};
}
KernelWork attentionGradWork(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  return attentionBackwardWork(specOf(op, strides));
}
void emitAttentionGrad(nn::AttentionGradOp op, Emission &to) {
  emitAttentionBackward(to.module, to.name, specOf(op, to.strides), to.target);
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

struct KernelFamily {
  llvm::StringRef opName;
  KernelGeometry (*geometry)(Operation *op, ArrayRef<int64_t> strides);
  KernelWork (*work)(Operation *op, ArrayRef<int64_t> strides);
  void (*emit)(Operation *op, Emission &to);
  /// What the family cannot make of the op; empty where it can. Null: it makes all.
  std::string (*limits)(Operation *op, ArrayRef<int64_t> strides);
};

template <typename Op, KernelGeometry (*geometryOf)(Op, ArrayRef<int64_t>),
          KernelWork (*workOf)(Op, ArrayRef<int64_t>), void (*emitOp)(Op, Emission &)>
KernelFamily family(std::string (*limits)(Operation *, ArrayRef<int64_t>) = nullptr) {
  return {
      Op::getOperationName(),
      [](Operation *op, ArrayRef<int64_t> strides) { return geometryOf(cast<Op>(op), strides); },
      [](Operation *op, ArrayRef<int64_t> strides) { return workOf(cast<Op>(op), strides); },
      [](Operation *op, Emission &to) { emitOp(cast<Op>(op), to); }, limits};
}

llvm::FailureOr<const KernelFamily *> findFamily(Operation *op, ArrayRef<int64_t> strides) {
  static const KernelFamily families[] = {
      family<nn::FusedOp, fusedGeometry, fusedWork, emitFused>(),
      family<nn::FoldRowsOp, foldRowsGeometry, foldRowsWork, emitFoldRowsOp>(),
      family<nn::SumOp, sumGeometry, sumOpWork, emitSum>(),
      family<nn::SquareSumsOp, squareSumsGeometry, squareSumsWork, emitSquareSums>(),
      family<nn::AttentionOp, attentionGeometry, attentionWork, emitAttention>(
          attentionLimits<nn::AttentionOp>),
      family<nn::AttentionGradOp, attentionGradGeometry, attentionGradWork, emitAttentionGrad>(
          attentionLimits<nn::AttentionGradOp>),
      family<nn::RopeOp, ropeGeometry, ropeOpWork, emitRopeOp>(),
      family<nn::DocumentsOp, documentsGeometry, documentsOpWork, emitDocumentsOp>(),
      family<nn::EmbeddingOp, embeddingGeometry, embeddingOpWork, emitEmbeddingOp>(),
      family<nn::EmbeddingGradOp, embeddingGradGeometry, embeddingGradWork, emitEmbeddingGradOp>(),
  };
  const KernelFamily *found = llvm::find_if(families, [&](const KernelFamily &candidate) {
    return candidate.opName == op->getName().getStringRef();
  });
  if (found == std::end(families))
    return op->emitOpError("expected an op that the GPU target has a kernel for");
  if (std::string limits = found->limits ? found->limits(op, strides) : ""; !limits.empty())
    return op->emitOpError(limits);
  return found;
}

} // namespace

llvm::FailureOr<KernelGeometry> GpuKernels::geometry(Operation *op,
                                                     ArrayRef<int64_t> rowStrides) const {
  auto family = findFamily(op, rowStrides);
  if (failed(family))
    return failure();
  return (*family)->geometry(op, rowStrides);
}

RuntimeSizes GpuKernels::runtimeSizes(Operation *op) const { return codegen::runtimeSizes(op); }

std::optional<KernelWork> GpuKernels::work(Operation *op, ArrayRef<int64_t> rowStrides) const {
  auto family = findFamily(op, rowStrides);
  if (failed(family))
    return std::nullopt;
  KernelWork work = (*family)->work(op, rowStrides);
  if (work.leastBytes == 0)
    work.leastBytes = nn::defaultBytes(op);
  return work;
}

llvm::FailureOr<OwningOpRef<ModuleOp>> emitKernels(ModuleOp module, const GpuTarget &target) {
  loadGpuDialects(*module.getContext());
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    Operation *op = &kernel.getBody().front().front();
    auto family = findFamily(op, kernel.getRowStrides());
    if (failed(family))
      return failure();
    Emission to{*kernels, kernel.getSymName(), target, kernel.getRowStrides()};
    (*family)->emit(op, to);
    if (kernel.getTable())
      takeParts(kernels->lookupSymbol<LLVM::LLVMFuncOp>(kernel.getSymName()));
  }
  return kernels;
}

} // namespace gradc::codegen::gpu
