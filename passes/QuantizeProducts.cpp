// Lets products read fp8 numbers where their operands are fake-quantized.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_QUANTIZEPRODUCTSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

class QuantizeProductsPass : public gradc::impl::QuantizeProductsPassBase<QuantizeProductsPass> {
  void runOnOperation() override {
    getOperation().walk([](QuantizeGradientOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
    getOperation().walk([&](PrecisionOpInterface op) {
      if (op.takesFloat8())
        readNumbers(op);
    });
    getOperation().walk([](FakeQuantizeOp op) {
      if (op.use_empty())
        op.erase();
    });
  }

  void readNumbers(PrecisionOpInterface product) {
    SmallVector<Value> values, scales;
    for (Value operand : product->getOperands()) {
      auto fake = operand.getDefiningOp<FakeQuantizeOp>();
      if (!fake)
        return;
      values.push_back(quantized(fake));
      scales.push_back(fake.getScale());
    }
    product.readQuantized(values, scales);
  }

  Value quantized(FakeQuantizeOp fake) {
    Value &numbers = numbersOf[fake];
    if (!numbers) {
      OpBuilder builder(fake);
      auto type = cast<RankedTensorType>(fake.getType()).clone(fake.getFormat());
      numbers = QuantizeOp::create(builder, fake.getLoc(), type, fake.getInput(), fake.getScale());
    }
    return numbers;
  }

  DenseMap<Operation *, Value> numbersOf;
};

} // namespace
