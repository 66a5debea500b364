// Computes forward values again in the backward instead of keeping them.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/recompute/Choice.h"
#include "passes/recompute/Rematerialise.h"

namespace gradc {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/Passes.h.inc"
} // namespace gradc

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::recompute;

namespace {

class RecomputePass : public gradc::impl::RecomputePassBase<RecomputePass> {
public:
  using RecomputePassBase::RecomputePassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>("loss_and_gradients");
    if (!function) {
      module.emitError("expected @loss_and_gradients; run the autodiff pass first");
      return signalPassFailure();
    }
    ForwardGraph graph(function);
    Choices choices(graph, MachineSpeed());
    std::optional<int> wanted = levelOf(choices);
    if (!wanted) {
      module.emitError() << "expected a recompute mode of none, cheap, full, got: " << mode;
      return signalPassFailure();
    }
    Choice choice = choices.at(*wanted);
    module->setAttr("nn.recompute_levels",
                    IntegerAttr::get(IntegerType::get(&getContext(), 64), choices.levelCount()));
    explain(module, "recompute", describe(*wanted, choices.levelCount(), choice));
    if (*wanted > 0)
      rematerialise(graph, choice.kept);
  }

  std::optional<int> levelOf(const Choices &choices) const {
    int last = choices.levelCount() - 1;
    if (level >= 0)
      return std::min<int>(level, last);
    return StringSwitch<std::optional<int>>(mode)
        .Case("none", 0)
        .Case("cheap", choices.cheapLevel())
        .Case("full", last)
        .Default(std::nullopt);
  }

  /// A line for the level and one for each layer that computes something again.
  static SmallVector<std::string> describe(int chosen, int levels, const Choice &choice) {
    int64_t flops = 0, bytes = 0;
    for (const StretchChoice &stretch : choice.stretches) {
      flops += stretch.bytesDropped > 0 ? stretch.flops : 0;
      bytes += stretch.bytesDropped;
    }
    SmallVector<std::string> lines{
        llvm::formatv("level {0} of 0 (keep all) to {1} (keep layer inputs): {2} again with {3:F3} "
                      "GFLOP",
                      chosen, levels - 1, mebibytes(bytes), static_cast<double>(flops) / 1e9)};
    for (const StretchChoice &stretch : choice.stretches) {
      if (stretch.bytesDropped == 0)
        continue;
      std::string line;
      llvm::raw_string_ostream(line)
          << stretch.name << ": keeps "
          << llvm::format("%.2f MiB, computes %.2f MiB again with %.3f GFLOP",
                          static_cast<double>(stretch.bytesKept) / 0x1p20,
                          static_cast<double>(stretch.bytesDropped) / 0x1p20,
                          static_cast<double>(stretch.flops) / 1e9);
      lines.push_back(line);
    }
    return lines;
  }
};

} // namespace
