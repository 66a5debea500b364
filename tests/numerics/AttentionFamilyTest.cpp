// The attention ops as the kernel library emits them, against the ops' interpretation: which
// operand is which buffer, and what the op's types and attributes make of the kernel.
#include "codegen/cpu/KernelFamilies.h"
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "tests/numerics/AttentionHarness.h"
#include "tests/numerics/InterpreterHarness.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <list>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using nn::HostTensor;
using row::Dtype;

const char *const header = R"(
func.func @f(%q: tensor<14x16x$>, %k: tensor<14x8x$>, %v: tensor<14x8x$>,
)";
const char *const forwardText = R"(
    %first: tensor<14xi32>, %seed: tensor<i32>, %step: tensor<i32>, %row: tensor<i32>, %stream: tensor<i32>)
    -> (tensor<14x16x$>, tensor<2x4x7xf32>) {
  %o, %lse = nn.attention %q, %k, %v first_key(%first : tensor<14xi32>) batch 2 heads 4
      kv_heads 2 scale 0.5 causal window 5 dropout 0.25 random(%seed, %step, %row, %stream)
      : tensor<14x16x$>, tensor<14x8x$>, tensor<14x8x$> -> tensor<14x16x$>, tensor<2x4x7xf32>
  return %o, %lse : tensor<14x16x$>, tensor<2x4x7xf32>
})";
const char *const backwardText = R"(
    %o: tensor<14x16x$>, %lse: tensor<2x4x7xf32>, %g: tensor<14x16x$>,
    %first: tensor<14xi32>, %seed: tensor<i32>, %step: tensor<i32>, %row: tensor<i32>, %stream: tensor<i32>)
    -> (tensor<14x16x$>, tensor<14x8x$>, tensor<14x8x$>) {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g first_key(%first) batch 2 heads 4
      kv_heads 2 scale 0.5 causal window 5 dropout 0.25 random(%seed, %step, %row, %stream)
      : (tensor<14x16x$>, tensor<14x8x$>, tensor<14x8x$>, tensor<14x16x$>, tensor<2x4x7xf32>,
         tensor<14x16x$>, tensor<14xi32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
      -> (tensor<14x16x$>, tensor<14x8x$>, tensor<14x8x$>)
  return %dq, %dk, %dv : tensor<14x16x$>, tensor<14x8x$>, tensor<14x8x$>
})";

/// A function of one op, `$` standing for the element type.
std::string textOf(const char *body, Dtype dtype) {
  const char *names[] = {"f32", "bf16", "f16"};
  std::string text;
  for (char c : std::string(header) + body)
    text += c == '$' ? names[static_cast<int>(dtype)] : std::string(1, c);
  return text;
}

/// Emits the function's op as the only kernel of an exec module.
void emitOp(const std::string &text, mlir::ModuleOp module, llvm::StringRef name,
            const CpuTarget &target, KernelGeometry &geometry) {
  mlir::MLIRContext *context = module.getContext();
  context->loadDialect<nn::NnDialect, exec::ExecDialect, mlir::func::FuncDialect>();
  auto source = mlir::parseSourceString<mlir::ModuleOp>(text, context);
  ASSERT_TRUE(source);
  auto function = source->lookupSymbol<mlir::func::FuncOp>("f");
  mlir::Operation *op = &function.getBody().front().front();
  llvm::SmallVector<int64_t> strides(op->getNumOperands() + op->getNumResults(), 0);
  mlir::OpBuilder builder(context);
  builder.setInsertionPointToEnd(source->getBody());
  auto kernel =
      exec::KernelOp::create(builder, op->getLoc(), name, strides, llvm::ArrayRef<int64_t>(), 0,
                             /*reason=*/nullptr);
  mlir::Block *body = builder.createBlock(&kernel.getBody());
  for (mlir::Value operand : op->getOperands())
    body->addArgument(operand.getType(), operand.getLoc());
  builder.clone(*op)->setOperands(body->getArguments());
  auto made = CpuKernelLibrary(target).geometry(op, {strides, {}});
  auto kernels = emitKernels(*source, target);
  ASSERT_TRUE(succeeded(made) && succeeded(kernels));
  geometry = *made;
  auto &emitted = (*kernels)->getBody()->getOperations();
  module.getBody()->getOperations().splice(module.getBody()->end(), emitted);
}

Dtype dtypeOf(mlir::Type type) {
  return nn::rowDtype(mlir::cast<mlir::RankedTensorType>(type).getElementType());
}

/// Runs the op's kernel on the arguments; the results.
std::vector<row::Array> runKernel(const std::string &text, mlir::FunctionType type,
                                  llvm::ArrayRef<HostTensor> arguments) {
  KernelGeometry geometry{};
  CpuTarget target = CpuTarget::host();
  CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
    emitOp(text, m, name, target, geometry);
  });
  std::list<row::GuardedBuffer> buffers;
  std::vector<void *> addresses;
  for (auto [argument, ofType] : llvm::zip_equal(arguments, type.getInputs())) {
    buffers.emplace_back(dtypeOf(ofType), argument.size()).set(argument.values);
    addresses.push_back(buffers.back().data());
  }
  for (mlir::Type result : type.getResults()) {
    buffers.emplace_back(dtypeOf(result), nn::zerosOf(result).size());
    addresses.push_back(buffers.back().data());
  }
  std::vector<row::Array> results;
  if (!kernel)
    return results;
  for (int64_t task = 0; task < geometry.tasks; ++task)
    kernel.call(addresses, geometry.extent, task);
  for (row::GuardedBuffer &buffer : buffers) {
    EXPECT_TRUE(buffer.intact());
    results.push_back(buffer.get());
  }
  results.erase(results.begin(), results.begin() + static_cast<int64_t>(arguments.size()));
  return results;
}

class AttentionFamily : public testing::TestWithParam<Dtype> {
protected:
  /// Random numbers for the types, rounded to them; scalars are seed, step and first row, integers
  /// are first keys.
  static std::vector<HostTensor> randomArguments(mlir::FunctionType type) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    std::vector<HostTensor> arguments;
    double scalar = 11;
    for (mlir::Type input : type.getInputs()) {
      HostTensor &tensor = arguments.emplace_back(nn::zerosOf(input));
      for (double &x : tensor.values)
        x = tensor.shape.empty()           ? scalar++
            : dtypeOf(input) == Dtype::i32 ? std::floor(2 + normal(random))
                                           : row::roundTo(dtypeOf(input), normal(random));
    }
    return arguments;
  }
  /// Compares the kernel with the interpretation; the kernel's results.
  static std::vector<row::Array> compare(const std::string &text,
                                         llvm::ArrayRef<HostTensor> arguments, Dtype dtype) {
    test::ParsedModule parsed(text);
    EXPECT_TRUE(parsed.ok()) << parsed.diagnostics();
    auto want = nn::interpret(parsed.function(), arguments);
    EXPECT_TRUE(succeeded(want));
    auto got = runKernel(text, parsed.function().getFunctionType(), arguments);
    EXPECT_EQ(got.size(), want->size());
    // Half a unit in the last place, and what f32 arithmetic adds.
    double half = dtype == Dtype::bf16 ? 0x1p-8 : dtype == Dtype::f16 ? 0x1p-11 : 0;
    for (size_t i = 0; i < got.size(); ++i)
      row::expectClose(got[i], (*want)[i].values, {half + 1e-5, 1e-5},
                       "result " + std::to_string(i));
    return got;
  }
  static mlir::FunctionType typeOf(test::ParsedModule &parsed) {
    return parsed.function().getFunctionType();
  }
};

TEST_P(AttentionFamily, KernelsAreTheOps) {
  std::string forward = textOf(forwardText, GetParam());
  std::string backward = textOf(backwardText, GetParam());
  test::ParsedModule parsedForward(forward), parsedBackward(backward);
  ASSERT_TRUE(parsedForward.ok() && parsedBackward.ok())
      << parsedForward.diagnostics() << parsedBackward.diagnostics();
  auto inputs = randomArguments(typeOf(parsedForward));
  auto results = compare(forward, inputs, GetParam());
  ASSERT_EQ(results.size(), 2u);

  auto gradientInputs = randomArguments(typeOf(parsedBackward));
  std::copy_n(inputs.begin(), 3, gradientInputs.begin());
  gradientInputs[3].values = results[0];
  gradientInputs[4].values = results[1];
  gradientInputs[6] = inputs[3]; // the first keys
  EXPECT_EQ(compare(backward, gradientInputs, GetParam()).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, AttentionFamily,
                         testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const testing::TestParamInfo<Dtype> &info) {
                           return info.param == Dtype::f32    ? "f32"
                                  : info.param == Dtype::bf16 ? "bf16"
                                                              : "f16";
                         });

} // namespace
