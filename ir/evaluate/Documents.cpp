// Reference values of where documents begin.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult DocumentsOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  const HostTensor &tokens = operands[0];
  int64_t seq = getSeq();
  auto separator = static_cast<double>(static_cast<int64_t>(getSeparator()));
  for (int64_t n = 0; n < tokens.size(); ++n) {
    int64_t first = n % seq;
    while (first > 0 && tokens[n - n % seq + first - 1] != separator)
      --first;
    results[0][n] = static_cast<double>(first);
    results[1][n] = static_cast<double>(n % seq - first);
  }
  return success();
}
