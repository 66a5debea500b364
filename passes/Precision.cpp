// Gives the ops of the forward graph the types that a precision mode computes in.
#include "ir/Explanation.h"
#include "ir/Nn.h"
#include "passes/Passes.h"
#include "passes/Quantization.h"

#include <optional>

namespace gradc {
#define GEN_PASS_DEF_PRECISIONPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

RankedTensorType withElements(Type tensor, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(tensor).getShape(), element);
}

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// Retypes one function, op after op.
class FunctionPrecision {
public:
  /// `float8`: linear layers run in fp8, the rest in `low`.
  FunctionPrecision(func::FuncOp function, Type low, std::optional<Float8Scaling> float8)
      : function(function), low(low), full(Float32Type::get(function.getContext())),
        forward(Float8E4M3FNType::get(function.getContext())),
        backward(Float8E5M2Type::get(function.getContext())), float8(float8) {
    if (float8)
      layers.emplace(function);
  }

  void run() {
    Block &body = function.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
      if (auto precision = dyn_cast<PrecisionOpInterface>(op))
        retype(precision);
    // What leaves the function keeps its type.
    Operation *terminator = body.getTerminator();
    for (auto [operand, type] : llvm::zip(terminator->getOpOperands(), function.getResultTypes()))
      if (isFloat(operand.get()))
        setType(operand, getElementTypeOrSelf(type));
  }

private:
  void retype(PrecisionOpInterface op) {
    switch (op.getPrecisionClass()) {
    case PrecisionClass::low:
      if (layers && layers->contains(op))
        return quantize(op);
      for (OpOperand &operand : op->getOpOperands())
        if (isFloat(operand.get()))
          setType(operand, low);
      if (!op.givesFull())
        setResult(op, low);
      return;
    case PrecisionClass::follow:
      follow(op);
      return;
    case PrecisionClass::full:
      for (OpOperand &operand : op->getOpOperands())
        if (isFloat(operand.get()) && !op.takesNarrow(operand.getOperandNumber()))
          setType(operand, full);
    }
  }

  /// A linear layer: operands, and the gradient of the result, as fp8 has them.
  void quantize(Operation *product) {
    for (OpOperand &operand : product->getOpOperands())
      setQuantized(operand);
    setResult(product, low);
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfter(product);
    Value result = product->getResult(0), record;
    if (*float8 == Float8Scaling::delayed)
      record = recordArgument(function, layers->recordOfGradient(product));
    auto marked = QuantizeGradientOp::create(builder, product->getLoc(), result, record,
                                             TypeAttr::get(backward));
    result.replaceAllUsesExcept(marked, marked);
  }

  /// Reads the operand fake-quantized: a parameter from f32, with the scale of what it is, as its
  /// copy is made when it changes; another value from `low`, as it is kept.
  void setQuantized(OpOperand &operand) {
    Value original = operand.get();
    Value &fake = quantized[original];
    if (!fake) {
      bool isWeight = isParameter(original);
      if (!isWeight)
        setType(operand, low);
      Value input = operand.get(), record;
      OpBuilder builder(function.getContext());
      builder.setInsertionPointAfterValue(input);
      Value amax = rowAmax(builder, input.getLoc(), input);
      if (!isWeight && *float8 == Float8Scaling::delayed) {
        record = recordArgument(function, layers->recordOfInput(operand.getOwner()));
        amax = largestOf(builder, input.getLoc(), amax); // kept for the record's next value
      }
      TypeAttr format = TypeAttr::get(forward);
      Value scale = ScaleOfAmaxOp::create(builder, input.getLoc(), record ? record : amax, format);
      fake = FakeQuantizeOp::create(builder, input.getLoc(), withElements(input.getType(), low),
                                    input, scale, record, record ? amax : Value(), format);
    }
    operand.set(fake);
  }

  /// The first result is narrow when all operands that it is made of element by element are: those
  /// of its shape or, of views, all. The others (biases, norms' weights) stay as they are.
  void follow(Operation *op) {
    auto fusion = dyn_cast<FusionOpInterface>(op);
    bool isView = fusion && fusion.getFusionRole() == FusionRole::view;
    Type shaped = op->getResult(0).getType();
    SmallVector<OpOperand *> leading;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = cast<RankedTensorType>(operand.get().getType());
      if (isFloat(operand.get()) &&
          (isView || type.getShape() == cast<RankedTensorType>(shaped).getShape()))
        leading.push_back(&operand);
    }
    bool narrow = !leading.empty() && llvm::all_of(leading, [&](OpOperand *operand) {
      return getElementTypeOrSelf(operand->get()) == low;
    });
    for (OpOperand *operand : leading)
      setType(*operand, narrow ? low : full);
    if (narrow)
      setResult(op, low);
  }

  static void setResult(Operation *op, Type element) {
    op->getResult(0).setType(withElements(op->getResult(0).getType(), element));
  }

  /// Reads the operand in another type: one cast a value and type, right behind what makes it.
  void setType(OpOperand &operand, Type element) {
    Value value = operand.get();
    if (getElementTypeOrSelf(value) == element)
      return;
    Value &converted = casts[{value, element}];
    if (!converted) {
      OpBuilder builder(function.getContext());
      builder.setInsertionPointAfterValue(value);
      converted =
          CastOp::create(builder, value.getLoc(), withElements(value.getType(), element), value);
    }
    operand.set(converted);
  }

  func::FuncOp function;
  Type low, full, forward, backward;
  std::optional<Float8Scaling> float8;
  std::optional<LinearLayers> layers;
  DenseMap<Value, Value> quantized;
  DenseMap<std::pair<Value, Type>, Value> casts;
};

class PrecisionPass : public gradc::impl::PrecisionPassBase<PrecisionPass> {
public:
  using PrecisionPassBase::PrecisionPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    if (mode == "tf32") {
      module.walk([](PrecisionOpInterface op) { op.roundInputs(); });
    } else if (mode == "bf16" || mode == "fp16" || mode == "fp8") {
      Type low = mode == "fp16" ? Type(Float16Type::get(context)) : BFloat16Type::get(context);
      std::optional<Float8Scaling> float8;
      if (mode == "fp8")
        float8 = delayedScaling ? Float8Scaling::delayed : Float8Scaling::current;
      if (float8 == Float8Scaling::delayed)
        addRecordArguments(functions);
      for (func::FuncOp function : functions)
        FunctionPrecision(function, low, float8).run();
    } else if (mode != "fp32") {
      module.emitError() << "expected a precision of fp32, tf32, bf16, fp16, fp8, got: " << mode;
      return signalPassFailure();
    }
    if (!functions.empty())
      explain(module, "precision", describe(functions.front()));
  }

  /// A line for each kind of op, type and reason.
  static SmallVector<std::string> describe(func::FuncOp function) {
    Tally tally;
    function.walk([&](PrecisionOpInterface op) {
      std::string line;
      llvm::raw_string_ostream stream(line);
      stream << op->getName().stripDialect() << " gives "
             << getElementTypeOrSelf(op->getResult(0).getType()) << ": ";
      switch (op.getPrecisionClass()) {
      case PrecisionClass::low:
        if (op->getOperand(0).getDefiningOp<FakeQuantizeOp>())
          stream << "reads f8E4M3FN, and its gradient as f8E5M2";
        else
          stream << "computes in the mode's type";
        break;
      case PrecisionClass::follow:
        stream << "follows its inputs";
        break;
      case PrecisionClass::full:
        stream << "stays fp32";
      }
      tally.add(line);
    });
    return tally.lines();
  }
};

} // namespace
