// See Programs.h.
#include "tests/numerics/Programs.h"
#include "ir/Interpreter.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <gtest/gtest.h>

using namespace gradc::nn;

namespace gradc::test {

static mlir::DictionaryAttr argumentSlot(mlir::func::FuncOp program, unsigned argument) {
  return program.getArgAttrOfType<mlir::DictionaryAttr>(argument, "nn.slot");
}

std::string slotName(mlir::func::FuncOp program, mlir::DictionaryAttr slot) {
  auto text = [&](const char *key) {
    auto attribute = slot.getAs<mlir::StringAttr>(key);
    return attribute ? attribute.getValue() : llvm::StringRef();
  };
  llvm::StringRef name = text("name"), part = text("slot");
  if (name.consume_front(program.getSymName()))
    name.consume_front(".");
  std::string full = (text("role") == "low_parameter" ? "low/" : "") + name.str();
  return part.empty() ? full : full + "/" + part.str();
}

Named randomSlots(mlir::func::FuncOp program, uint64_t seed) {
  Named values;
  for (auto [i, tensor] : llvm::enumerate(randomArguments(program, seed)))
    values[slotName(program, argumentSlot(program, i))] = tensor;
  return values;
}

Named runProgram(mlir::func::FuncOp program, const Named &values) {
  llvm::SmallVector<HostTensor> arguments;
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    auto found = values.find(slotName(program, argumentSlot(program, i)));
    if (found == values.end()) {
      ADD_FAILURE() << "no value for " << slotName(program, argumentSlot(program, i));
      return {};
    }
    arguments.push_back(found->second);
  }
  auto results = interpret(program, arguments);
  EXPECT_TRUE(llvm::succeeded(results)) << "@" << program.getSymName().str();
  Named named;
  if (llvm::succeeded(results))
    for (auto [i, result] : llvm::enumerate(*results))
      named[slotName(program, program.getResultAttrOfType<mlir::DictionaryAttr>(i, "nn.slot"))] =
          result;
  return named;
}

} // namespace gradc::test
