// See LowCopies.h.
#include "passes/LowCopies.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

namespace {

CastOp castOf(Value parameter) {
  for (Operation *user : parameter.getUsers())
    if (auto cast = dyn_cast<CastOp>(user))
      return cast;
  return {};
}

} // namespace

SmallVector<LowCopy> separateLowCopies(ArrayRef<func::FuncOp> functions, unsigned parameters) {
  SmallVector<LowCopy> copies;
  for (unsigned i = 0; i < parameters; ++i)
    for (func::FuncOp function : functions)
      if (CastOp cast = castOf(function.getArgument(i))) {
        copies.push_back({i, mlir::cast<RankedTensorType>(cast.getType())});
        break;
      }
  for (func::FuncOp function : functions)
    for (auto [i, copy] : llvm::enumerate(copies)) {
      unsigned position = parameters + i;
      (void)function.insertArgument(position, copy.type, {}, function.getLoc());
      while (CastOp cast = castOf(function.getArgument(copy.parameter))) {
        cast.replaceAllUsesWith(function.getArgument(position));
        cast.erase();
      }
    }
  return copies;
}

} // namespace gradc
