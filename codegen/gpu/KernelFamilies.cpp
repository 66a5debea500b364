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

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

using Table = KernelTable<GpuTarget, const GpuTarget &>;
using Emission = Table::Emission;

/// The least alignment of some of an op's operands and results.
int64_t alignmentOf(Operation *op, const KernelLayout &layout, ArrayRef<Value> values) {
  int64_t least = widestAccess;
  auto take = [&](ValueRange range, size_t first) {
    for (auto [i, value] : llvm::enumerate(range))
      if (llvm::is_contained(values, value))
        least = std::min(least, layout.alignments[first + i]);
  };
  if (layout.alignments.empty())
    return least;
  take(op->getOperands(), 0);
  take(op->getResults(), op->getNumOperands());
  return least;
}

/// The elements that they all begin at multiples of, of 8, 4, 2 and 1, or at 16 bytes. Each by its
/// own type: an element is always aligned to itself.
int64_t alignedLanes(Operation *op, const KernelLayout &layout, ArrayRef<Value> values) {
  int64_t lanes = 8;
  for (Value value : values) {
    int64_t bytes = row::byteSize(dtypeOf(value)), alignment = alignmentOf(op, layout, value);
    while (std::min(widestAccess, lanes * bytes) > alignment)
      lanes /= 2;
  }
  return lanes;
}

/// A cluster's program and how it is laid over threads.
struct ScheduledCluster {
  ScheduledCluster(nn::FusedOp op, const KernelLayout &layout, const GpuTarget &target)
      : cluster(nn::buildClusterProgram(op, layout.rowStrides)),
        alignments(alignmentsOf(layout.alignments)),
        schedule(scheduleRows(cluster.program, target, alignments)) {}

  nn::ClusterProgram cluster;
  Alignments alignments;
  RowSchedule schedule;

private:
  /// By buffer of the program.
  Alignments alignmentsOf(ArrayRef<int64_t> ofValues) const {
    if (ofValues.empty())
      return {};
    Alignments ofBuffers(cluster.program.buffers.size(), widestAccess);
    for (auto [buffer, alignment] : llvm::zip_equal(
             llvm::concat<const int32_t>(cluster.operandBuffers, cluster.resultBuffers), ofValues))
      if (buffer >= 0)
        ofBuffers[buffer] = alignment;
    return ofBuffers;
  }
};

KernelGeometry fusedGeometry(nn::FusedOp op, const KernelLayout &layout, const GpuTarget &target) {
  ScheduledCluster of(op, layout, target);
  return {of.cluster.extent, taskCount(of.cluster.program, of.schedule, of.cluster.extent)};
}
KernelWork fusedWork(nn::FusedOp op, const KernelLayout &layout, const GpuTarget &target) {
  ScheduledCluster of(op, layout, target);
  return rowWork(of.cluster, reuseOf(of.cluster.program, of.schedule));
}
void emitFused(nn::FusedOp op, Emission &to) {
  ScheduledCluster of(op, to.layout, to.target);
  emitRowProgram(to.module, to.name, of.cluster.program, to.target, of.alignments);
}

KernelGeometry foldRowsGeometry(nn::FoldRowsOp op, const KernelLayout &, const GpuTarget &) {
  return {rowsOf(op.getInput()), ceilDiv(columnsOf(op.getInput()), foldColumnsPerTask)};
}
KernelWork foldRowsWork(nn::FoldRowsOp op, const KernelLayout &, const GpuTarget &) {
  return sumWork(elementsOf(op.getInput()), columnsOf(op.getInput()), /*flopsEach=*/1);
}
void emitFoldRowsOp(nn::FoldRowsOp op, Emission &to) {
  emitFoldRows(to.module, to.name, columnsOf(op.getInput()), to.target);
}
KernelGeometry sumGeometry(nn::SumOp op, const KernelLayout &, const GpuTarget &) {
  return {elementsOf(op.getInput()), 1};
}
KernelWork sumOpWork(nn::SumOp op, const KernelLayout &, const GpuTarget &) {
  return sumWork(elementsOf(op.getInput()), 1, /*flopsEach=*/1);
}
void emitSum(nn::SumOp op, Emission &to) {
  emitFoldAll(to.module, to.name, to.target, alignmentOf(op, to.layout, op.getInput()));
}
KernelGeometry squareSumsGeometry(nn::SquareSumsOp op, const KernelLayout &, const GpuTarget &) {
  return {elementsOf(op.getInput()), elementsOf(op.getResult())};
}
KernelWork squareSumsWork(nn::SquareSumsOp op, const KernelLayout &, const GpuTarget &) {
  return sumWork(elementsOf(op.getInput()), elementsOf(op.getResult()), /*flopsEach=*/2);
}
void emitSquareSums(nn::SquareSumsOp op, Emission &to) {
  emitChunkSquareSums(to.module, to.name, to.target, alignmentOf(op, to.layout, op.getInput()));
}

AttentionSpec attentionSpec(nn::AttentionOp op, const KernelLayout &layout) {
  AttentionSpec spec = specOf(op, layout.rowStrides);
  spec.alignment =
      alignmentOf(op, layout, {op.getQuery(), op.getKey(), op.getValue(), op->getResult(0)});
  return spec;
}
AttentionSpec attentionSpec(nn::AttentionGradOp op, const KernelLayout &layout) {
  AttentionSpec spec = specOf(op, layout.rowStrides);
  SmallVector<Value> matrices{op.getGradient(), op.getQuery(), op.getKey(), op.getValue(),
                              op.getOutput()};
  llvm::append_range(matrices, op->getResults());
  spec.alignment = alignmentOf(op, layout, matrices);
  return spec;
}

KernelGeometry attentionGeometry(nn::AttentionOp op, const KernelLayout &layout,
                                 const GpuTarget &) {
  return {rowsOf(op.getQuery()), attentionForwardBlocks(attentionSpec(op, layout))};
}
KernelWork attentionWork(nn::AttentionOp op, const KernelLayout &layout, const GpuTarget &) {
  return attentionForwardWork(attentionSpec(op, layout));
}
void emitAttention(nn::AttentionOp op, Emission &to) {
  AttentionSpec spec = attentionSpec(op, to.layout);
  emitAttentionForward(to.module, to.name, spec, to.target, forwardOrder(spec).keyHeads);
}
KernelGeometry attentionGradGeometry(nn::AttentionGradOp op, const KernelLayout &layout,
                                     const GpuTarget &) {
  return {rowsOf(op.getQuery()), attentionBackwardBlocks(attentionSpec(op, layout))};
}
KernelWork attentionGradWork(nn::AttentionGradOp op, const KernelLayout &layout,
                             const GpuTarget &) {
  return attentionBackwardWork(attentionSpec(op, layout));
}
void emitAttentionGrad(nn::AttentionGradOp op, Emission &to) {
  AttentionSpec spec = attentionSpec(op, to.layout);
  emitAttentionBackward(to.module, to.name, spec, to.target, backwardOrder(spec).keyHeads);
}
/// Strides do not matter.
template <typename Op> std::string attentionLimits(Operation *op) {
  SmallVector<int64_t> contiguous(op->getNumOperands() + op->getNumResults(), 0);
  return verifyForGpu(specOf(cast<Op>(op), contiguous));
}

RopeSpec ropeSpec(nn::RopeOp op, const KernelLayout &layout) {
  RopeSpec spec = specOf(op, layout.rowStrides);
  spec.alignedLanes =
      alignedLanes(op, layout, {op.getInput(), op.getCos(), op.getSin(), op.getResult()});
  return spec;
}
KernelGeometry ropeGeometry(nn::RopeOp op, const KernelLayout &layout, const GpuTarget &) {
  int64_t tokens = rowsOf(op.getInput());
  return {tokens, taskCount(ropeSpec(op, layout), tokens)};
}
KernelWork ropeOpWork(nn::RopeOp op, const KernelLayout &layout, const GpuTarget &) {
  return ropeWork(ropeSpec(op, layout), rowsOf(op.getInput()));
}
void emitRopeOp(nn::RopeOp op, Emission &to) {
  emitRope(to.module, to.name, ropeSpec(op, to.layout), to.target);
}
KernelGeometry documentsGeometry(nn::DocumentsOp op, const KernelLayout &, const GpuTarget &) {
  int64_t tokens = elementsOf(op.getTokens());
  return {tokens, taskCount(specOf(op), tokens)};
}
KernelWork documentsOpWork(nn::DocumentsOp op, const KernelLayout &, const GpuTarget &) {
  return documentsWork(specOf(op), elementsOf(op.getTokens()));
}
void emitDocumentsOp(nn::DocumentsOp op, Emission &to) {
  emitDocuments(to.module, to.name, specOf(op), to.target);
}
/// Tokens are read one by one.
EmbeddingSpec embeddingSpec(nn::EmbeddingOp op, const KernelLayout &layout) {
  EmbeddingSpec spec = specOf(op);
  spec.alignedLanes = alignedLanes(op, layout, {op.getTable(), op.getResult()});
  return spec;
}
KernelGeometry embeddingGeometry(nn::EmbeddingOp op, const KernelLayout &layout,
                                 const GpuTarget &) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(embeddingSpec(op, layout), tokens)};
}
KernelWork embeddingOpWork(nn::EmbeddingOp op, const KernelLayout &layout, const GpuTarget &) {
  return embeddingWork(embeddingSpec(op, layout), elementsOf(op.getIndices()));
}
void emitEmbeddingOp(nn::EmbeddingOp op, Emission &to) {
  emitEmbedding(to.module, to.name, embeddingSpec(op, to.layout), to.target);
}
EmbeddingGradientSpec embeddingGradientSpec(nn::EmbeddingGradOp op, const KernelLayout &layout) {
  EmbeddingGradientSpec spec = specOf(op);
  spec.alignedLanes = alignedLanes(op, layout, {op.getGradient(), op.getResult()});
  return spec;
}
KernelGeometry embeddingGradGeometry(nn::EmbeddingGradOp op, const KernelLayout &layout,
                                     const GpuTarget &) {
  int64_t tokens = elementsOf(op.getIndices());
  return {tokens, taskCount(embeddingGradientSpec(op, layout), tokens)};
}
KernelWork embeddingGradWork(nn::EmbeddingGradOp op, const KernelLayout &layout,
                             const GpuTarget &) {
  return embeddingGradientWork(embeddingGradientSpec(op, layout), elementsOf(op.getIndices()));
}
void emitEmbeddingGradOp(nn::EmbeddingGradOp op, Emission &to) {
  emitEmbeddingGradient(to.module, to.name, embeddingGradientSpec(op, to.layout), to.target);
}

KernelGeometry transposedCopyGeometry(nn::TransposedCopyOp op, const KernelLayout &,
                                      const GpuTarget &) {
  int64_t rows = rowsOf(op.getInput()), columns = columnsOf(op.getInput());
  return {rows, transposedCopyBlocks(rows, columns)};
}
KernelWork transposedCopyOpWork(nn::TransposedCopyOp op, const KernelLayout &, const GpuTarget &) {
  return transposedCopyWork(rowsOf(op.getInput()), columnsOf(op.getInput()));
}
void emitTransposedCopyOp(nn::TransposedCopyOp op, Emission &to) {
  emitTransposedCopy(to.module, to.name, rowsOf(op.getInput()), columnsOf(op.getInput()),
                     to.target);
}

std::string transposedCopyLimits(Operation *op) {
  auto input = cast<nn::TransposedCopyOp>(op).getInput();
  bool fits = rowsOf(input) % transposedBytes == 0 && columnsOf(input) % transposedBytes == 0;
  return fits
             ? ""
             : llvm::formatv("expected rows and columns that are multiples of {0}, got: {1} x {2}; "
                             "give it a matrix of whole tiles",
                             transposedBytes, rowsOf(input), columnsOf(input))
                   .str();
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
                                                     const KernelLayout &layout) const {
  return table().geometry(op, layout, target);
}

std::string GpuKernels::limits(Operation *op) const { return table().limits(op); }

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

int64_t GpuKernels::allowedLossChunkRows() const { return lossChunkRows; }

RuntimeSizes GpuKernels::runtimeSizes(Operation *op) const { return codegen::runtimeSizes(op); }

std::optional<KernelWork> GpuKernels::work(Operation *op, const KernelLayout &layout) const {
  std::optional<KernelWork> work = table().work(op, layout, target);
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
