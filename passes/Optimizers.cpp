// The table of optimizers.
#include "passes/Optimizers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gradc;

namespace {

/// Every update op takes (parameter, gradient, state…, gradient scale, scalars…) and gives
/// (parameter, state…).
template <typename Op>
SmallVector<Value> buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient,
                               ValueRange state, Value gradientScale, ValueRange scalars,
                               bool decay) {
  SmallVector<Value> operands{parameter, gradient};
  llvm::append_range(operands, state);
  operands.push_back(gradientScale);
  llvm::append_range(operands, scalars);
  SmallVector<Type> types{parameter.getType()};
  llvm::append_range(types, state.getTypes());
  auto op = Op::create(builder, loc, types, operands,
                       builder.getNamedAttr("decay", builder.getBoolAttr(decay)));
  return llvm::to_vector_of<Value>(op->getResults());
}

const Optimizer optimizers[] = {
    {"adamw",
     {"exp_avg", "exp_avg_sq"},
     {"learning_rate", "beta1", "beta2", "eps", "weight_decay", "bias_correction1",
      "bias_correction2"},
     buildUpdate<nn::AdamwOp>},
    {"sgd", {"momentum"}, {"learning_rate", "beta1", "weight_decay"}, buildUpdate<nn::SgdOp>},
    {"lion",
     {"exp_avg"},
     {"learning_rate", "beta1", "beta2", "weight_decay"},
     buildUpdate<nn::LionOp>},
};

} // namespace

const Optimizer *gradc::findOptimizer(StringRef name) {
  const Optimizer *found = llvm::find_if(optimizers, [&](auto &o) { return o.name == name; });
  return found == std::end(optimizers) ? nullptr : found;
}

std::string gradc::optimizerNames() {
  return llvm::join(llvm::map_range(optimizers, [](auto &o) { return o.name; }), ", ");
}
