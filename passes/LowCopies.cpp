// See LowCopies.h.
#include "passes/LowCopies.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

bool makesLowCopy(Operation *op, function_ref<bool(Value)> isParameter) {
  auto making = dyn_cast_or_null<LowCopyOpInterface>(op);
  Value original = making ? making.getOriginal() : Value();
  return original && isParameter(original);
}

namespace {

/// What one function makes of parameters.
class MadeOfParameters {
public:
  MadeOfParameters(func::FuncOp function, unsigned parameters) {
    for (unsigned i = 0; i < parameters; ++i)
      parameterOf[function.getArgument(i)] = i;
    for (Operation &op : function.getBody().front())
      visit(op);
  }

  ArrayRef<std::pair<LowCopy, Value>> copies() const { return list; }

  /// Removes what is left of the making when the copies are read elsewhere.
  void erase() {
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty())
        op->erase();
  }

private:
  void visit(Operation &op) {
    if (!makesLowCopy(&op, [&](Value value) { return parameterOf.contains(value); }))
      return;
    ops.push_back(&op);
    auto making = cast<LowCopyOpInterface>(op);
    Value made = op.getResult(0);
    if (std::optional<StringRef> part = making.getCopyPart())
      list.push_back({{parameterOf.lookup(making.getOriginal()), *part,
                       cast<RankedTensorType>(made.getType()), making.getCopyFormat()},
                      made});
  }

  DenseMap<Value, unsigned> parameterOf;
  SmallVector<Operation *> ops;
  SmallVector<std::pair<LowCopy, Value>> list;
};

/// Clones what makes `value` of parameters that `mapping` knows; returns the clone.
Value cloneMaking(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value done = mapping.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneMaking(builder, operand, mapping);
  return builder.clone(*op, mapping)->getResult(0);
}

} // namespace

LowCopies separateLowCopies(ArrayRef<func::FuncOp> functions, unsigned parameters) {
  LowCopies copies;
  SmallVector<MadeOfParameters> made;
  for (func::FuncOp function : functions) {
    made.emplace_back(function, parameters);
    for (auto &[copy, value] : made.back().copies())
      if (llvm::none_of(copies.list, [&copy](const LowCopy &other) {
            return other.parameter == copy.parameter && other.part == copy.part;
          }))
        copies.list.push_back(copy);
  }
  llvm::stable_sort(copies.list,
                    [](const LowCopy &a, const LowCopy &b) { return a.parameter < b.parameter; });
  auto indexOf = [&](const LowCopy &copy) {
    return llvm::find(copies.list, copy) - copies.list.begin();
  };

  func::FuncOp first = functions.front();
  OpBuilder builder(first);
  Location loc = first.getLoc();
  SmallVector<Type> types(first.getArgumentTypes().take_front(parameters));
  copies.make =
      func::FuncOp::create(builder, loc, "low_copies", builder.getFunctionType(types, {}));
  Block *body = copies.make.addEntryBlock();
  builder.setInsertionPointToStart(body);
  SmallVector<Value> results(copies.list.size());
  for (auto [i, function] : llvm::enumerate(functions)) {
    func::FuncOp reader = function;
    for (auto [position, copy] : llvm::enumerate(copies.list))
      (void)reader.insertArgument(parameters + position, copy.type, {}, loc);
    IRMapping mapping;
    for (unsigned parameter = 0; parameter < parameters; ++parameter)
      mapping.map(reader.getArgument(parameter), body->getArgument(parameter));
    auto kept = llvm::to_vector(llvm::make_filter_range(
        made[i].copies(), [&](auto &made) { return llvm::is_contained(copies.list, made.first); }));
    for (auto [copy, value] : kept)
      if (Value &result = results[indexOf(copy)]; !result)
        result = cloneMaking(builder, value, mapping);
    for (auto [copy, value] : kept)
      value.replaceAllUsesWith(reader.getArgument(parameters + indexOf(copy)));
    made[i].erase();
  }
  func::ReturnOp::create(builder, loc, results);
  copies.make.setType(
      builder.getFunctionType(types, llvm::to_vector(ValueRange(results).getTypes())));
  return copies;
}

} // namespace gradc
