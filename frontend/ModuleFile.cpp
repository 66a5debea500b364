// Parsing model definitions in MLIR.
#include "frontend/ModuleFile.h"
#include "frontend/ModelInfo.h"
#include "frontend/ModuleChecker.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::Twine;

namespace gradc {
namespace {

/// Keeps the first error that MLIR reports, with its line, as one line.
class FirstError {
public:
  explicit FirstError(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty()) {
            if (auto at = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
              message = ":" + std::to_string(at.getLine());
            message += ": " + diagnostic.str();
            std::replace(message.begin(), message.end(), '\n', ' ');
          }
          return success();
        }) {}
  std::string message;

private:
  ScopedDiagnosticHandler handler;
};

} // namespace

/// Brackets within brackets, at most; MLIR's parser recurses for each without a bound.
static size_t nestingOf(StringRef text) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\'))
      inString = !inString;
    if (inString)
      continue;
    if (StringRef("([{<").contains(text[i]))
      deepest = std::max(deepest, ++depth);
    else if (StringRef(")]}").contains(text[i]) ||
             (text[i] == '>' && (i == 0 || text[i - 1] != '-')))
      depth -= depth > 0;
  }
  return deepest;
}

/// Parses any module that MLIR's verifier accepts.
static llvm::Expected<OwningOpRef<ModuleOp>> parseModule(StringRef path, MLIRContext &context) {
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return text.takeError();
  constexpr size_t mostNesting = 1000;
  if (nestingOf(*text) > mostNesting)
    return inputError(path + ": nests brackets more than " + Twine(mostNesting) +
                      " deep; a model definition needs a few");
  context.loadDialect<nn::NnDialect, func::FuncDialect>();
  FirstError first(context);
  auto module = parseSourceString<ModuleOp>(*text, ParserConfig(&context), path);
  if (!module)
    return inputError(path + (first.message.empty() ? ": is not an MLIR module" : first.message));
  return module;
}

bool isModuleText(StringRef text) {
  if (text.starts_with("ML\xefR")) // bytecode
    return true;
  text = text.ltrim();
  while (text.consume_front("//"))
    text = text.drop_until([](char c) { return c == '\n'; }).ltrim();
  for (StringRef op : {"module", "func.func", "\"builtin.module\""})
    if (text.starts_with(op))
      return true;
  return text.size() > 1 && StringRef("#!").contains(text[0]) && llvm::isAlpha(text[1]); // alias
}

llvm::Expected<ImportedModel> readModuleFile(StringRef path, const ImportOptions &options,
                                             MLIRContext &context) {
  llvm::Expected<OwningOpRef<ModuleOp>> module = parseModule(path, context);
  if (!module)
    return module.takeError();
  ModuleChecker checker(path, **module);
  if (llvm::Error bad = checker.check())
    return bad;
  llvm::Expected<ModelInfo> info = checker.info(options);
  if (!info)
    return info.takeError();
  setModelInfo(**module, *info);
  if (options.dropout == DropoutPolicy::off)
    (*module)->walk([](nn::StochasticOpInterface op) { op.makeDeterministic(); });
  return ImportedModel{std::move(*module), std::move(*info)};
}

llvm::Expected<ImportedModel> reopenModule(StringRef path, MLIRContext &context) {
  llvm::Expected<OwningOpRef<ModuleOp>> module = parseModule(path, context);
  if (!module)
    return module.takeError();
  std::optional<ModelInfo> info = modelInfo(**module);
  if (!info)
    return inputError(path + ": has no nn.model; pass a module that gradc wrote after a phase");
  return ImportedModel{std::move(*module), std::move(*info)};
}

} // namespace gradc
