// Random arguments for the interpreter, within what the ops that read them accept.
#include "ir/Interpreter.h"
#include "ir/Nn.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace gradc::nn;

namespace {

Interval intersect(Interval a, Interval b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

/// Values that hold the same elements as the operand: results of views, arguments of regions.
SmallVector<Value> sameElements(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned i = use.getOperandNumber();
  if (op->getNumRegions() == 1)
    return {op->getRegion(0).getArgument(i)};
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    return callee && !callee.isExternal() ? SmallVector<Value>{callee.getArgument(i)}
                                          : SmallVector<Value>();
  }
  auto fusion = dyn_cast<FusionOpInterface>(op);
  if (isa<BroadcastOp>(op) || (fusion && fusion.getFusionRole() == FusionRole::view))
    return {op->getResult(0)};
  return {};
}

/// All requirements on a value, its own and those on values that hold its elements.
std::optional<Interval> required(Value value, int depth = 0) {
  constexpr int deepest = 32; // calls may be recursive
  std::optional<Interval> all;
  auto add = [&](std::optional<Interval> range) {
    if (range)
      all = all ? intersect(*all, *range) : range;
  };
  for (OpOperand &use : value.getUses()) {
    if (auto ranged = dyn_cast<OperandRangeOpInterface>(use.getOwner()))
      add(ranged.getOperandRange(use.getOperandNumber()));
    if (depth < deepest)
      for (Value alias : sameElements(use))
        add(required(alias, depth + 1));
  }
  return all;
}

std::optional<Interval> statedRange(func::FuncOp function, unsigned argument) {
  auto range = function.getArgAttrOfType<ArrayAttr>(argument, "nn.range");
  if (!range || range.size() != 2)
    return std::nullopt;
  auto number = [](Attribute attribute) {
    if (auto real = dyn_cast<FloatAttr>(attribute))
      return real.getValueAsDouble();
    auto integer = dyn_cast<IntegerAttr>(attribute);
    return integer ? static_cast<double>(integer.getInt()) : 0.0;
  };
  return Interval{number(range[0]), number(range[1])};
}

class Source {
public:
  explicit Source(uint64_t seed) : engine(seed) {}
  double uniform() { return static_cast<double>(engine() >> 11) * 0x1p-53; }
  /// Bell-shaped with standard deviation 1, the same on every platform.
  double bell() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return sum;
  }

private:
  std::mt19937_64 engine;
};

void fillIntegers(HostTensor &tensor, Interval range, Source &source) {
  double low = std::max(range.low, 0.0);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    // Where negative values are allowed they are marks: some of each, the first a real value.
    bool marked = range.low < 0 && i % 5 == 3;
    tensor[i] = marked ? range.low : std::floor(low + (range.high - low) * source.uniform());
  }
}

} // namespace

SmallVector<HostTensor> gradc::nn::randomArguments(func::FuncOp function, uint64_t seed) {
  SmallVector<HostTensor> arguments;
  for (BlockArgument argument : function.getArguments()) {
    Source source(seed + 0x9e3779b97f4a7c15 * (argument.getArgNumber() + 1));
    auto type = cast<RankedTensorType>(argument.getType());
    HostTensor tensor = zerosOf(type);
    std::optional<Interval> range = statedRange(function, argument.getArgNumber());
    if (!range)
      range = required(argument);
    if (type.getElementType().isInteger())
      fillIntegers(tensor, range.value_or(Interval{0, 4}), source);
    else
      for (double &value : tensor.values)
        value = range ? range->low + (range->high - range->low) * source.uniform()
                      : 0.5 * source.bell();
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}
