// See Rematerialise.h.
#include "passes/recompute/Rematerialise.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gradc::recompute {

namespace {

class Rematerialiser {
public:
  Rematerialiser(const ForwardGraph &graph, const ValueSet &kept) : graph(graph), kept(kept) {}

  void run() {
    for (Operation *op : graph.backward())
      for (OpOperand &operand : op->getOpOperands())
        if (Value value = operand.get(); !graph.isBackward(value) && !isKept(value)) {
          builder.emplace(op);
          trigger = triggerOf(op);
          operand.set(again(value));
        }
  }

private:
  bool isKept(Value value) const {
    Value base = baseOf(value);
    return isPersistent(base) || isStatistic(base) || kept.contains(base);
  }

  /// A gradient that exists once `op` can run.
  Value triggerOf(Operation *op) const {
    return *llvm::find_if(op->getOperands(),
                          [&](Value operand) { return graph.isBackward(operand); });
  }

  /// `value` for a second copy to read: computed again, or as it was kept.
  Value again(Value value) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      return value;
    if (auto found = copies.find(value); found != copies.end())
      return found->second;
    if (isKept(value))
      return copies[value] = nn::AfterOp::create(*builder, value.getLoc(), value, trigger);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, again(operand));
    Operation *copy = builder->clone(*op, mapping);
    copy->setDiscardableAttr(recomputedAttr, builder->getUnitAttr());
    for (auto [first, second] : llvm::zip(op->getResults(), copy->getResults()))
      copies[first] = second;
    return copies[value];
  }

  const ForwardGraph &graph;
  const ValueSet &kept;
  std::optional<OpBuilder> builder; ///< in front of the op that reads
  Value trigger;
  DenseMap<Value, Value> copies;
};

} // namespace

void rematerialise(const ForwardGraph &graph, const ValueSet &kept) {
  Rematerialiser(graph, kept).run();
}

} // namespace gradc::recompute
