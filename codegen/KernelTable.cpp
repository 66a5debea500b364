// Sums over the commands of a step.
#include "codegen/KernelTable.h"
#include "ir/Exec.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace gradc::codegen {

namespace {

/// Calls `use(command, times)` for each command of train_step.
void forEachCommand(ModuleOp planned, function_ref<void(Operation *, int64_t)> use) {
  for (auto program : planned.getOps<exec::ProgramOp>())
    if (program.getSymName() == "train_step")
      program.walk([&](Operation *op) {
        if (!isa<exec::LaunchOp, exec::GemmOp>(op))
          return;
        auto loop = op->getParentOfType<exec::RepeatOp>();
        use(op, loop ? loop.getCount() : 1);
      });
}

void add(KernelUse &use, exec::LaunchOp launch, int64_t times) {
  use.launches += times;
  exec::WorkAttr work = launch.getWorkAttr();
  use.isCounted &= work != nullptr;
  use.leastBytes += times * (work ? work.getLeastBytes() : launch.getBytes());
  use.leastFlops += times * (work ? work.getLeastFlops() : launch.getFlops());
  use.bytes += work ? times * work.getBytes() : 0;
  use.flops += work ? times * work.getFlops() : 0;
}

int64_t bytesOf(exec::MatrixAttr matrix, int64_t elements) {
  return elements * matrix.getElement().getIntOrFloatBitWidth() / 8;
}

void add(KernelUse &use, exec::GemmOp gemm, int64_t times) {
  CommandWork work = workOf(gemm);
  use.launches += times;
  use.leastBytes = use.bytes += times * work.bytes;
  use.leastFlops = use.flops += times * work.flops;
}

/// The number between two dots of an op's name, or before its end: h.3.attn is of layer 3.
int64_t layerOf(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  if (!name)
    return -1;
  SmallVector<StringRef> parts;
  name.getName().strref().split(parts, '.');
  int64_t layer = -1;
  for (StringRef part : parts)
    if (!part.getAsInteger(10, layer))
      return layer;
  return -1;
}

} // namespace

CommandWork workOf(exec::LaunchOp launch) {
  if (exec::WorkAttr work = launch.getWorkAttr())
    return {work.getBytes(), work.getFlops()};
  return {static_cast<int64_t>(launch.getBytes()), static_cast<int64_t>(launch.getFlops())};
}

CommandWork workOf(exec::GemmOp gemm) {
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK();
  int64_t bytes = bytesOf(gemm.getA(), m * k) + bytesOf(gemm.getB(), k * n) +
                  bytesOf(gemm.getC(), m * n) * (gemm.getAccumulate() ? 2 : 1);
  if (exec::EpilogueAttr epilogue = gemm.getEpilogueAttr()) {
    if (epilogue.getBias())
      bytes += bytesOf(epilogue.getBias(), n);
    if (epilogue.getAux())
      bytes += bytesOf(epilogue.getAux(), m * n);
  }
  auto batch = static_cast<int64_t>(gemm.getBatch());
  return {batch * bytes, batch * 2 * m * n * k};
}

std::string productName(exec::GemmOp gemm) {
  std::string name =
      ("gemm_" + Twine(gemm.getM()) + "x" + Twine(gemm.getN()) + "x" + Twine(gemm.getK())).str();
  if (exec::EpilogueAttr epilogue = gemm.getEpilogueAttr())
    name += ("_" + nn::stringifyEpilogue(epilogue.getKind())).str();
  return name;
}

std::vector<KernelUse> kernelTable(ModuleOp planned) {
  llvm::MapVector<StringRef, KernelUse> kernels;
  std::map<std::string, KernelUse> products;
  for (auto kernel : planned.getOps<exec::KernelOp>()) {
    KernelUse &use = kernels[kernel.getSymName()];
    use.name = kernel.getSymName();
    use.reason = kernel.getReason().value_or("");
  }
  forEachCommand(planned, [&](Operation *op, int64_t times) {
    if (auto launch = dyn_cast<exec::LaunchOp>(op))
      return add(kernels[launch.getKernel()], launch, times);
    auto gemm = cast<exec::GemmOp>(op);
    std::string name = productName(gemm);
    KernelUse &use = products[name];
    use.name = name;
    use.isLibrary = true;
    add(use, gemm, times);
  });
  std::vector<KernelUse> table;
  for (auto &[name, use] : kernels)
    table.push_back(use);
  for (auto &[name, use] : products)
    table.push_back(use);
  return table;
}

std::map<int64_t, int64_t> launchesByLayer(ModuleOp planned) {
  std::map<int64_t, int64_t> launches;
  forEachCommand(planned,
                 [&](Operation *op, int64_t times) { launches[layerOf(op->getLoc())] += times; });
  return launches;
}

} // namespace gradc::codegen
