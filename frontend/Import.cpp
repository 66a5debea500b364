// The importer: tells the kinds of definitions apart and builds the functions of a configured
// model.
#include "frontend/Import.h"
#include "frontend/ModelInfo.h"
#include "frontend/ModuleFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::Twine;

namespace gradc {

namespace {
constexpr int64_t mostTokens = int64_t(1) << 24; ///< of a microbatch
constexpr int64_t mostSeq = int64_t(1) << 20;
constexpr int64_t defaultSeq = 1024;
} // namespace

static llvm::Expected<TokenShape> tokenShape(const Model &model, const ImportOptions &options) {
  TokenShape shape;
  shape.batch = options.microBatch.value_or(1);
  shape.seq = options.seq.value_or(std::min(model.maxPositions(), defaultSeq));
  if (shape.batch < 1 || shape.batch > mostTokens)
    return inputError("--micro-batch " + Twine(shape.batch) + " is not between 1 and " +
                      Twine(mostTokens));
  if (shape.seq < 1 || shape.seq > mostSeq)
    return inputError("--seq " + Twine(shape.seq) + " is not between 1 and " + Twine(mostSeq));
  if (shape.seq > model.maxPositions())
    return inputError("--seq " + Twine(shape.seq) + " is above the model's " +
                      Twine(model.maxPositions()) + " positions (\"" + model.maxPositionsKey() +
                      "\" in config.json); pass --seq " + Twine(model.maxPositions()) + " or less");
  if (shape.batch > mostTokens / shape.seq)
    return inputError("--micro-batch " + Twine(shape.batch) + " x --seq " + Twine(shape.seq) +
                      " is above " + Twine(mostTokens) +
                      " tokens a microbatch; pass a smaller one and --grad-accum");
  return shape;
}

/// The token that ends a document, or nothing where documents are not masked.
static llvm::Expected<std::optional<int64_t>>
separatorOf(const ConfigFile &file, const Model &model, const ImportOptions &options) {
  if (!options.documentMask)
    return std::nullopt;
  int64_t last = model.vocab() - 1;
  if (std::optional<int64_t> given = options.documentSeparator) {
    if (*given > last)
      return inputError("--document-separator " + Twine(*given) +
                        " is no token of the model; pass one of 0 to " + Twine(last));
    return given;
  }
  ConfigReader config(file, "any model");
  std::optional<int64_t> end = config.soleInteger("eos_token_id", 0, last);
  if (config.failed())
    return inputError(llvm::toString(config.error()) +
                      "; or pass --document-separator, the token that ends a document");
  if (!end)
    return inputError(file.path + ": --document-mask on needs the token that ends a document; set "
                                  "\"eos_token_id\" or pass --document-separator");
  return end;
}

static void buildLoss(ModuleOp module, const Model &model, TokenShape shape,
                      std::optional<int64_t> separator) {
  GraphBuilder graph(module, "loss", shape, shape.batch * shape.seq, GraphUse::training, separator);
  Value logits = model.logits(graph, model.hidden(graph, shape));
  graph.at("loss");
  graph.finish(graph.lossSum(logits, graph.second()));
}

/// One row of tokens; the wanted position is picked before the head, which is the larger part.
static void buildLogits(ModuleOp module, const Model &model, int64_t seq,
                        std::optional<int64_t> separator) {
  TokenShape row{1, seq};
  GraphBuilder graph(module, "logits", row, 1, GraphUse::inference, separator);
  Value hidden = model.hidden(graph, row);
  graph.at("position");
  graph.finish(model.logits(graph, graph.embedding(graph.second(), hidden)));
}

llvm::Expected<ImportedModel> buildModel(const ConfigFile &file, const ImportOptions &options,
                                         MLIRContext &context) {
  llvm::Expected<std::unique_ptr<Model>> model = readModel(file, options.dropout);
  if (!model)
    return model.takeError();
  llvm::Expected<TokenShape> shape = tokenShape(**model, options);
  if (!shape)
    return shape.takeError();
  llvm::Expected<std::optional<int64_t>> separator = separatorOf(file, **model, options);
  if (!separator)
    return separator.takeError();

  context.loadDialect<nn::NnDialect, func::FuncDialect>();
  ImportedModel result;
  result.module = ModuleOp::create(UnknownLoc::get(&context));
  buildLoss(*result.module, **model, *shape, *separator);
  buildLogits(*result.module, **model, shape->seq, *separator);

  ConfigReader type(file, "any model");
  result.info = {type.string("model_type", ""),
                 (*model)->vocab(),
                 (*model)->maxPositions(),
                 shape->batch,
                 shape->seq,
                 parameterElements(result.module->lookupSymbol<func::FuncOp>("loss")),
                 (*model)->namePrefix().str(),
                 file.text,
                 *separator};
  setModelInfo(*result.module, result.info);
  return result;
}

llvm::Expected<ImportedModel> importModel(StringRef path, const ImportOptions &options,
                                          MLIRContext &context) {
  StringRef extension = llvm::sys::path::extension(path);
  if (extension == ".mlir" || extension == ".mlirbc")
    return readModuleFile(path, options, context);
  llvm::SmallString<128> file(path);
  if (llvm::sys::fs::is_directory(path)) {
    llvm::sys::path::append(file, "config.json");
    if (!llvm::sys::fs::exists(file))
      return inputError(path + ": holds no config.json; pass the folder of a Hugging Face model");
  } else if (!llvm::sys::fs::exists(path)) {
    return inputError(path + ": does not exist; pass a config.json, a folder that holds one, or an "
                             ".mlir module");
  }
  llvm::Expected<std::string> text = readTextFile(file);
  if (!text)
    return text.takeError();
  if (llvm::sys::path::extension(file) != ".json" && isModuleText(*text))
    return readModuleFile(path, options, context);
  llvm::Expected<ConfigFile> config = ConfigFile::parse(*text, file);
  return config ? buildModel(*config, options, context) : config.takeError();
}

} // namespace gradc
