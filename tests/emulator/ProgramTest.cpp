// A whole training step with GPU kernels, from the graph to an object for the emulated device,
// against the interpreter in f64.
#include "tests/emulator/LoadedModule.h"

#include "codegen/gpu/EmulatedProgram.h"
#include "codegen/gpu/KernelFamilies.h"
#include "codegen/host/StepProgram.h"
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "passes/Pipelines.h"
#include "runtime/StepAbi.h"
#include "runtime/emulator/EmulatedDevice.h"
#include "tests/numerics/InterpreterHarness.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

#include <map>

extern "C" {
void gradc_launch(GradcContext *context, const GradcLaunch *launch);
void gradc_gemm(GradcContext *context, const GradcGemm *gemm);
void gradc_begin_iteration(GradcContext *context, int64_t iteration);
}

namespace gradc {
namespace {

using nn::HostTensor;
using test::tensorOf;

// Sizes that neither vectors nor warps divide.
const char *const model = R"(
func.func @loss(
    %table: tensor<37x25xf32> {nn.param = {name = "table", decay = true}},
    %norm: tensor<25xf32> {nn.param = {name = "norm", decay = false}},
    %head: tensor<25x37xf32> {nn.param = {name = "head", decay = true}},
    %bias: tensor<37xf32> {nn.param = {name = "bias", decay = false}},
    %tokens: tensor<67xi32>, %targets: tensor<67xi32>,
    %seed: tensor<i32>, %step: tensor<i32>, %first: tensor<i32>) -> tensor<f32> {
  %stream = nn.constant dense<1> : tensor<i32>
  %x = nn.embedding %tokens, %table : tensor<67xi32>, tensor<37x25xf32> -> tensor<67x25xf32>
  %n, %r = nn.rms_norm %x, %norm eps 0.1 : tensor<67x25xf32>, tensor<25xf32> -> tensor<67x1xf32>
  %d = nn.dropout %n rate 0.4 random(%seed, %step, %first, %stream) : tensor<67x25xf32>
  %product = nn.matmul %d, %head : tensor<67x25xf32>, tensor<25x37xf32> -> tensor<67x37xf32>
  %logits = nn.add %product, %bias : tensor<67x37xf32>, tensor<37xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<67x37xf32>, tensor<67xi32> -> tensor<67x1xf32>, tensor<67x1xf32>
  %loss = nn.sum %each : tensor<67x1xf32>
  return %loss : tensor<f32>
})";
constexpr int64_t microbatches = 2, tokens = 67, vocabulary = 37;

/// A slot's name and part.
std::string keyOf(mlir::DictionaryAttr slot) {
  auto part = slot.getAs<mlir::StringAttr>("slot");
  return slot.getAs<mlir::StringAttr>("name").getValue().str() +
         (part ? "/" + part.getValue().str() : "");
}

HostTensor inputFor(const std::string &key, mlir::Type type) {
  std::map<std::string, double> scalars{
      {"learning_rate", 0.03}, {"beta1", 0.9}, {"beta2", 0.95},           {"eps", 1e-3},
      {"weight_decay", 0.1},   {"seed", 11},   {"bias_correction1", 0.3}, {"bias_correction2", 0.2},
      {"clip_grad", 0.05},     {"step", 4}};
  std::string name = key.substr(key.find('.') + 1);
  HostTensor tensor(mlir::cast<mlir::RankedTensorType>(type).getShape());
  if (auto found = scalars.find(name); found != scalars.end())
    tensor[0] = found->second;
  else if (name == "first_row")
    tensor = tensorOf({microbatches}, {0, tokens});
  else if (name == "tokens" || name == "targets")
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor[i] = name == "targets" && i % 9 == 4 ? -1 : static_cast<double>(i * i % vocabulary);
  else
    for (int64_t i = 0; i < tensor.size(); ++i) // parameters, and moments that are no less than 0
      tensor[i] = key.ends_with("_sq") ? 1e-3 * static_cast<double>(i % 5)
                                       : static_cast<double>((i * 31 + i / 7) % 41 - 20) / 32;
  return tensor;
}

/// The graph up to the fused step, and its interpretation.
class Step {
public:
  Step() : parsed(model) {
    run({Phase::autodiff, Phase::trainingStep, Phase::fusion, Phase::schedule});
    mlir::func::FuncOp function = parsed.function("train_step");
    llvm::SmallVector<HostTensor> arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      std::string key = keyOf(function.getArgAttrOfType<mlir::DictionaryAttr>(i, "nn.slot"));
      arguments.push_back(inputs[key] = inputFor(key, function.getArgumentTypes()[i]));
    }
    auto results = nn::interpret(function, arguments);
    EXPECT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
    for (auto [i, result] : llvm::enumerate(*results))
      expected[keyOf(function.getResultAttrOfType<mlir::DictionaryAttr>(i, "nn.slot"))] = result;
    run({Phase::memoryPlan});
    plan = parsed.module()->getAttrOfType<mlir::DictionaryAttr>("gradc.plan");
  }

  mlir::ModuleOp module() { return parsed.module(); }
  int64_t bytes(llvm::StringRef name) const { return plan.getAs<mlir::IntegerAttr>(name).getInt(); }
  /// Calls visit(key, type, offset) for every slot of the state.
  template <typename Visit> void forSlots(Visit visit) const {
    for (mlir::Attribute entry : plan.getAs<mlir::ArrayAttr>("slots")) {
      auto slot = mlir::cast<mlir::DictionaryAttr>(entry);
      visit(keyOf(slot),
            mlir::cast<mlir::RankedTensorType>(slot.getAs<mlir::TypeAttr>("type").getValue()),
            slot.getAs<mlir::IntegerAttr>("offset").getInt());
    }
  }

  std::map<std::string, HostTensor> inputs, expected;

private:
  void run(std::initializer_list<Phase> phases) {
    mlir::PassManager passes(&parsed.context());
    for (Phase phase : phases)
      buildPhase(phase, passes, {.gradAccum = microbatches}, library);
    EXPECT_TRUE(llvm::succeeded(passes.run(parsed.module()))) << parsed.diagnostics();
  }

  codegen::gpu::GpuKernels library{codegen::gpu::GpuTarget{80}};
  test::ParsedModule parsed;
  mlir::DictionaryAttr plan;
};

LoadedModule compile(Step &step) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto object = std::make_unique<llvm::Module>("step", *context);
  codegen::CpuTarget host = codegen::CpuTarget::host();
  if (llvm::Error error = codegen::gpu::addEmulatedKernels(
          step.module(), codegen::gpu::GpuTarget{80}, host, *object))
    ADD_FAILURE() << llvm::toString(std::move(error));
  codegen::emitStepProgram(step.module(), "{}", "gradc_emulated_device", *object);
  return LoadedModule(
      std::move(object), std::move(context),
      {{"gradc_emulated_device", const_cast<GradcDeviceKind *>(&gradc_emulated_device)},
       {"gradc_launch", reinterpret_cast<void *>(&gradc_launch)},
       {"gradc_gemm", reinterpret_cast<void *>(&gradc_gemm)},
       {"gradc_begin_iteration", reinterpret_cast<void *>(&gradc_begin_iteration)}});
}

/// The bytes of a tensor of f32 or i32.
std::vector<std::byte> bytesOf(const HostTensor &tensor, bool isFloat) {
  std::vector<std::byte> bytes;
  for (double value : tensor.values) {
    auto real = static_cast<float>(value);
    auto integer = static_cast<int32_t>(value);
    auto *raw =
        isFloat ? reinterpret_cast<std::byte *>(&real) : reinterpret_cast<std::byte *>(&integer);
    bytes.insert(bytes.end(), raw, raw + 4);
  }
  return bytes;
}

/// The state's bytes after one run of train_step.
std::vector<std::byte> train(const Step &step, const GradcExecutable &executable,
                             rt::WarpOrder order) {
  std::vector<std::byte> state(step.bytes("state_bytes"));
  auto pool = rt::ThreadPool::create(1);
  EXPECT_TRUE(pool.ok());
  rt::EmulatedDevice device(**pool, order);
  expectOk(device.allocate({step.bytes("state_bytes"), step.bytes("arena_bytes"),
                            executable.constants, executable.constantBytes}));
  step.forSlots([&](const std::string &key, mlir::RankedTensorType type, int64_t offset) {
    if (auto found = step.inputs.find(key); found != step.inputs.end()) {
      std::vector<std::byte> bytes = bytesOf(found->second, type.getElementType().isF32());
      expectOk(device.write(GRADC_STATE, offset, bytes.data(), int64_t(bytes.size())));
    }
  });
  GradcContext context;
  context.device = &device;
  for (int64_t i = 0; i < executable.programCount; ++i)
    if (std::string(executable.programs[i].name) == "train_step")
      executable.programs[i].run(&context);
  expectOk(context.status);
  expectOk(device.read(GRADC_STATE, 0, state.data(), int64_t(state.size())));
  return state;
}

TEST(EmulatedProgram, TrainsAsTheInterpreterDoes) {
  Step step;
  LoadedModule object = compile(step);
  const auto *executable = static_cast<const GradcExecutable *>(object.symbol("gradc_executable"));
  ASSERT_NE(executable, nullptr);
  std::vector<std::byte> state = train(step, *executable, rt::WarpOrder::alternating);
  int compared = 0;
  step.forSlots([&](const std::string &key, mlir::RankedTensorType type, int64_t offset) {
    auto found = step.expected.find(key);
    if (found == step.expected.end())
      return;
    ++compared;
    HostTensor actual(type.getShape());
    for (int64_t i = 0; i < actual.size(); ++i) {
      float value;
      std::memcpy(&value, state.data() + offset + 4 * i, 4);
      actual[i] = value;
    }
    nn::Comparison comparison = nn::compareValues(actual, found->second, {.norm = 4e-6});
    EXPECT_TRUE(comparison.passed) << key << ": " << comparison.report;
  });
  EXPECT_EQ(compared, 4 * 3 + 3); // parameters with two moments each; loss, norm, valid labels
  for (rt::WarpOrder order : {rt::WarpOrder::ascending, rt::WarpOrder::descending})
    EXPECT_EQ(train(step, *executable, order), state); // to the bit
}

} // namespace
} // namespace gradc
