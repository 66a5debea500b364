// The kernel of nn.documents against the op's interpretation: separators anywhere, rows that end
// and begin with them, rows without one.
#include "codegen/cpu/Documents.h"

#include "ir/Interpreter.h"
#include "tests/numerics/CompiledKernel.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using nn::HostTensor;

/// First keys and positions by the interpreter.
std::vector<HostTensor> interpreted(const DocumentsSpec &spec, const std::vector<int32_t> &tokens) {
  std::string type = "tensor<" + std::to_string(tokens.size()) + "xi32>";
  std::string text = "func.func @f(%t: " + type + ") -> (" + type + ", " + type +
                     ") { %f, %p = nn.documents %t seq " + std::to_string(spec.seq) +
                     " separator " + std::to_string(spec.separator) + " : " + type +
                     " return %f, %p : " + type + ", " + type + " }";
  test::ParsedModule parsed(text);
  EXPECT_TRUE(parsed.ok()) << parsed.diagnostics();
  HostTensor argument({static_cast<int64_t>(tokens.size())});
  argument.values.assign(tokens.begin(), tokens.end());
  auto results = nn::interpret(parsed.function(), {argument});
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? std::vector<HostTensor>(results->begin(), results->end())
                            : std::vector<HostTensor>();
}

void check(const DocumentsSpec &spec, std::vector<int32_t> tokens) {
  std::vector<HostTensor> want = interpreted(spec, tokens);
  ASSERT_EQ(want.size(), 2u);
  CpuTarget target = CpuTarget::host();
  CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
    emitDocuments(m, name, spec, target);
  });
  ASSERT_TRUE(kernel);
  constexpr int32_t untouched = -77;
  size_t count = tokens.size();
  std::vector<int32_t> firstKeys(count + 1, untouched), positions(count + 1, untouched);
  auto extent = static_cast<int64_t>(count);
  for (int64_t task = taskCount(spec, extent); task-- > 0;)
    kernel.call({tokens.data(), firstKeys.data(), positions.data()}, extent, task);
  for (size_t n = 0; n < count; ++n) {
    ASSERT_EQ(firstKeys[n], want[0].values[n]) << "token " << n;
    ASSERT_EQ(positions[n], want[1].values[n]) << "token " << n;
  }
  EXPECT_EQ(firstKeys[count], untouched);
  EXPECT_EQ(positions[count], untouched);
}

TEST(Documents, RandomTokens) {
  std::mt19937 random(4);
  for (int vocab : {2, 5, 50}) {
    std::vector<int32_t> tokens(3 * 65);
    for (int32_t &token : tokens)
      token = static_cast<int32_t>(random() % vocab);
    check({65, 1}, tokens);
  }
}

TEST(Documents, RowsOfSeparatorsAndRowsWithoutOne) {
  check({4, 9}, {9, 9, 9, 9, 1, 2, 3, 4, 9, 1, 2, 9, 1, 2, 3, 9});
  check({1, 0}, {0, 1, 0});
  check({3, 2147483647}, {2147483647, 1, 2147483647});
}

} // namespace
