// See ProgramBuilder.h.
#include "passes/ProgramBuilder.h"

using namespace mlir;

namespace gradc {

ProgramBuilder::ProgramBuilder(ModuleOp module, StringRef name)
    : builder(module.getContext()), name(name), loc(module.getLoc()) {
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
}

Value ProgramBuilder::argument(Type type, DictionaryAttr slot, Attribute parameter) {
  SmallVector<NamedAttribute> attributes{builder.getNamedAttr("nn.slot", slot)};
  if (parameter)
    attributes.push_back(builder.getNamedAttr("nn.param", parameter));
  argumentAttributes.push_back(builder.getDictionaryAttr(attributes));
  return body->addArgument(type, loc);
}

void ProgramBuilder::result(Value value, DictionaryAttr slot) {
  results.push_back(value);
  resultAttributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr("nn.slot", slot)));
}

DictionaryAttr ProgramBuilder::ownSlot(StringRef role, StringRef argument) {
  return slot(role, (Twine(name) + "." + argument).str());
}

DictionaryAttr ProgramBuilder::slot(StringRef role, StringRef slotName, StringRef part) {
  SmallVector<NamedAttribute> attributes{
      builder.getNamedAttr("role", builder.getStringAttr(role)),
      builder.getNamedAttr("name", builder.getStringAttr(slotName))};
  if (!part.empty())
    attributes.push_back(builder.getNamedAttr("slot", builder.getStringAttr(part)));
  return builder.getDictionaryAttr(attributes);
}

SmallVector<Value> inlineCall(OpBuilder &builder, func::FuncOp callee, ValueRange arguments) {
  IRMapping mapping;
  Block &body = callee.getBody().front();
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookup(value); });
}

void ProgramBuilder::finish() {
  func::ReturnOp::create(builder, loc, results);
  function.setType(builder.getFunctionType(llvm::to_vector(body->getArgumentTypes()),
                                           llvm::to_vector(ValueRange(results).getTypes())));
  function.setAllArgAttrs(argumentAttributes);
  function.setAllResultAttrs(resultAttributes);
}

} // namespace gradc
