// ModelInfo as the module's attribute, written and read.
#include "frontend/ModelInfo.h"

using namespace mlir;

namespace gradc {

void setModelInfo(ModuleOp module, const ModelInfo &info) {
  Builder builder(module.getContext());
  NamedAttrList list;
  list.set("family", builder.getStringAttr(info.family));
  list.set("vocab", builder.getI64IntegerAttr(info.vocab));
  list.set("max_positions", builder.getI64IntegerAttr(info.maxPositions));
  list.set("micro_batch", builder.getI64IntegerAttr(info.microBatch));
  list.set("seq", builder.getI64IntegerAttr(info.seq));
  list.set("parameters", builder.getI64IntegerAttr(info.parameters));
  list.set("prefix", builder.getStringAttr(info.prefix));
  list.set("config", builder.getStringAttr(info.config));
  if (info.documentSeparator)
    list.set("document_separator", builder.getI64IntegerAttr(*info.documentSeparator));
  module->setAttr("nn.model", list.getDictionary(module.getContext()));
}

std::optional<ModelInfo> modelInfo(ModuleOp module) {
  auto dictionary = module->getAttrOfType<DictionaryAttr>("nn.model");
  if (!dictionary)
    return std::nullopt;
  auto integer = [&](StringRef key) {
    auto value = dictionary.getAs<IntegerAttr>(key);
    return value ? value.getValue().trySExtValue().value_or(0) : 0;
  };
  auto text = [&](StringRef key) {
    auto value = dictionary.getAs<StringAttr>(key);
    return value ? value.getValue().str() : std::string();
  };
  ModelInfo info{text("family"),         integer("vocab"), integer("max_positions"),
                 integer("micro_batch"), integer("seq"),   integer("parameters"),
                 text("prefix"),         text("config")};
  if (dictionary.get("document_separator"))
    info.documentSeparator = integer("document_separator");
  return info;
}

int64_t parameterElements(func::FuncOp function) {
  int64_t elements = 0;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (function.getArgAttr(index, "nn.param"))
      elements += cast<RankedTensorType>(type).getNumElements();
  return elements;
}

} // namespace gradc
