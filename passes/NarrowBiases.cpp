// Gives the biases of narrow products the type in which the target's library adds them.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_NARROWBIASESPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

class NarrowBiasesPass : public gradc::impl::NarrowBiasesPassBase<NarrowBiasesPass> {
public:
  explicit NarrowBiasesPass(const KernelLibrary &library) : library(library) {}
  NarrowBiasesPass(const NarrowBiasesPass &other)
      : NarrowBiasesPassBase(other), library(other.library) {}

private:
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation().walk([&](EpilogueOpInterface op) {
      if (op.getEpilogueStep() == EpilogueStep::addBias)
        sums.push_back(op);
    });
    for (Operation *sum : sums)
      narrow(sum);
  }

  void narrow(Operation *sum) {
    auto product = sum->getOperand(0).getDefiningOp<ProductOpInterface>();
    Type type = product ? library.biasType(product) : Type();
    if (!type)
      return;
    OpBuilder builder(sum);
    sum->setOperand(1, castTo(builder, sum->getLoc(), sum->getOperand(1), type));
  }

  const KernelLibrary &library;
};

} // namespace

std::unique_ptr<Pass> gradc::createNarrowBiasesPass(const KernelLibrary &library) {
  return std::make_unique<NarrowBiasesPass>(library);
}
