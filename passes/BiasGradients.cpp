// Lets the product that makes a weight's gradient sum up the bias's.
#include "ir/Explanation.h"
#include "passes/EpilogueProducts.h"
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_BIASGRADIENTSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

bool isStep(Operation *op, EpilogueStep step) {
  auto epilogue = dyn_cast_or_null<EpilogueOpInterface>(op);
  return epilogue && epilogue.getEpilogueStep() == step;
}

/// A sum over the rows of `summed`: what `total` gives.
struct RowSum {
  Operation *partials, *total;
  Value summed;
};

class BiasGradientsPass : public gradc::impl::BiasGradientsPassBase<BiasGradientsPass> {
public:
  explicit BiasGradientsPass(const KernelLibrary &library) : library(library) {}
  BiasGradientsPass(const BiasGradientsPass &other)
      : BiasGradientsPassBase(other), library(other.library) {}

private:
  void runOnOperation() override {
    SmallVector<RowSum> sums;
    getOperation().walk([&](Operation *op) {
      if (!isStep(op, EpilogueStep::foldPartials))
        return;
      Operation *partials = op->getOperand(0).getDefiningOp();
      if (isStep(partials, EpilogueStep::columnPartials) && partials->hasOneUse())
        sums.push_back({partials, op, partials->getOperand(0)});
    });
    Tally lines;
    for (const RowSum &sum : sums)
      if (std::optional<Epilogue> kind = absorb(sum))
        lines.add(("in a product: " + stringifyEpilogue(*kind)).str());
    if (SmallVector<std::string> said = lines.lines(); !said.empty())
      explain(getOperation(), "bias_gradients", said);
  }

  /// Which epilogue makes the sum; none where no product can.
  std::optional<Epilogue> absorb(const RowSum &sum) {
    for (OpOperand &use : sum.summed.getUses())
      if (auto product = dyn_cast<ProductOpInterface>(use.getOwner()))
        if (std::optional<Epilogue> kind = kindOf(product, sum.summed);
            kind && standsBefore(product, sum) && replace(product, *kind, sum))
          return kind;
    return std::nullopt;
  }

  /// The operand whose rows the product's depth runs over.
  static std::optional<Epilogue> kindOf(ProductOpInterface product, Value summed) {
    if (product.getRhs() == summed && !product.getTransposeRhs())
      return Epilogue::BiasGradientRhs;
    if (product.getLhs() == summed && product.getTransposeLhs())
      return Epilogue::BiasGradientLhs;
    return std::nullopt;
  }

  static bool standsBefore(Operation *product, const RowSum &sum) {
    return llvm::all_of(sum.total->getUsers(), [&](Operation *user) {
      Operation *there = product->getBlock()->findAncestorOpInBlock(*user);
      return there && product->isBeforeInBlock(there);
    });
  }

  bool replace(ProductOpInterface product, Epilogue kind, const RowSum &sum) {
    OpBuilder builder(product);
    EpilogueChange change{kind, {}, {}, sum.total->getResult(0).getType()};
    EpilogueMatmulOp made = withEpilogue(builder, product, change, library);
    if (!made)
      return false;
    product->getResult(0).replaceAllUsesWith(made.getResult());
    sum.total->getResult(0).replaceAllUsesWith(made.getExtra());
    product->erase();
    sum.total->erase();
    sum.partials->erase();
    return true;
  }

  const KernelLibrary &library;
};

} // namespace

std::unique_ptr<Pass> gradc::createBiasGradientsPass(const KernelLibrary &library) {
  return std::make_unique<BiasGradientsPass>(library);
}
