// Reference values of the cluster op: those of its body.
#include "ir/Interpreter.h"
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult FusedOp::evaluate(ArrayRef<HostTensor> operands,
                                MutableArrayRef<HostTensor> results) {
  FailureOr<SmallVector<HostTensor>> values = interpretRegion(getBody(), operands);
  if (failed(values))
    return failure();
  for (auto [result, value] : llvm::zip_equal(results, *values))
    result = std::move(value);
  return success();
}
