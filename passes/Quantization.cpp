// See Quantization.h.
#include "passes/Quantization.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

namespace {

/// Ops with a result that the caller or an op that computes in fp32 reads, as it is or through ops
/// that follow their inputs (a bias, a scale, a view). What another product reads is none.
DenseSet<Operation *> opsReadFull(Block &body) {
  DenseSet<Operation *> found;
  auto readsFull = [&](Operation *user) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return true;
    auto precision = dyn_cast<PrecisionOpInterface>(user);
    if (precision && precision.getPrecisionClass() == PrecisionClass::follow)
      return found.contains(user);
    return precision && precision.getPrecisionClass() == PrecisionClass::full;
  };
  for (Operation &op : llvm::reverse(body)) // users first
    if (llvm::any_of(op.getUsers(), readsFull))
      found.insert(&op);
  return found;
}

DictionaryAttr attributeOf(MLIRContext *context, const AmaxRecord &record) {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(record.weight)),
                              b.getNamedAttr("slot", b.getStringAttr(record.part))});
}

} // namespace

LinearLayers::LinearLayers(func::FuncOp function) : function(function) {
  Block &body = function.getBody().front();
  DenseSet<Operation *> readFull = opsReadFull(body);
  for (Operation &op : body) {
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    if (!precision || !precision.takesFloat8() || op.getNumOperands() != 2 ||
        readFull.contains(&op))
      continue;
    Value lhs = op.getOperand(0), rhs = op.getOperand(1);
    if (isParameter(lhs) != isParameter(rhs))
      add(&op, cast<BlockArgument>(isParameter(lhs) ? lhs : rhs), isParameter(lhs) ? rhs : lhs);
  }
}

void LinearLayers::add(Operation *product, BlockArgument weight, Value activation) {
  auto parameter = function.getArgAttrOfType<DictionaryAttr>(weight.getArgNumber(), "nn.param");
  std::string name = parameter.getAs<StringAttr>("name").str();
  if (int use = ++uses[name]; use > 1)
    name += "#" + std::to_string(use);
  auto [record, isNew] = recordOf.try_emplace(activation, list.size());
  if (isNew)
    list.push_back({name, "input_amax"});
  inputRecord[product] = record->second;
  gradientRecord[product] = list.size();
  list.push_back({name, "gradient_amax"});
}

void addRecordArguments(ArrayRef<func::FuncOp> functions) {
  SmallVector<AmaxRecord> all;
  for (func::FuncOp function : functions) {
    LinearLayers layers(function);
    for (const AmaxRecord &record : layers.records())
      if (!llvm::is_contained(all, record))
        all.push_back(record);
  }
  for (func::FuncOp function : functions) {
    Builder b(function.getContext());
    unsigned position = llvm::count_if(function.getArguments(), isParameter);
    for (const AmaxRecord &record : all) {
      DictionaryAttr named = b.getDictionaryAttr(
          b.getNamedAttr("nn.record", attributeOf(function.getContext(), record)));
      (void)function.insertArgument(position++, RankedTensorType::get({}, b.getF32Type()), named,
                                    function.getLoc());
    }
  }
}

Value recordArgument(func::FuncOp function, const AmaxRecord &record) {
  DictionaryAttr wanted = attributeOf(function.getContext(), record);
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), "nn.record") == wanted)
      return argument;
  return {};
}

} // namespace gradc
