// Parsing for the tests that interpret functions.
#include "tests/numerics/InterpreterHarness.h"
#include "ir/Nn.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
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

gradc::nn::HostTensor gradc::test::tensorOf(ArrayRef<int64_t> shape, std::vector<double> values) {
  gradc::nn::HostTensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = values[i % values.size()];
  return tensor;
}
