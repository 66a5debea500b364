// See CommandBytes.h.
#include "passes/streams/CommandBytes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gradc::streams {
namespace {

constexpr uint64_t lineBytes = 64; // what the memory plan aligns buffers to

class Collector {
public:
  explicit Collector(Operation *command) {
    if (auto loop = command->getParentOfType<exec::RepeatOp>())
      rounds = loop.getCount();
  }

  void add(exec::BufferAttr buffer, bool isWrite) {
    if (!buffer || buffer.getBytes() <= 0)
      return;
    int64_t begin = buffer.getOffset(), end = begin + buffer.getBytes();
    int64_t way = buffer.getLoopStride() * (rounds - 1); // to the last round's
    begin += std::min<int64_t>(way, 0);
    end += std::max<int64_t>(way, 0);
    accesses.push_back({buffer.getSpace(), static_cast<int64_t>(llvm::alignDown(begin, lineBytes)),
                        static_cast<int64_t>(llvm::alignTo(end, lineBytes)), isWrite});
  }
  void add(exec::MatrixAttr matrix, bool isWrite) {
    if (matrix)
      add(matrix.getBuffer(), isWrite);
  }

  SmallVector<Access> accesses;

private:
  int64_t rounds = 1;
};

/// Of each part the operands that are only read, then what is written: results and a workspace.
void addLaunch(exec::LaunchOp launch, Collector &collector) {
  auto kernel =
      SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(launch, launch.getKernelAttr());
  auto op = cast<nn::FusionOpInterface>(kernel.getBody().front().front());
  size_t inputs = op->getNumOperands() - (op.getAccumulatorOperand() >= 0 ? 1 : 0);
  ArrayAttr parts = launch.getPartsAttr();
  size_t perPart = launch.getBuffers().size() / std::max<size_t>(1, parts ? parts.size() : 1);
  for (auto [i, buffer] : llvm::enumerate(launch.getBuffers().getAsRange<exec::BufferAttr>()))
    collector.add(buffer, /*isWrite=*/i % perPart >= inputs);
  collector.add(launch.getTableAttr(), /*isWrite=*/false);
}

void addGemm(exec::GemmOp gemm, Collector &collector) {
  collector.add(gemm.getA(), false);
  collector.add(gemm.getB(), false);
  collector.add(gemm.getScaleAAttr(), false);
  collector.add(gemm.getScaleBAttr(), false);
  collector.add(gemm.getC(), true);
  collector.add(gemm.getWorkspaceAttr(), true);
  if (exec::EpilogueAttr epilogue = gemm.getEpilogueAttr()) {
    collector.add(epilogue.getBias(), nn::givesBiasGradient(epilogue.getKind()));
    collector.add(epilogue.getAux(), nn::writesAux(epilogue.getKind()));
  }
}

} // namespace

SmallVector<Access> accessesOf(Operation *command) {
  Collector collector(command);
  if (auto launch = dyn_cast<exec::LaunchOp>(command))
    addLaunch(launch, collector);
  else
    addGemm(cast<exec::GemmOp>(command), collector);
  return std::move(collector.accesses);
}

} // namespace gradc::streams
