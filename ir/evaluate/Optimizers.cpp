// Reference values of the optimizer updates.
#include "ir/Nn.h"

#include <cmath>

using namespace mlir;
using namespace gradc::nn;

LogicalResult AdamwOp::evaluate(ArrayRef<HostTensor> operands,
                                MutableArrayRef<HostTensor> results) {
  auto scalar = [&](int64_t operand) { return operands[operand][0]; };
  double scale = scalar(4), learningRate = scalar(5), beta1 = scalar(6), beta2 = scalar(7),
         eps = scalar(8), weightDecay = getDecay() ? scalar(9) : 0, correction1 = scalar(10),
         correction2 = scalar(11);
  for (int64_t i = 0; i < operands[0].size(); ++i) {
    double p = operands[0][i], g = operands[1][i] * scale;
    double m = beta1 * operands[2][i] + (1 - beta1) * g;
    double v = beta2 * operands[3][i] + (1 - beta2) * g * g;
    double update = (m / correction1) / (std::sqrt(v / correction2) + eps);
    results[0][i] = p - learningRate * weightDecay * p - learningRate * update;
    results[1][i] = m;
    results[2][i] = v;
  }
  return success();
}

LogicalResult SgdOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  auto scalar = [&](int64_t operand) { return operands[operand][0]; };
  double scale = scalar(3), learningRate = scalar(4), beta1 = scalar(5),
         weightDecay = getDecay() ? scalar(6) : 0;
  for (int64_t i = 0; i < operands[0].size(); ++i) {
    double p = operands[0][i], g = operands[1][i] * scale + weightDecay * p;
    double u = beta1 * operands[2][i] + g;
    results[0][i] = p - learningRate * u;
    results[1][i] = u;
  }
  return success();
}

LogicalResult LionOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  auto scalar = [&](int64_t operand) { return operands[operand][0]; };
  double scale = scalar(3), learningRate = scalar(4), beta1 = scalar(5), beta2 = scalar(6),
         weightDecay = getDecay() ? scalar(7) : 0;
  // 0 at 0; NaN stays NaN.
  auto sign = [](double x) { return x > 0 ? 1 : x < 0 ? -1 : x; };
  for (int64_t i = 0; i < operands[0].size(); ++i) {
    double p = operands[0][i], g = operands[1][i] * scale, m = operands[2][i];
    double direction = sign(beta1 * m + (1 - beta1) * g);
    results[0][i] = p - learningRate * (direction + weightDecay * p);
    results[1][i] = beta2 * m + (1 - beta2) * g;
  }
  return success();
}
