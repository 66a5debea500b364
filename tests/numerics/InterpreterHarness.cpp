// Parsing for the tests that interpret functions.
#include "tests/numerics/InterpreterHarness.h"
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace gradc::nn;
using namespace gradc::test;

ParsedModule::ParsedModule(const std::string &text)
    : ownContext(std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED)) {
  ownContext->loadDialect<func::FuncDialect, gradc::nn::NnDialect>();
  ownContext->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  parsed = parseSourceString<ModuleOp>(text, ownContext.get());
}

ParsedModule::~ParsedModule() = default;

func::FuncOp ParsedModule::function(StringRef name) {
  return parsed->lookupSymbol<func::FuncOp>(name);
}

HostTensor gradc::test::tensorOf(ArrayRef<int64_t> shape, std::vector<double> values) {
  HostTensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = values[i % values.size()];
  return tensor;
}

/// Sum of the function's first result times weights.
static double weightedResult(func::FuncOp function, ArrayRef<HostTensor> arguments,
                             const HostTensor &weights) {
  auto results = interpret(function, arguments);
  EXPECT_TRUE(succeeded(results));
  if (failed(results))
    return std::nan("");
  double sum = 0;
  for (int64_t i = 0; i < weights.size(); ++i)
    sum += weights[i] * (*results)[0][i];
  return sum;
}

HostTensor gradc::test::centralDifferences(func::FuncOp function, SmallVector<HostTensor> arguments,
                                           unsigned argument, const HostTensor &weights) {
  constexpr double step = 1e-4; // error step² · f''' / 6, rounding 1e-16 / step
  HostTensor gradient(arguments[argument].shape);
  for (int64_t i = 0; i < gradient.size(); ++i) {
    double &x = arguments[argument][i], at = x;
    x = at + step;
    double above = weightedResult(function, arguments, weights);
    x = at - step;
    double below = weightedResult(function, arguments, weights);
    x = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}
