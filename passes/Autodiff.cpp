// Builds the backward of @loss: each op states its own, this pass orders and sums.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// Reverse accumulation over one block.
class Backward {
public:
  Backward(OpBuilder &builder) : builder(builder) {}

  void add(Value value, Value gradient) {
    Value &sum = gradientOf[value];
    sum = sum ? AddOp::create(builder, gradient.getLoc(), sum, gradient).getResult() : gradient;
  }

  Value lookup(Value value) const { return gradientOf.lookup(value); }

  /// Visits `ops`, given in program order, from last to first.
  LogicalResult run(ArrayRef<Operation *> ops) {
    for (Operation *op : llvm::reverse(ops)) {
      SmallVector<Value> results(op->getNumResults()), operands(op->getNumOperands());
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        results[i] = lookup(result);
      if (llvm::none_of(results, [](Value gradient) { return gradient != nullptr; }))
        continue;
      if (op->hasTrait<OpTrait::ConstantLike>())
        continue;
      auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
      if (!differentiable)
        return op->emitOpError("expected an op with a backward on the way from the loss to a "
                               "parameter; compute the loss from differentiable ops");
      // Backwards are written for the first result; the others are statistics (mean, lse).
      if (!results[0] || llvm::any_of(llvm::drop_begin(results), [](Value v) { return v; }))
        return op->emitOpError("expected only the first result to reach the loss; its statistics "
                               "have no gradient");
      Operation *before = builder.getInsertionPoint()->getPrevNode();
      differentiable.buildBackward(builder, results, operands);
      tieToBackward(before->getNextNode(), results[0]);
      for (auto [operand, gradient] : llvm::zip(op->getOperands(), operands))
        if (gradient && isa<FloatType>(getElementTypeOrSelf(operand)))
          add(operand, gradient);
    }
    return success();
  }

private:
  /// Some ops that an op's backward is made of read forward values alone (a norm's normalised
  /// input). They wait for the gradient, so that nothing computes them in the forward and keeps
  /// their results; but for scalars, which cost nothing to keep.
  void tieToBackward(Operation *first, Value gradient) {
    Operation *end = &*builder.getInsertionPoint();
    SmallPtrSet<Operation *, 8> late;
    for (Operation *op = first; op && op != end; op = op->getNextNode()) {
      bool waits = llvm::any_of(op->getOperands(), [&](Value operand) {
        return operand == gradient || late.contains(operand.getDefiningOp());
      });
      bool isScalar = op->getNumOperands() > 0 && op->getNumResults() == 1 &&
                      cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 0;
      if (waits || !isScalar)
        late.insert(op);
      if (waits || isScalar)
        continue;
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(op);
      for (OpOperand &operand : op->getOpOperands())
        operand.set(AfterOp::create(builder, op->getLoc(), operand.get(), gradient));
    }
  }

  OpBuilder &builder;
  DenseMap<Value, Value> gradientOf;
};

class AutodiffPass : public gradc::impl::AutodiffPassBase<AutodiffPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    if (!loss) {
      module.emitError("expected a function @loss: parameters, tokens, targets to the summed loss");
      return signalPassFailure();
    }
    if (failed(differentiate(loss)))
      signalPassFailure();
  }

  LogicalResult differentiate(func::FuncOp loss) {
    OpBuilder builder(loss->getContext());
    builder.setInsertionPointAfter(loss);
    auto function = cast<func::FuncOp>(builder.clone(*loss));
    function.setName("loss_and_gradients");
    Block &body = function.getBody().front();
    Operation *terminator = body.getTerminator();
    if (terminator->getNumOperands() != 1 ||
        cast<RankedTensorType>(terminator->getOperand(0).getType()).getRank() != 0)
      return loss.emitOpError("expected one result, the summed loss, of type tensor<f32>");
    Value total = terminator->getOperand(0);

    Value seed = body.addArgument(total.getType(), function.getLoc());
    SmallVector<Operation *> forward;
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
    builder.setInsertionPoint(terminator);
    Backward backward(builder);
    backward.add(total, seed);
    if (failed(backward.run(forward)))
      return failure();

    SmallVector<Value> results{total};
    for (unsigned i = 0; i < loss.getNumArguments(); ++i) {
      if (!loss.getArgAttr(i, "nn.param") && !loss.getArgAttr(i, "nn.record"))
        continue;
      BlockArgument parameter = body.getArgument(i);
      Value gradient = backward.lookup(parameter);
      results.push_back(gradient ? gradient
                                 : splat(builder, parameter.getLoc(), parameter.getType(), 0));
    }
    terminator->setOperands(results);
    SmallVector<Type> argumentTypes(body.getArgumentTypes());
    function.setType(
        builder.getFunctionType(argumentTypes, llvm::to_vector(ValueRange(results).getTypes())));
    SmallVector<Attribute> attributes(argumentTypes.size(), builder.getDictionaryAttr({}));
    for (unsigned i = 0; i < loss.getNumArguments(); ++i)
      attributes[i] =
          builder.getDictionaryAttr(llvm::to_vector(function_interface_impl::getArgAttrs(loss, i)));
    function.setAllArgAttrs(attributes);
    return success();
  }
};

} // namespace
