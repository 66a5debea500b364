// See ModuleChecker.h.
#include "frontend/ModuleChecker.h"
#include "frontend/ModelInfo.h"
#include "frontend/ParameterAttr.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::Twine;

namespace gradc {
namespace {

/// Arguments before the inputs; 0 where there are too few.
unsigned parameterCount(func::FuncOp function) {
  unsigned inputs = nn::inputCount(function.getFunctionType());
  return std::max(function.getNumArguments(), inputs) - inputs;
}

/// Length of a vector of token ids; 0 where the type is another.
int64_t idCount(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool vector = tensor && tensor.hasStaticShape() && tensor.getRank() == 1 &&
                tensor.getElementType().isSignlessInteger(32);
  return vector ? tensor.getDimSize(0) : 0;
}

} // namespace

llvm::Error ModuleChecker::error(const Twine &message) { return inputError(path + ": " + message); }

llvm::Error ModuleChecker::checkContents() {
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || (function.getName() != "loss" && function.getName() != "logits"))
      return error("holds something other than the functions @loss and @logits (" +
                   op.getName().getStringRef() + "); remove it");
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return error("@" + function.getName() + " is not one block of ops; give it such a body");
    (function.getName() == "loss" ? loss : logits) = function;
  }
  if (!loss)
    return error("has no function @loss; a model definition is @loss(parameters, tokens, targets)");
  Operation *foreign = nullptr;
  module.walk([&](Operation *op) {
    if (!isa<ModuleOp, func::FuncOp, func::ReturnOp>(op) &&
        op->getName().getDialectNamespace() != "nn")
      foreign = op;
  });
  if (foreign)
    return error("uses the op " + foreign->getName().getStringRef() +
                 ", which is not of the nn dialect; write it in nn ops");
  return llvm::Error::success();
}

llvm::Error ModuleChecker::completeParameters(func::FuncOp function) {
  llvm::StringSet<> names;
  for (unsigned index = 0; index < parameterCount(function); ++index) {
    std::string where = ("@" + function.getName() + ", argument " + Twine(index)).str();
    auto type = dyn_cast<RankedTensorType>(function.getArgument(index).getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isF32())
      return error(where + " is not an f32 tensor of static shape, as parameters are");
    int64_t elements = 1;
    for (int64_t size : type.getShape())
      if (size < 1 || llvm::MulOverflow(elements, size, elements) || elements >> 50)
        return error(where + " has no plausible size; make every dimension at least 1 and the "
                             "whole below 2^50");
    auto given = function.getArgAttrOfType<DictionaryAttr>(index, "nn.param");
    llvm::Expected<DictionaryAttr> complete = completeParameter(given, type);
    if (!complete)
      return error(where + ": " + llvm::toString(complete.takeError()));
    StringRef name = complete->getAs<StringAttr>("name").getValue();
    if (!names.insert(name).second)
      return error(where + ": there is another parameter " + inQuotes(name) + "; rename one");
    function.setArgAttr(index, "nn.param", *complete);
  }
  return llvm::Error::success();
}

llvm::Error ModuleChecker::checkInputs(func::FuncOp function, bool equal) {
  unsigned count = parameterCount(function);
  int64_t tokens = count < 1 ? 0 : idCount(function.getArgument(count).getType());
  int64_t second = count < 1 ? 0 : idCount(function.getArgument(count + 1).getType());
  if (tokens < 1 || second != (equal ? tokens : 1))
    return error("@" + function.getName() +
                 (equal ? " must take its parameters, then tokens and targets, both "
                          "tensor<n x i32>, and where it draws random numbers seed, step and "
                          "first row, all tensor<i32>"
                        : " must take its parameters, then tokens, tensor<seq x i32>, and "
                          "position, tensor<1xi32>"));
  for (unsigned index = count; index < function.getNumArguments(); ++index)
    if (function.getArgAttr(index, "nn.param"))
      return error("@" + function.getName() + ", argument " + Twine(index) +
                   " is an input but has an nn.param; remove it");
  return completeParameters(function);
}

llvm::Error ModuleChecker::checkLoss() {
  if (llvm::Error bad = checkInputs(loss, /*equal=*/true))
    return bad;
  auto type = loss.getNumResults() == 1 ? dyn_cast<RankedTensorType>(loss.getResultTypes()[0])
                                        : RankedTensorType();
  if (!type || type.getRank() != 0 || !type.getElementType().isF32())
    return error("@loss must return tensor<f32>, the sum of the loss over the valid labels");
  return llvm::Error::success();
}

llvm::Error ModuleChecker::checkLogits() {
  if (!logits)
    return llvm::Error::success();
  if (llvm::Error bad = checkInputs(logits, /*equal=*/false))
    return bad;
  unsigned parameters = parameterCount(loss);
  bool same = parameters == parameterCount(logits);
  for (unsigned index = 0; same && index < parameters; ++index)
    same = loss.getArgument(index).getType() == logits.getArgument(index).getType() &&
           loss.getArgAttr(index, "nn.param") == logits.getArgAttr(index, "nn.param");
  if (!same)
    return error("@loss and @logits must take the same parameters, in the same order");
  auto type = logits.getNumResults() == 1 ? dyn_cast<RankedTensorType>(logits.getResultTypes()[0])
                                          : RankedTensorType();
  if (!type || !type.hasStaticShape() || type.getRank() != 2 || type.getDimSize(0) != 1 ||
      !type.getElementType().isF32())
    return error("@logits must return tensor<1 x vocab x f32>");
  return llvm::Error::success();
}

llvm::Error ModuleChecker::check() {
  if (llvm::Error bad = checkContents())
    return bad;
  if (llvm::Error bad = checkModelAttribute())
    return bad;
  if (llvm::Error bad = checkLoss())
    return bad;
  return checkLogits();
}

llvm::Error ModuleChecker::checkModelAttribute() {
  Attribute given = module->getAttr("nn.model");
  if (given && !isa<DictionaryAttr>(given))
    return error("nn.model must be a dictionary, e.g. {vocab = 256}");
  if (!given)
    return llvm::Error::success();
  for (NamedAttribute entry : cast<DictionaryAttr>(given)) {
    StringRef key = entry.getName();
    bool isText = key == "family" || key == "prefix" || key == "config";
    bool isToken = key == "document_separator";
    bool isSize = key == "vocab" || key == "max_positions" || key == "micro_batch" ||
                  key == "seq" || key == "parameters";
    if (!isText && !isSize && !isToken)
      return error("nn.model: key " + inQuotes(key) + " is not known; remove it");
    int64_t least = isToken ? 0 : 1;
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    if (isText ? !isa<StringAttr>(entry.getValue())
               : !number || number.getValue().trySExtValue().value_or(-1) < least)
      return error("nn.model: " + inQuotes(key) + " must be " +
                   (isText ? "a string" : "an integer from " + Twine(least)));
  }
  return llvm::Error::success();
}

llvm::Error ModuleChecker::checkShape(ModelInfo &info, const ImportOptions &options) {
  int64_t tokens = idCount(loss.getArgumentTypes()[parameterCount(loss)]);
  int64_t seq = logits ? idCount(logits.getArgumentTypes()[parameterCount(logits)]) : info.seq;
  info.seq = seq > 0 ? seq : options.seq.value_or(tokens);
  if (info.seq < 1 || tokens % info.seq != 0)
    return error("@loss takes " + Twine(tokens) + " tokens, which are no whole rows of " +
                 Twine(info.seq) + "; change one of them");
  info.microBatch = tokens / info.seq;
  if (options.seq.value_or(info.seq) != info.seq)
    return error("is written for rows of " + Twine(info.seq) + " tokens; pass --seq " +
                 Twine(info.seq) + " or change the module");
  if (options.microBatch.value_or(info.microBatch) != info.microBatch)
    return error("is written for " + Twine(info.microBatch) + " rows; pass --micro-batch " +
                 Twine(info.microBatch) + " or change the module");
  return llvm::Error::success();
}

/// A module says itself which token ends a document.
llvm::Error ModuleChecker::checkDocuments(ModelInfo &info, const ImportOptions &options) {
  if (options.documentMask)
    return error("--document-mask is for models of a config.json; use nn.documents in the module");
  auto documents = llvm::to_vector(loss.getOps<nn::DocumentsOp>());
  if (logits)
    llvm::append_range(documents, logits.getOps<nn::DocumentsOp>());
  for (nn::DocumentsOp op : documents) {
    int64_t separator = op.getSeparator();
    if (int64_t seq = op.getSeq(); seq != info.seq)
      return error("nn.documents has rows of " + Twine(seq) + " tokens, the model rows of " +
                   Twine(info.seq) + "; change one of them");
    if (int64_t other = info.documentSeparator.value_or(separator); other != separator)
      return error("documents end with token " + Twine(other) + " and with token " +
                   Twine(separator) + "; keep one");
    info.documentSeparator = separator;
  }
  return llvm::Error::success();
}

llvm::Expected<ModelInfo> ModuleChecker::info(const ImportOptions &options) {
  ModelInfo info = modelInfo(module).value_or(ModelInfo{});
  if (info.family.empty())
    info.family = "mlir";
  if (llvm::Error bad = checkShape(info, options))
    return bad;
  if (llvm::Error bad = checkDocuments(info, options))
    return bad;
  int64_t columns =
      logits ? cast<RankedTensorType>(logits.getResultTypes()[0]).getDimSize(1) : info.vocab;
  if (columns < 1 || columns > limits::vocab)
    return error("tells no vocabulary of 1 to " + Twine(limits::vocab) +
                 " tokens; add @logits, or nn.model = {vocab = …} to the module");
  if (info.vocab != 0 && info.vocab != columns)
    return error("nn.model says a vocabulary of " + Twine(info.vocab) + ", @logits of " +
                 Twine(columns) + "; change one of them");
  info.vocab = columns;
  if (info.maxPositions == 0)
    info.maxPositions = info.seq;
  if (info.maxPositions < info.seq)
    return error("nn.model says " + Twine(info.maxPositions) + " positions, but its rows have " +
                 Twine(info.seq) + " tokens; change one of them");
  info.parameters = parameterElements(loss);
  return info;
}

} // namespace gradc
