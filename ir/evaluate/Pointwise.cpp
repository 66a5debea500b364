// Reference values of the pointwise ops.
#include "ir/Nn.h"
#include "ir/evaluate/Broadcast.h"
#include "ir/evaluate/Dropout.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace gradc::nn;

namespace {

template <typename Function>
LogicalResult unary(ArrayRef<HostTensor> operands, HostTensor &result, Function f) {
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = f(operands[0][i]);
  return success();
}

template <typename Function>
LogicalResult binary(ArrayRef<HostTensor> operands, HostTensor &result, Function f) {
  int64_t rows = result.rows(), columns = result.columns();
  Broadcast rhs(operands[1], rows, columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[r * columns + c] = f(operands[0][r * columns + c], rhs(r, c));
  return success();
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double normalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normalDensity(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

/// The argument of tanh in GELU's tanh form, √(2/π)·(x + 0.044715·x³), and its derivative.
double geluArgument(double x) {
  return std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
}
double geluArgumentDerivative(double x) {
  return std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (1 + 3 * 0.044715 * x * x);
}

double activation(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::Gelu:
    return x * normalCdf(x);
  case ActivationKind::GeluTanh:
    return 0.5 * x * (1 + std::tanh(geluArgument(x)));
  case ActivationKind::Silu:
    return x * sigmoid(x);
  case ActivationKind::Relu:
    return x <= 0 ? 0 : x; // keeps NaN
  }
  llvm_unreachable("every activation has a value");
}

double activationDerivative(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::Gelu:
    return normalCdf(x) + x * normalDensity(x);
  case ActivationKind::GeluTanh: {
    double t = std::tanh(geluArgument(x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * geluArgumentDerivative(x);
  }
  case ActivationKind::Silu: {
    double s = sigmoid(x);
    return s + x * s * (1 - s);
  }
  case ActivationKind::Relu:
    return x <= 0 ? 0 : 1;
  }
  llvm_unreachable("every activation has a derivative");
}

} // namespace

LogicalResult AddOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0], [](double x, double y) { return x + y; });
}

LogicalResult SubOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0], [](double x, double y) { return x - y; });
}

LogicalResult MulOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0], [](double x, double y) { return x * y; });
}

LogicalResult DivOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0], [](double x, double y) { return x / y; });
}

LogicalResult NegOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return -x; });
}

LogicalResult ExpOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return std::exp(x); });
}

LogicalResult LogOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return std::log(x); });
}

LogicalResult SqrtOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return std::sqrt(x); });
}

LogicalResult TanhOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return std::tanh(x); });
}

LogicalResult ScaleOp::evaluate(ArrayRef<HostTensor> operands,
                                MutableArrayRef<HostTensor> results) {
  double factor = getFactor().convertToDouble();
  return unary(operands, results[0], [factor](double x) { return factor * x; });
}

LogicalResult ActivationOp::evaluate(ArrayRef<HostTensor> operands,
                                     MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [kind = getKind()](double x) { return activation(kind, x); });
}

LogicalResult ActivationGradOp::evaluate(ArrayRef<HostTensor> operands,
                                         MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0], [kind = getKind()](double gradient, double x) {
    return gradient * activationDerivative(kind, x);
  });
}

// Values are f64 here whatever their type: a cast loses nothing, and what it costs in accuracy is
// measured on compiled code.
LogicalResult CastOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return unary(operands, results[0], [](double x) { return x; });
}

LogicalResult DropoutOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  DropoutMask mask(getRate(), operands.drop_front());
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = mask.apply(operands[0][i], mask.firstRow * result.columns() + i);
  return success();
}

LogicalResult BroadcastOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  Broadcast input(operands[0], result.rows(), result.columns());
  for (int64_t r = 0; r < result.rows(); ++r)
    for (int64_t c = 0; c < result.columns(); ++c)
      result[r * result.columns() + c] = input(r, c);
  return success();
}

LogicalResult ClipCoefficientOp::evaluate(ArrayRef<HostTensor> operands,
                                          MutableArrayRef<HostTensor> results) {
  double norm = operands[0][0], limit = operands[1][0];
  if (!std::isfinite(norm))
    results[0][0] = std::numeric_limits<double>::quiet_NaN();
  else
    results[0][0] = limit == 0 ? 1 : std::min(1.0, limit / (norm + 1e-6));
  return success();
}

LogicalResult MaximumOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  return binary(operands, results[0],
                [](double x, double y) { return std::isnan(x) || x > y ? x : y; });
}

LogicalResult SelectFiniteOp::evaluate(ArrayRef<HostTensor> operands,
                                       MutableArrayRef<HostTensor> results) {
  results[0].values = operands[std::isfinite(operands[0][0]) ? 1 : 2].values;
  return success();
}

LogicalResult ConstantOp::evaluate(ArrayRef<HostTensor>, MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  ElementsAttr elements = getValue();
  if (auto floats = elements.tryGetValues<APFloat>()) {
    for (auto [i, value] : llvm::enumerate(*floats))
      result.values[i] = value.convertToDouble();
    return success();
  }
  if (auto integers = elements.tryGetValues<APInt>()) {
    for (auto [i, value] : llvm::enumerate(*integers))
      result.values[i] = static_cast<double>(value.getSExtValue());
    return success();
  }
  return emitOpError("has no values that can be read");
}
