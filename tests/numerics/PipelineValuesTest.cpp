// Every pass on every family in every precision, by value. --verify-values runs what a pass reads
// and what it leaves; the functions that a pass adds or gives another type (autodiff,
// training-step, delayed scaling) are checked at the end: the interpreter rounds nothing, so that a
// step's programs must give in every precision what they give in fp32, whose gradients are
// differences of its loss.
#include "codegen/cpu/KernelFamilies.h"
#include "codegen/gpu/KernelFamilies.h"
#include "ir/Compare.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "tests/numerics/FrontendFixture.h"
#include "tests/numerics/Programs.h"
#include "tools/driver/VerifyValues.h"

#include <cmath>
#include <regex>
#include <set>

namespace {

using namespace gradc;
using namespace gradc::test;
using nn::HostTensor;

struct Family {
  const char *name;
  nlohmann::json config;
  bool documents = false;
  friend void PrintTo(const Family &family, std::ostream *stream) { *stream << family.name; }
};

// Of two layers, so that recompute finds layers; every one with something of its own.
std::vector<Family> families() {
  nlohmann::json gpt2 = with(smallGpt2(), R"({"resid_pdrop": 0.1, "embd_pdrop": 0.2,
                                              "attn_pdrop": 0.1, "tie_word_embeddings": true})");
  nlohmann::json llama3 = with(smallLlama(), R"({"attention_dropout": 0.1, "attention_bias": true,
      "mlp_bias": true, "tie_word_embeddings": true, "rope_scaling": {"rope_type": "llama3",
      "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 32}})");
  nlohmann::json mistral = with(smallLlama(), R"({"model_type": "mistral", "sliding_window": 3,
                                                  "eos_token_id": 5})");
  nlohmann::json qwen2 = with(smallLlama(), R"({"model_type": "qwen2", "use_sliding_window": true,
                                                "sliding_window": 3, "max_window_layers": 1})");
  return {{"gpt2", gpt2},
          {"gpt2_documents", with(gpt2, R"({"eos_token_id": 5})"), true},
          {"llama", smallLlama()},
          {"llama3", llama3},
          {"mistral_documents", mistral, true},
          {"qwen2", qwen2}};
}

/// Without dropout, of sizes that fp8 products take.
std::vector<Family> biasedFamilies() {
  return {{"gpt2", with(smallGpt2(), R"({"n_embd": 16})")},
          {"llama", with(smallLlama(), R"({"intermediate_size": 32, "attention_bias": true,
                                           "mlp_bias": true, "num_key_value_heads": 4})")}};
}

struct Precision {
  const char *mode;
  bool narrow = false; ///< products read narrow copies of parameters
  bool delayed = false;
};
constexpr Precision precisions[] = {{"fp32"},       {"tf32"},      {"bf16", true},
                                    {"fp16", true}, {"fp8", true}, {"fp8", true, /*delayed=*/true}};

Options withPrecision(Options options, Precision precision) {
  options.precision = precision.mode;
  options.float8Scaling = precision.delayed ? "delayed" : "current";
  return options;
}

/// A model after all phases up to the schedule, and what --verify-values said on the way.
struct Scheduled {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  ImportedModel model;
  std::string printed, diagnostics;

  mlir::func::FuncOp program(llvm::StringRef name) {
    return model.module->lookupSymbol<mlir::func::FuncOp>(name);
  }
};

class PipelineValues : public testing::TestWithParam<Family> {
protected:
  /// Null, and a failure, where a pass fails or changes a value.
  std::unique_ptr<Scheduled> compile(const Options &options) {
    auto result = std::make_unique<Scheduled>();
    result->context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      result->diagnostics += diagnostic.str() + "\n";
      return mlir::success();
    });
    auto imported = importText(GetParam().config.dump(), result->context,
                               {.microBatch = 2, .seq = seq, .documentMask = GetParam().documents});
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      return nullptr;
    }
    result->model = std::move(*imported);
    mlir::PassManager passes(&result->context);
    for (const PhaseInfo &info : phases())
      if (info.phase < Phase::memoryPlan) // behind it there are no tensors to interpret
        buildPhase(info.phase, passes, options, *library);
    auto changed = std::make_shared<std::atomic<bool>>(false);
    addValueVerification(passes, changed);
    testing::internal::CaptureStderr();
    bool passed = llvm::succeeded(passes.run(*result->model.module));
    result->printed = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(passed && !*changed) << result->diagnostics;
    return passed ? std::move(result) : nullptr;
  }

  /// Every pass of the pipeline ran and was compared.
  void expectComparisons(const std::string &printed, Precision precision, bool panels) {
    std::set<std::string> names;
    std::regex line("verify-values: pass '([^']+)': ([0-9]+) functions compared");
    for (std::sregex_iterator match(printed.begin(), printed.end(), line), end; match != end;
         ++match) {
      std::string name = (*match)[1];
      names.insert(name);
      // Where functions get records, low copies or panels as arguments, all are of another type,
      // but for those that read no weight in panels.
      if (name == "weight-panels")
        continue;
      bool retypes = (name == "precision" && precision.delayed) ||
                     (name == "training-step" && precision.narrow);
      EXPECT_EQ(std::stoi((*match)[2]) == 0, retypes) << name;
    }
    std::set<std::string> expected{"precision",   "canonicalize",      "join-loss",
                                   "autodiff",    "quantize-products", "narrow-biases",
                                   "recompute",   "training-step",     "cse",
                                   "absorb-sums", "chunk-loss",        "bias-gradients",
                                   "fusion",      "product-epilogues", "join-launches",
                                   "schedule"};
    if (panels)
      expected.insert("weight-panels");
    EXPECT_EQ(names, expected);
  }

  /// The arguments that a precision has besides those of fp32.
  void complete(Scheduled &compiled, Named &values) {
    if (mlir::func::FuncOp low = compiled.program("low_parameters"))
      values.merge(runProgram(low, values));
    mlir::func::FuncOp step = compiled.program("train_step");
    for (auto &[name, value] : randomSlots(step, 1))
      if (!values.count(name)) {
        bool isScale = name == "loss_scale";
        EXPECT_TRUE(isScale || llvm::StringRef(name).ends_with("_amax")) << name;
        // Histories are wide enough that nothing is cut.
        values[name] = value;
        std::fill(values[name].values.begin(), values[name].values.end(), isScale ? 1024 : 1e6);
      }
  }

  void expectEqual(const Named &actual, const Named &expected, const std::string &program) {
    for (auto &[name, value] : expected) {
      auto found = actual.find(name);
      ASSERT_NE(found, actual.end()) << program << ": " << name;
      nn::Comparison comparison =
          nn::compareValues(found->second, value, {.norm = 1e-9, .absolute = 1e-12});
      EXPECT_TRUE(comparison.passed) << program << ", " << name << ": " << comparison.report;
    }
  }

  /// What a step leaves as narrow copies and panels is what it leaves as parameters.
  void expectCopies(const Named &step) {
    for (auto &[name, copy] : step) {
      llvm::StringRef parameter(name);
      if (!parameter.consume_front("low/") || parameter.consume_back("/fp8_scale"))
        continue;
      for (llvm::StringRef part : {"_tf32", "/panels", "/panels_transposed"})
        parameter.consume_back(part);
      double scale = 1;
      if (parameter.ends_with("/fp8_transposed")) // of the numbers, which are compared
        continue;
      if (parameter.consume_back("/fp8"))
        scale = step.at("low/" + parameter.str() + "/fp8_scale")[0];
      HostTensor value = copy;
      for (double &x : value.values)
        x *= scale;
      expectEqual({{name, value}}, {{name, step.at(parameter.str())}}, "low copies");
    }
  }

  /// Tokens of a row, and whose kernels the passes ask for.
  int64_t seq = 6;
  std::unique_ptr<KernelLibrary> library =
      std::make_unique<codegen::CpuKernelLibrary>(codegen::CpuTarget::host());

  /// Each variant in each precision against fp32 compiled with `plain`.
  void check(const Options &plain, llvm::ArrayRef<Options> variants) {
    std::unique_ptr<Scheduled> reference = compile(plain);
    ASSERT_TRUE(reference);
    const Named values = randomSlots(reference->program("train_step"), 3);
    const char *const programs[] = {"train_step", "gradients", "eval_loss", "logits"};
    std::map<std::string, Named> inputs, expected;
    for (const char *program : programs) {
      inputs[program] = randomSlots(reference->program(program), 3);
      for (auto &[name, value] : values) // the same weights in all; shapes of a batch differ
        if (auto own = inputs[program].find(name);
            own != inputs[program].end() && own->second.shape == value.shape)
          own->second = value;
      expected[program] = runProgram(reference->program(program), inputs[program]);
    }
    expectGradients(reference->program("gradients"), inputs["gradients"], expected["gradients"]);
    for (const Options &variant : variants)
      for (Precision precision : precisions) {
        SCOPED_TRACE(std::string(precision.mode) + (precision.delayed ? " delayed" : "") +
                     ", recompute " + variant.recompute);
        std::unique_ptr<Scheduled> compiled = compile(withPrecision(variant, precision));
        if (!compiled)
          continue;
        expectComparisons(compiled->printed, precision, variant.weightPanels);
        for (const char *program : programs) {
          Named arguments = inputs[program];
          Named all = values;
          complete(*compiled, all);
          arguments.merge(all);
          Named actual = runProgram(compiled->program(program), arguments);
          expectEqual(actual, expected[program], program);
          if (program == programs[0])
            expectCopies(actual);
        }
      }
  }

  /// Of each parameter: the change of the loss along its gradient is the gradient's norm.
  void expectGradients(mlir::func::FuncOp program, const Named &values, const Named &results) {
    constexpr double step = 1e-4; // its square is the differences' error
    for (auto &[name, gradient] : results) {
      if (name == "loss" || name == "valid")
        continue;
      double squares = 0;
      for (double g : gradient.values)
        squares += g * g;
      double norm = std::sqrt(squares), difference = 0;
      ASSERT_TRUE(std::isfinite(norm)) << name;
      for (double sign : {1.0, -1.0}) {
        Named moved = values;
        for (int64_t i = 0; i < gradient.size() && norm > 0; ++i)
          moved[name][i] += sign * step * gradient[i] / norm;
        difference += sign * runProgram(program, moved)["loss"][0] / (2 * step);
      }
      EXPECT_NEAR(difference, norm, 1e-6) << name;
    }
  }
};

TEST_P(PipelineValues, OneMicrobatch) {
  Options plain{.lossChunk = 0}, cheap{.fuse = false, .lossChunk = 5, .recompute = "cheap"};
  check(plain, {plain, cheap});
}

TEST_P(PipelineValues, TwoMicrobatches) {
  Options plain{.gradAccum = 2, .lossChunk = 0},
      full{.gradAccum = 2, .lossChunk = 4, .weightPanels = true, .recompute = "full"};
  check(plain, {full});
}

/// For a GPU, whose library takes epilogues, and fp8 along the inner dimension.
class GpuPipelineValues : public PipelineValues {
protected:
  GpuPipelineValues() {
    seq = 8;
    library = std::make_unique<codegen::gpu::GpuKernels>(codegen::gpu::GpuTarget{90});
  }

  int64_t count(const Options &options, llvm::StringRef kind) {
    std::unique_ptr<Scheduled> compiled = compile(options);
    int64_t found = 0;
    if (compiled)
      compiled->program("train_step").walk([&](mlir::Operation *op) {
        auto product = mlir::dyn_cast<nn::ProductOpInterface>(op);
        found += product ? nn::stringifyEpilogue(product.getEpilogue()) == kind
                         : op->getName().stripDialect() == kind;
      });
    return found;
  }
};

TEST_P(GpuPipelineValues, OneMicrobatch) {
  Options plain{.lossChunk = 0};
  check(plain, {plain});
}

TEST_P(GpuPipelineValues, TwoMicrobatches) {
  Options cheap{.gradAccum = 2, .lossChunk = 0, .recompute = "cheap"};
  std::unique_ptr<Scheduled> compiled = compile(cheap);
  EXPECT_TRUE(compiled);
}

TEST_P(GpuPipelineValues, ProductsHaveEpilogues) {
  // Two layers: a bias behind each product, and a GELU in GPT-2's.
  bool isGpt2 = GetParam().config["model_type"] == "gpt2";
  for (const char *precision : {"fp32", "bf16"}) {
    Options options{.lossChunk = 0, .precision = precision};
    EXPECT_EQ(count(options, isGpt2 ? "bias_gradient_rhs" : "bias_gradient_lhs"), isGpt2 ? 8 : 14);
    EXPECT_EQ(count(options, "gelu_aux_bias"), isGpt2 ? 2 : 0);
    EXPECT_EQ(count(options, "gelu_gradient"), isGpt2 ? 2 : 0);
    EXPECT_GE(count(options, "bias"), 2);
  }
  EXPECT_GT(count({.lossChunk = 0, .precision = "fp8"}, "transposed_copy"), 0);
}

INSTANTIATE_TEST_SUITE_P(Biased, GpuPipelineValues, testing::ValuesIn(biasedFamilies()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(All, PipelineValues, testing::ValuesIn(families()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
