// See Elements.h. Narrow types go through LLVM's software floats.
#include "tests/numerics/Elements.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>

namespace gradc::row {

namespace {

const llvm::fltSemantics &narrowFormat(Dtype dtype) {
  switch (dtype) {
  case Dtype::bf16:
    return llvm::APFloat::BFloat();
  case Dtype::f8e4m3:
    return llvm::APFloat::Float8E4M3FN();
  case Dtype::f8e5m2:
    return llvm::APFloat::Float8E5M2();
  default:
    return llvm::APFloat::IEEEhalf();
  }
}

uint16_t encodeNarrow(Dtype dtype, double value) {
  llvm::APFloat number(value);
  bool lossy;
  number.convert(narrowFormat(dtype), llvm::APFloat::rmNearestTiesToEven, &lossy);
  if (byteSize(dtype) == 1 && !number.isFinite() && value == value)
    number = llvm::APFloat::getLargest(narrowFormat(dtype), value < 0);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

double decodeNarrow(Dtype dtype, uint16_t bits) {
  unsigned width = static_cast<unsigned>(byteSize(dtype)) * 8;
  return llvm::APFloat(narrowFormat(dtype), llvm::APInt(width, bits)).convertToDouble();
}

template <typename T> void put(std::byte *at, T value) { std::memcpy(at, &value, sizeof value); }
template <typename T> T take(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

} // namespace

void writeElement(Dtype dtype, std::byte *at, double value) {
  if (dtype == Dtype::f32)
    put(at, static_cast<float>(value));
  else if (dtype == Dtype::i32)
    put(at, static_cast<int32_t>(value));
  else if (byteSize(dtype) == 1)
    put(at, static_cast<uint8_t>(encodeNarrow(dtype, value)));
  else
    put(at, encodeNarrow(dtype, value));
}

double readElement(Dtype dtype, const std::byte *at) {
  if (dtype == Dtype::f32)
    return take<float>(at);
  if (dtype == Dtype::i32)
    return take<int32_t>(at);
  if (byteSize(dtype) == 1)
    return decodeNarrow(dtype, take<uint8_t>(at));
  return decodeNarrow(dtype, take<uint16_t>(at));
}

double unitRoundoff(Dtype dtype) {
  switch (dtype) {
  case Dtype::f32:
    return 0x1p-24;
  case Dtype::bf16:
    return 0x1p-8;
  case Dtype::f16:
    return 0x1p-11;
  case Dtype::f8e4m3:
    return 0x1p-4;
  case Dtype::f8e5m2:
    return 0x1p-3;
  case Dtype::i32:
    return 0;
  }
  return 0;
}

} // namespace gradc::row
