// See Quantization.h.
#include "passes/Quantization.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

namespace {

/// Whether an op that computes in fp32, or the caller, reads a result of the op.
bool isReadFull(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    auto precision = dyn_cast<PrecisionOpInterface>(user);
    return user->hasTrait<OpTrait::IsTerminator>() ||
           (precision && precision.getPrecisionClass() == PrecisionClass::full);
  });
}

DictionaryAttr attributeOf(MLIRContext *context, const AmaxRecord &record) {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(record.weight)),
                              b.getNamedAttr("slot", b.getStringAttr(record.part))});
}

} // namespace

LinearLayers::LinearLayers(func::FuncOp function) : function(function) {
  for (Operation &op : function.getBody().front()) {
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    if (!precision || !precision.takesFloat8() || op.getNumOperands() != 2 || isReadFull(&op))
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
