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
public:
  explicit QuantizeProductsPass(const KernelLibrary &library) : library(library) {}
  QuantizeProductsPass(const QuantizeProductsPass &other)
      : QuantizeProductsPassBase(other), library(other.library) {}

private:
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
    Float8Operands layout = library.float8Operands(product);
    if (layout == Float8Operands::none)
      return;
    SmallVector<Value> values, scales;
    for (Value operand : product->getOperands()) {
      auto fake = operand.getDefiningOp<FakeQuantizeOp>();
      if (!fake)
        return;
      values.push_back(quantized(fake));
      scales.push_back(fake.getScale());
    }
    product.readQuantized(values, scales);
    if (layout == Float8Operands::alongDepth)
      readAlongDepth(cast<ProductOpInterface>(product.getOperation()));
  }

  void readAlongDepth(ProductOpInterface product) {
    if (product.getTransposeLhs())
      product.readTransposed(0, transposed(product.getLhs()));
    if (!product.getTransposeRhs())
      product.readTransposed(1, transposed(product.getRhs()));
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

  /// Stands right behind the numbers, where every product of them can read it.
  Value transposed(Value numbers) {
    Value &copy = transposedOf[numbers];
    if (!copy) {
      OpBuilder builder(numbers.getContext());
      builder.setInsertionPointAfterValue(numbers);
      auto type = cast<RankedTensorType>(numbers.getType());
      ArrayRef<int64_t> shape = type.getShape();
      copy = TransposedCopyOp::create(builder, numbers.getLoc(), type.clone({shape[1], shape[0]}),
                                      numbers);
    }
    return copy;
  }

  const KernelLibrary &library;
  DenseMap<Operation *, Value> numbersOf;
  DenseMap<Value, Value> transposedOf;
};

} // namespace

std::unique_ptr<Pass> gradc::createQuantizeProductsPass(const KernelLibrary &library) {
  return std::make_unique<QuantizeProductsPass>(library);
}
