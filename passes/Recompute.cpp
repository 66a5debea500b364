// Computes forward values again in the backward instead of keeping them.
#include "passes/Passes.h"
#include "passes/recompute/Choice.h"
#include "passes/recompute/Rematerialise.h"

namespace gradc {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/Passes.h.inc"
} // namespace gradc

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
    module->setAttr("nn.recompute", describe(*wanted, choices.levelCount(), choice));
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

  DictionaryAttr describe(int chosen, int levels, const Choice &choice) {
    Builder b(&getContext());
    auto number = [&](StringRef name, int64_t value) {
      return b.getNamedAttr(name, b.getI64IntegerAttr(value));
    };
    SmallVector<Attribute> stretches;
    for (const StretchChoice &stretch : choice.stretches)
      stretches.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", b.getStringAttr(stretch.name)),
           number("bytes_kept", stretch.bytesKept), number("bytes_dropped", stretch.bytesDropped),
           number("flops", stretch.flops)}));
    return b.getDictionaryAttr({number("level", chosen), number("levels", levels),
                                b.getNamedAttr("layers", b.getArrayAttr(stretches))});
  }
};

} // namespace
