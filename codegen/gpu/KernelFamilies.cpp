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
void emitFused(nn::FusedOp op, Emission &to) {
  emitRowProgram(to.module, to.name, nn::buildClusterProgram(op, to.strides).program, to.target);
}

KernelGeometry foldRowsGeometry(nn::FoldRowsOp op, ArrayRef<int64_t>) {
  int64_t columns = columnsOf(op.getInput());
  return {rowsOf(op.getInput()), (columns + foldColumnsPerTask - 1) / foldColumnsPerTask};
}
void emitFoldRowsOp(nn::FoldRowsOp op, Emission &to) {
  emitFoldRows(to.module, to.name, columnsOf(op.getInput()), to.target);
}
KernelGeometry sumGeometry(nn::SumOp op, ArrayRef<int64_t>) {
  return {elementsOf(op.getInput()), 1};
}
void emitSum(nn::SumOp, Emission &to) { emitFoldAll(to.module, to.name, to.target); }
KernelGeometry squareSumsGeometry(nn::SquareSumsOp op, ArrayRef<int64_t>) {
  return {elementsOf(op.getInput()), elementsOf(op.getResult())};
}
void emitSquareSums(nn::SquareSumsOp, Emission &to) {
  emitChunkSquareSums(to.module, to.name, to.target);
}

KernelGeometry attentionGeometry(nn::AttentionOp op, ArrayRef<int64_t> strides) {
  return {rowsOf(op.getQuery()), attentionForwardBlocks(specOf(op, strides))};
}
void emitAttention(nn::AttentionOp op, Emission &to) {
  emitAttentionForward(to.module, to.name, specOf(op, to.strides), to.target);
}
KernelGeometry attentionGradGeometry(nn::AttentionGradOp op, ArrayRef<int64_t> strides) {
  return {rowsOf(op.getQuery()), attentionBackwardBlocks(specOf(op, strides))};
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
void emitRopeOp(nn::RopeOp op, Emission &to) {
  emitRope(to.module, to.name, specOf(op, to.strides), to.target);
}
KernelGeometry documentsGeometry(nn::DocumentsOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getTokens());
  return {tokens, taskCount(specOf(op), tokens)};
}
void emitDocumentsOp(nn::DocumentsOp op, Emission &to) {
  emitDocuments(to.module, to.name, specOf(op), to.target);
}
KernelGeometry embeddingGeometry(nn::EmbeddingOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(specOf(op), tokens)};
}
void emitEmbeddingOp(nn::EmbeddingOp op, Emission &to) {
  emitEmbedding(to.module, to.name, specOf(op), to.target);
}
KernelGeometry embeddingGradGeometry(nn::EmbeddingGradOp op, ArrayRef<int64_t>) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(specOf(op), tokens)};
}
void emitEmbeddingGradOp(nn::EmbeddingGradOp op, Emission &to) {
  emitEmbeddingGradient(to.module, to.name, specOf(op), to.target);
}

KernelGeometry transposedCopyGeometry(nn::TransposedCopyOp op, ArrayRef<int64_t>) {
  int64_t rows = rowsOf(op.getInput()), columns = columnsOf(op.getInput());
  return {rows, transposedCopyBlocks(rows, columns)};
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

struct KernelFamily {
  llvm::StringRef opName;
  KernelGeometry (*geometry)(Operation *op, ArrayRef<int64_t> strides);
  void (*emit)(Operation *op, Emission &to);
  /// What the family cannot make of the op; empty where it can. Null: it makes all.
  std::string (*limits)(Operation *op, ArrayRef<int64_t> strides);
};

template <typename Op, KernelGeometry (*geometryOf)(Op, ArrayRef<int64_t>),
          void (*emitOp)(Op, Emission &)>
KernelFamily family(std::string (*limits)(Operation *, ArrayRef<int64_t>) = nullptr) {
  return {
      Op::getOperationName(),
      [](Operation *op, ArrayRef<int64_t> strides) { return geometryOf(cast<Op>(op), strides); },
      [](Operation *op, Emission &to) { emitOp(cast<Op>(op), to); }, limits};
}

llvm::FailureOr<const KernelFamily *> findFamily(Operation *op, ArrayRef<int64_t> strides) {
  static const KernelFamily families[] = {
      family<nn::FusedOp, fusedGeometry, emitFused>(),
      family<nn::FoldRowsOp, foldRowsGeometry, emitFoldRowsOp>(),
      family<nn::SumOp, sumGeometry, emitSum>(),
      family<nn::SquareSumsOp, squareSumsGeometry, emitSquareSums>(),
      family<nn::AttentionOp, attentionGeometry, emitAttention>(attentionLimits<nn::AttentionOp>),
      family<nn::AttentionGradOp, attentionGradGeometry, emitAttentionGrad>(
          attentionLimits<nn::AttentionGradOp>),
      family<nn::RopeOp, ropeGeometry, emitRopeOp>(),
      family<nn::DocumentsOp, documentsGeometry, emitDocumentsOp>(),
      family<nn::EmbeddingOp, embeddingGeometry, emitEmbeddingOp>(),
      family<nn::TransposedCopyOp, transposedCopyGeometry, emitTransposedCopyOp>(
          transposedCopyLimits),
      family<nn::EmbeddingGradOp, embeddingGradGeometry, emitEmbeddingGradOp>(),
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
  }
  return kernels;
}

} // namespace gradc::codegen::gpu
