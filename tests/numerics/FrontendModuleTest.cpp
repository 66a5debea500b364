// Model definitions written in MLIR: accepted, completed, refused.
#include "FrontendFixture.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace gradc;
using namespace gradc::test;
using namespace mlir;

namespace {

const char *const bigram = R"(
func.func @loss(%table: tensor<5x5xf32> {nn.param = {name = "table"}},
                %tokens: tensor<6xi32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %logits = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x5xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets
      : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %sum = nn.sum %each : tensor<6x1xf32>
  return %sum : tensor<f32>
}
func.func @logits(%table: tensor<5x5xf32> {nn.param = {name = "table"}},
                  %tokens: tensor<3xi32>, %position: tensor<1xi32>) -> tensor<1x5xf32> {
  %all = nn.embedding %tokens, %table : tensor<3xi32>, tensor<5x5xf32> -> tensor<3x5xf32>
  %row = nn.embedding %position, %all : tensor<1xi32>, tensor<3x5xf32> -> tensor<1x5xf32>
  return %row : tensor<1x5xf32>
}
)";

/// Imports `bigram` with the first occurrences replaced.
llvm::Expected<ImportedModel>
importBigram(MLIRContext &context, ArrayRef<std::pair<const char *, const char *>> edits = {},
             const ImportOptions &options = {}) {
  std::string text = bigram;
  for (auto [from, to] : edits) {
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, std::string(from).size(), to);
  }
  return importModel(writeTemporary("bigram.mlir", text), options, context);
}

TEST(FrontendModule, CompletesWhatIsLeftOut) {
  MLIRContext context;
  auto model = importBigram(context);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->info.family, "mlir");
  EXPECT_EQ(model->info.vocab, 5);
  EXPECT_EQ(model->info.seq, 3);
  EXPECT_EQ(model->info.microBatch, 2);
  EXPECT_EQ(model->info.maxPositions, 3);
  EXPECT_EQ(model->info.parameters, 25);
  auto loss = model->module->lookupSymbol<func::FuncOp>("loss");
  EXPECT_EQ(loss.getArgAttr(0, "nn.param"),
            parseAttribute(R"({class = "matrix", decay = true, fan_in = 5, fan_out = 5,
                               init_kind = "normal", init_std = 0.02, name = "table"})",
                           &context));
}

TEST(FrontendModule, ReadsBackWhatTheBuilderMade) {
  MLIRContext context;
  auto built = importText(smallLlama().dump(), context, {.microBatch = 2, .seq = 4});
  ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
  std::string text;
  llvm::raw_string_ostream(text) << *built->module;
  auto read = importModel(writeTemporary("built.mlir", text), {}, context);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  std::string again;
  llvm::raw_string_ostream(again) << *read->module;
  EXPECT_EQ(text, again);
  EXPECT_EQ(read->info.config, smallLlama().dump());
}

TEST(FrontendModule, RefusesByName) {
  struct Case {
    std::vector<std::pair<const char *, const char *>> edits;
    ImportOptions options;
    const char *message;
  };
  const char *twoNames = R"({name = "table"}}, %b: tensor<2xf32> {nn.param = {name = "table"}})";
  const Case cases[] = {
      {{{"@loss", "@lose"}},
       {},
       ": holds something other than the functions @loss and @logits "
       "(func.func); remove it"},
      {{{"{name = \"table\"}", "{}"}}, {}, ": @loss, argument 0: nn.param: \"name\" is missing"},
      {{{" {nn.param = {name = \"table\"}}", ""}},
       {},
       ": @loss, argument 0: a parameter needs nn.param = {name = \"…\"}; tokens and the last "
       "input "
       "come after all parameters"},
      {{{"{name = \"table\"}", "{name = \"table\", std = 1.0}"}},
       {},
       ": @loss, argument 0: nn.param: key \"std\" is not known; remove it"},
      {{{"{name = \"table\"}", "{name = \"table\", init_std = 1}"}},
       {},
       ": @loss, argument 0: nn.param: \"init_std\" must be a float, e.g. 0.02"},
      {{{"{name = \"table\"}", "{name = \"table\", init_kind = \"uniform\"}"}},
       {},
       ": @loss, argument 0: nn.param: init_kind \"uniform\" is not normal or constant"},
      {{{"{name = \"table\"}", "{name = \"table\", class = \"head\"}"}},
       {},
       ": @loss, argument 0: nn.param: class \"head\" is not matrix, embedding, bias or norm"},
      {{{"{name = \"table\"}", "{name = \"other\"}"}},
       {},
       ": @loss and @logits must take the same parameters, in the same order"},
      {{{"{name = \"table\"}}", twoNames}},
       {},
       ": @loss, argument 1: there is another parameter \"table\"; rename one"},
      {{{"nn.embedding", "nn.embed"}}, {}, nullptr},
      {{}, {.microBatch = 4}, ": is written for 2 rows; pass --micro-batch 2 or change the module"},
      {{}, {.seq = 6}, ": is written for rows of 3 tokens; pass --seq 3 or change the module"},
  };
  for (const Case &test : cases) {
    MLIRContext context;
    std::string error = errorOf(importBigram(context, test.edits, test.options));
    std::string path = testing::TempDir() + "bigram.mlir";
    if (test.message)
      EXPECT_EQ(error, path + test.message);
    else // MLIR's own words, with our path and the line
      EXPECT_EQ(error.substr(0, path.size() + 4), path + ":4: ") << error;
  }
}

TEST(FrontendModule, NeedsLossOfTheStatedSignature) {
  auto error = [](StringRef text) {
    MLIRContext context;
    std::string path = writeTemporary("module.mlir", text);
    std::string message = errorOf(importModel(path, {}, context));
    return message.empty() ? message : message.substr(path.size());
  };
  EXPECT_EQ(error(""),
            ": has no function @loss; a model definition is @loss(parameters, tokens, targets)");
  EXPECT_EQ(error("func.func private @loss()"),
            ": @loss is not one block of ops; give it such a body");
  EXPECT_EQ(error("func.func @loss() { return }"),
            ": @loss must take its parameters, then tokens and targets, both tensor<n x i32>, and "
            "where it draws random numbers seed, step and first row, all tensor<i32>");
  EXPECT_EQ(error(R"(func.func @loss(%w: tensor<f32> {nn.param = {name = "w"}},
      %a: tensor<2xi32>, %b: tensor<2xi32>) { return })"),
            ": @loss must return tensor<f32>, the sum of the loss over the valid labels");
  const char *noVocab = R"(func.func @loss(%w: tensor<f32> {nn.param = {name = "w"}},
      %a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<f32> { return %w : tensor<f32> })";
  EXPECT_EQ(error(noVocab), ": tells no vocabulary of 1 to 16777216 tokens; add @logits, or "
                            "nn.model = {vocab = …} to the module");
  std::string vocab = "module attributes {nn.model = {vocab = 7}} {" + std::string(noVocab) + "}";
  EXPECT_EQ(error(vocab), "");
  std::string wrong =
      "module attributes {nn.model = {vocab = \"7\"}} {" + std::string(noVocab) + "}";
  EXPECT_EQ(error(wrong), ": nn.model: \"vocab\" must be an integer from 1");
  wrong = "module attributes {nn.model = {vocabulary = 7}} {" + std::string(noVocab) + "}";
  EXPECT_EQ(error(wrong), ": nn.model: key \"vocabulary\" is not known; remove it");
  EXPECT_EQ(error(R"(func.func @loss(%w: tensor<f32> {nn.param = {name = "w"}},
      %a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<f32> {
      %0 = call @loss(%w, %a, %b) : (tensor<f32>, tensor<2xi32>, tensor<2xi32>) -> tensor<f32>
      return %0 : tensor<f32> })"),
            ": uses the op func.call, which is not of the nn dialect; write it in nn ops");
}

TEST(FrontendModule, ReopensWhatALaterPhaseWrote) {
  MLIRContext context;
  auto reopened = importModel(
      writeTemporary("later.mlir", "module attributes {nn.model = {vocab = 7, seq = 2}} {\n"
                                   "func.func private @train_step() }"),
      {}, context);
  EXPECT_NE(errorOf(std::move(reopened)), ""); // no model definition
  auto later = reopenModule(testing::TempDir() + "later.mlir", context);
  ASSERT_TRUE(bool(later)) << llvm::toString(later.takeError());
  EXPECT_EQ(later->info.vocab, 7);
  EXPECT_EQ(later->info.seq, 2);
  std::string path = writeTemporary("plain.mlir", "module {}");
  EXPECT_EQ(errorOf(reopenModule(path, context)),
            path + ": has no nn.model; pass a module that gradc wrote after a phase");
}

TEST(FrontendModule, ExampleIsValid) {
  MLIRContext context;
  auto model =
      importModel(std::string(GRADC_SOURCE_DIR) + "/examples/linear-mlir/model.mlir", {}, context);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->info.vocab, 256);
}

TEST(FrontendModule, ExampleConfigsAreValid) {
  for (const char *name : {"gpt2-demo", "llama-demo", "gpt2-124m", "llama-150m"}) {
    MLIRContext context;
    auto model = importModel(std::string(GRADC_SOURCE_DIR) + "/examples/" + name, {}, context);
    EXPECT_TRUE(bool(model)) << llvm::toString(model.takeError());
  }
}

} // namespace
