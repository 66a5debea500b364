// The graphs of the model families: parameters, signatures, rotary tables.
#include "FrontendFixture.h"
#include "frontend/models/Rope.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include <cmath>

using namespace gradc;
using namespace gradc::test;
using namespace mlir;

namespace {

std::string configPath(const std::string &name) {
  return std::string(GRADC_SOURCE_DIR) + "/tests/frontend/configs/" + name + ".json";
}

struct Parameter {
  RankedTensorType type;
  DictionaryAttr attributes;
  double number(StringRef key) const { return attributes.getAs<FloatAttr>(key).getValueAsDouble(); }
  StringRef text(StringRef key) const { return attributes.getAs<StringAttr>(key).getValue(); }
};

std::map<std::string, Parameter> parametersOf(ModuleOp module, StringRef function = "loss") {
  auto func = module.lookupSymbol<func::FuncOp>(function);
  std::map<std::string, Parameter> parameters;
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (auto dictionary = func.getArgAttrOfType<DictionaryAttr>(index, "nn.param"))
      parameters[dictionary.getAs<StringAttr>("name").str()] = {cast<RankedTensorType>(type),
                                                                dictionary};
  return parameters;
}

TEST(FrontendModel, ParameterCountsOfPublishedModels) {
  const std::pair<const char *, int64_t> published[] = {
      {"gpt2", 124'439'808},           {"llama-2-7b", 6'738'415'616}, {"llama-3-8b", 8'030'261'248},
      {"llama-3.2-1b", 1'235'814'400}, {"smollm2-135m", 134'515'008},
  };
  for (auto [name, count] : published) {
    MLIRContext context;
    auto model = importModel(configPath(name), {.seq = 8, .dropout = DropoutPolicy::off}, context);
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    EXPECT_EQ(model->info.parameters, count) << name;
    EXPECT_TRUE(succeeded(verify(*model->module))) << name;
  }
}

TEST(FrontendModel, DropoutIsInTheLossAsConfiguredAndNowhereElse) {
  nlohmann::json config = smallGpt2();
  config.erase("resid_pdrop"); // absent means the class's default, 0.1
  config["embd_pdrop"] = 0.2;
  config["attn_pdrop"] = 0.3;
  std::map<double, int> rates;
  auto count = [&](DropoutPolicy policy, StringRef function) {
    rates.clear();
    MLIRContext context;
    auto model = importText(config.dump(), context, {.dropout = policy});
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    auto func = model->module->lookupSymbol<func::FuncOp>(function);
    func.walk([&](nn::DropoutOp op) { ++rates[op.getRate().convertToDouble()]; });
    func.walk([&](nn::AttentionOp op) {
      if (!op.getDropout().isZero())
        ++rates[op.getDropout().convertToDouble()];
    });
  };
  count(DropoutPolicy::asConfigured, "loss");
  EXPECT_EQ(rates, (std::map<double, int>{{0.1, 4}, {0.2, 1}, {0.3, 2}})); // two layers
  count(DropoutPolicy::asConfigured, "logits");
  EXPECT_TRUE(rates.empty());
  count(DropoutPolicy::off, "loss");
  EXPECT_TRUE(rates.empty());
}

TEST(FrontendModel, ReadsEveryKeyThatTransformersWrites) {
  for (const char *name : {"full-gpt2-v4", "full-gpt2-v5", "full-llama-v4", "full-llama-v5"}) {
    MLIRContext context;
    auto model = importModel(configPath(name), {.dropout = DropoutPolicy::off}, context);
    EXPECT_TRUE(bool(model)) << llvm::toString(model.takeError());
  }
}

TEST(FrontendModel, DefaultsAreTheClassesOwn) {
  MLIRContext context;
  auto gpt2 = importText(R"({"model_type": "gpt2"})", context, {.dropout = DropoutPolicy::off});
  ASSERT_TRUE(bool(gpt2)) << llvm::toString(gpt2.takeError());
  EXPECT_EQ(gpt2->info.parameters, 124'439'808);
  EXPECT_EQ(gpt2->info.seq, 1024);
  EXPECT_EQ(gpt2->info.microBatch, 1);
  auto llama = importText(R"({"model_type": "llama"})", context, {.seq = 8});
  ASSERT_TRUE(bool(llama)) << llvm::toString(llama.takeError());
  EXPECT_EQ(llama->info.parameters, 6'738'415'616);
  EXPECT_EQ(llama->info.maxPositions, 2048);
}

TEST(FrontendModel, Gpt2Parameters) {
  MLIRContext context;
  auto model = importText(smallGpt2().dump(), context, {.microBatch = 2, .seq = 4});
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  auto parameters = parametersOf(*model->module);
  EXPECT_EQ(parameters.size(), 2u + 2 * 12 + 2);

  const Parameter &wte = parameters.at("transformer.wte.weight");
  EXPECT_EQ(wte.type.getShape(), ArrayRef<int64_t>({11, 8}));
  EXPECT_EQ(wte.text("class"), "embedding");
  EXPECT_EQ(wte.text("init_kind"), "normal");
  EXPECT_EQ(wte.number("init_std"), 0.02);
  EXPECT_TRUE(wte.attributes.getAs<BoolAttr>("decay").getValue());

  const Parameter &attention = parameters.at("transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(attention.type.getShape(), ArrayRef<int64_t>({8, 24}));
  EXPECT_EQ(attention.text("class"), "matrix");
  EXPECT_EQ(attention.attributes.getAs<IntegerAttr>("fan_in").getInt(), 8);
  EXPECT_EQ(attention.attributes.getAs<IntegerAttr>("fan_out").getInt(), 24);

  const Parameter &residual = parameters.at("transformer.h.0.mlp.c_proj.weight");
  EXPECT_EQ(residual.type.getShape(), ArrayRef<int64_t>({32, 8}));
  EXPECT_EQ(residual.number("init_std"), 0.02 / 2);

  const Parameter &bias = parameters.at("transformer.h.0.attn.c_attn.bias");
  EXPECT_EQ(bias.text("init_kind"), "constant");
  EXPECT_EQ(bias.number("init_value"), 0);
  EXPECT_EQ(bias.text("class"), "bias");
  EXPECT_FALSE(bias.attributes.getAs<BoolAttr>("decay").getValue());

  const Parameter &norm = parameters.at("transformer.ln_f.weight");
  EXPECT_EQ(norm.number("init_value"), 1);
  EXPECT_EQ(norm.text("class"), "norm");
  EXPECT_FALSE(norm.attributes.getAs<BoolAttr>("decay").getValue());
}

TEST(FrontendModel, UntiedHeadsAndBiases) {
  MLIRContext context;
  auto gpt2 = importText(with(smallGpt2(), R"({"tie_word_embeddings": false})").dump(), context);
  ASSERT_TRUE(bool(gpt2)) << llvm::toString(gpt2.takeError());
  EXPECT_EQ(parametersOf(*gpt2->module).at("lm_head.weight").type.getShape(),
            ArrayRef<int64_t>({11, 8}));

  auto plain = importText(smallLlama().dump(), context);
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  EXPECT_EQ(parametersOf(*plain->module).size(), 1u + 2 * 9 + 2);
  auto biased = importText(with(smallLlama(), R"({"tie_word_embeddings": true, "head_dim": 6,
      "attention_bias": true, "mlp_bias": true})")
                               .dump(),
                           context);
  ASSERT_TRUE(bool(biased)) << llvm::toString(biased.takeError());
  auto parameters = parametersOf(*biased->module);
  EXPECT_EQ(parameters.size(), 1u + 2 * 16 + 1);
  EXPECT_EQ(parameters.at("model.layers.0.self_attn.k_proj.weight").type.getShape(),
            ArrayRef<int64_t>({12, 16}));
  EXPECT_EQ(parameters.at("model.layers.0.self_attn.o_proj.weight").type.getShape(),
            ArrayRef<int64_t>({16, 24}));
}

TEST(FrontendModel, SignaturesAndModelAttribute) {
  for (const nlohmann::json &config : {smallGpt2(), smallLlama()}) {
    MLIRContext context;
    auto model = importText(config.dump(), context, {.microBatch = 3, .seq = 5});
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    auto loss = model->module->lookupSymbol<func::FuncOp>("loss");
    auto logits = model->module->lookupSymbol<func::FuncOp>("logits");
    auto type = [&](StringRef text) { return parseType(text, &context); };
    EXPECT_EQ(loss.getArgumentTypes().take_back(2)[0], type("tensor<15xi32>"));
    EXPECT_EQ(loss.getArgumentTypes().take_back(2)[1], type("tensor<15xi32>"));
    EXPECT_EQ(loss.getResultTypes()[0], type("tensor<f32>"));
    EXPECT_EQ(logits.getArgumentTypes().take_back(2)[0], type("tensor<5xi32>"));
    EXPECT_EQ(logits.getArgumentTypes().take_back(2)[1], type("tensor<1xi32>"));
    EXPECT_EQ(logits.getResultTypes()[0], type("tensor<1x11xf32>"));
    ASSERT_EQ(loss.getNumArguments(), logits.getNumArguments());
    for (unsigned i = 0; i + 2 < loss.getNumArguments(); ++i) {
      EXPECT_EQ(loss.getArgumentTypes()[i], logits.getArgumentTypes()[i]);
      EXPECT_EQ(loss.getArgAttr(i, "nn.param"), logits.getArgAttr(i, "nn.param"));
    }
    std::optional<ModelInfo> info = modelInfo(*model->module);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->family, config["model_type"].get<std::string>());
    EXPECT_EQ(info->vocab, 11);
    EXPECT_EQ(info->microBatch, 3);
    EXPECT_EQ(info->seq, 5);
    EXPECT_EQ(info->parameters, model->info.parameters);
    EXPECT_EQ(info->config, config.dump());
  }
}

TEST(FrontendRope, Llama3FrequenciesByHand) {
  // head_dim 8, theta 10000: 1, 0.1, 0.01, 0.001 turns 64·f/2π = 10.2, 1.0186, 0.10, 0.01 times in
  // the original length: the first is above high and kept, the last two are below low and divided
  // by 8, the second keeps (1.018592 - 1)/3 of itself.
  RopeSettings settings{RopeType::llama3, 10000, 8, 1, 4, 64};
  std::vector<double> frequencies = ropeFrequencies(settings, 8);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_NEAR(frequencies[0], 1, 1e-15);
  EXPECT_NEAR(frequencies[1], 0.0130422560438205, 1e-15);
  EXPECT_NEAR(frequencies[2], 0.00125, 1e-17);
  EXPECT_NEAR(frequencies[3], 0.000125, 1e-18);
  EXPECT_NEAR(ropeFrequencies({RopeType::linear, 10000, 4, 1, 4, 0}, 8)[1], 0.025, 1e-16);
}

TEST(FrontendRope, TablesAreOfPositionTimesFrequency) {
  RopeTables tables = ropeTables({}, 4, 3); // frequencies 1 and 0.01
  ASSERT_EQ(tables.cos.size(), 6u);
  EXPECT_EQ(tables.cos[0], 1);
  EXPECT_EQ(tables.sin[1], 0);
  EXPECT_EQ(tables.cos[4], static_cast<float>(std::cos(2.0)));
  EXPECT_EQ(tables.sin[5], static_cast<float>(std::sin(0.02)));
}

/// The constants of @loss, which are the tables.
std::vector<DenseElementsAttr> tablesOf(const nlohmann::json &config, MLIRContext &context) {
  auto model = importText(config.dump(), context);
  EXPECT_TRUE(bool(model)) << llvm::toString(model.takeError());
  std::vector<DenseElementsAttr> tables;
  if (model)
    model->module->lookupSymbol<func::FuncOp>("loss").walk(
        [&](nn::ConstantOp op) { tables.push_back(cast<DenseElementsAttr>(op.getValue())); });
  return tables;
}

TEST(FrontendRope, BothSpellingsGiveTheSameTables) {
  MLIRContext context;
  const char *spellings[][2] = {
      {R"({"rope_theta": 5000.0})",
       R"({"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}})"},
      {R"({"rope_theta": 5000, "rope_scaling": {"type": "linear", "factor": 2.0}})",
       R"({"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 5000.0}})"},
      {R"({"rope_theta": 5000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
           "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 64}})",
       R"({"rope_scaling": null, "rope_parameters": {"rope_type": "llama3", "factor": 8.0,
           "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 5000.0}})"},
  };
  std::vector<DenseElementsAttr> seen;
  for (auto [older, newer] : spellings) {
    std::vector<DenseElementsAttr> tables = tablesOf(with(smallLlama(), older), context);
    ASSERT_EQ(tables.size(), 2u);
    EXPECT_EQ(tables, tablesOf(with(smallLlama(), newer), context));
    EXPECT_FALSE(llvm::is_contained(seen, tables[0])); // the settings do matter
    seen.push_back(tables[0]);
  }
}

} // namespace
