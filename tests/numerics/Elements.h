// Numbers as kernels find them in memory: elements of a buffer.
#pragma once

#include "ir/row/RowProgram.h"

#include <cstddef>
#include <vector>

namespace gradc::row {

/// Writes `value`, rounded to nearest even, as one element. An fp8 element gets its type's largest
/// number instead of larger ones, an i32 element the integer part.
void writeElement(Dtype dtype, std::byte *at, double value);
double readElement(Dtype dtype, const std::byte *at);

template <typename Number>
std::vector<std::byte> encode(Dtype dtype, const std::vector<Number> &numbers) {
  std::vector<std::byte> bytes(numbers.size() * byteSize(dtype));
  for (size_t i = 0; i < numbers.size(); ++i)
    writeElement(dtype, bytes.data() + i * byteSize(dtype), numbers[i]);
  return bytes;
}

template <typename Number>
std::vector<Number> decode(Dtype dtype, const std::vector<std::byte> &bytes) {
  std::vector<Number> numbers(bytes.size() / byteSize(dtype));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<Number>(readElement(dtype, bytes.data() + i * byteSize(dtype)));
  return numbers;
}

/// Most that rounding to the dtype changes a normal number by, as a share of it; 0 for i32.
double unitRoundoff(Dtype dtype);

} // namespace gradc::row
