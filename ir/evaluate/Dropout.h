// Which elements dropout keeps, for the references of the ops that drop.
#pragma once

#include "ir/HostTensor.h"
#include "ir/row/Philox.h"
#include "llvm/ADT/APFloat.h"

namespace gradc::nn {

struct DropoutMask {
  float rate; ///< rounded as kernels have it: numbers are compared with it
  double keptFactor;
  uint32_t seed, step;
  int64_t firstRow;

  /// `keys`: seed, step, first row and stream.
  DropoutMask(const llvm::APFloat &dropRate, llvm::ArrayRef<HostTensor> keys)
      : rate(static_cast<float>(dropRate.convertToDouble())),
        keptFactor(1 / (1 - dropRate.convertToDouble())),
        seed(word(keys[0]) + word(keys[3]) * row::philoxStreamStep), step(word(keys[1])),
        firstRow(static_cast<int64_t>(keys[2][0])) {}

  /// `value` as dropout leaves it at a global element index.
  double apply(double value, int64_t element) const {
    float number = row::philoxUniform(seed, step, 0, static_cast<uint64_t>(element));
    return number < rate ? 0 : value * keptFactor;
  }

private:
  static uint32_t word(const HostTensor &scalar) {
    return static_cast<uint32_t>(static_cast<int64_t>(scalar[0]));
  }
};

} // namespace gradc::nn
