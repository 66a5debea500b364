// Comparison of values: a pass for NaN, one for the largest errors.
#include "ir/Compare.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace gradc::nn;

namespace {

std::string shapeText(const HostTensor &tensor) {
  return "[" +
         llvm::join(llvm::map_range(tensor.shape, [](int64_t d) { return std::to_string(d); }),
                    ", ") +
         "]";
}

/// "[1, 2]" for a flat index.
std::string indexText(const HostTensor &tensor, int64_t flat) {
  llvm::SmallVector<std::string> parts;
  for (int64_t dim : llvm::reverse(tensor.shape)) {
    parts.push_back(std::to_string(flat % dim));
    flat /= dim;
  }
  std::reverse(parts.begin(), parts.end());
  return "[" + llvm::join(parts, ", ") + "]";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// "expected 1 at [0, 3], got: 2"
std::string elementText(const HostTensor &actual, const HostTensor &expected, int64_t i) {
  return "expected " + number(expected[i]) + " at " + indexText(expected, i) +
         ", got: " + number(actual[i]);
}

/// The difference of two numbers that are not NaN; equal infinities differ by 0.
double difference(double a, double b) { return a == b ? 0 : std::abs(a - b); }

double ratio(double error, double magnitude) {
  if (error == 0)
    return 0;
  // Also for an infinite error beside an infinite magnitude, where the quotient would be NaN.
  return magnitude == 0 || std::isinf(error) ? std::numeric_limits<double>::infinity()
                                             : error / magnitude;
}

} // namespace

Comparison gradc::nn::compareValues(const HostTensor &actual, const HostTensor &expected,
                                    const Tolerances &tolerances) {
  Comparison result;
  if (actual.shape != expected.shape) {
    result.report = "expected shape " + shapeText(expected) + ", got: " + shapeText(actual);
    return result;
  }
  double largest = 0, largestError = -1;
  int64_t firstBeyond = -1;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(actual[i]) || std::isnan(expected[i])) {
      result.worst = i;
      result.normError = result.elementwiseError = std::numeric_limits<double>::quiet_NaN();
      result.report = "not a number: " + elementText(actual, expected, i);
      return result;
    }
    double error = difference(actual[i], expected[i]);
    double relative = ratio(error, std::abs(expected[i]));
    largest = std::max(largest, std::isinf(expected[i]) ? 0 : std::abs(expected[i]));
    result.elementwiseError = std::max(result.elementwiseError, relative);
    if (error > largestError) {
      largestError = error;
      result.worst = i;
    }
    if (firstBeyond < 0 && error > tolerances.absolute && relative > tolerances.elementwise)
      firstBeyond = i;
  }
  result.normError = ratio(std::max(largestError, 0.0), largest);
  bool normBeyond = largestError > tolerances.absolute && result.normError > tolerances.norm;
  result.passed = !normBeyond && firstBeyond < 0;
  if (result.passed)
    return result;
  int64_t at = normBeyond ? result.worst : firstBeyond;
  result.report =
      elementText(actual, expected, at) + " (relative error " +
      llvm::formatv("{0:e2} by norm, {1:e2} by element)", result.normError, result.elementwiseError)
          .str();
  return result;
}
