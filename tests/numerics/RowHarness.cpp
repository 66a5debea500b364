// Row programs compiled and by reference.
#include "tests/numerics/RowHarness.h"

#include "codegen/cpu/RowProgram.h"
#include "tests/numerics/Elements.h"
#include "tests/numerics/GpuRowKernel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

namespace gradc::row {

namespace {

const std::byte guardByte{0xa5};

} // namespace

GuardedBuffer::GuardedBuffer(Dtype dtype, int64_t count)
    : dtype(dtype), count(count), bytes(count * byteSize(dtype) + 2 * guard, guardByte) {}

void GuardedBuffer::set(const Array &values) {
  ASSERT_EQ(values.size(), count);
  for (size_t i = 0; i < count; ++i)
    writeElement(dtype, bytes.data() + guard + i * byteSize(dtype), values[i]);
}

Array GuardedBuffer::get() const {
  Array values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = readElement(dtype, bytes.data() + guard + i * byteSize(dtype));
  return values;
}

bool GuardedBuffer::intact() const {
  auto isGuard = [](std::byte byte) { return byte == guardByte; };
  return std::all_of(bytes.begin(), bytes.begin() + guard, isGuard) &&
         std::all_of(bytes.end() - guard, bytes.end(), isGuard);
}

RowKernel::RowKernel(const Program &program, const codegen::CpuTarget &target)
    : program(program),
      kernel(target, [&](mlir::OpBuilder &builder, mlir::ModuleOp module, llvm::StringRef name) {
        codegen::emitRowProgram(builder, module, program, name, target);
      }) {
  EXPECT_EQ(verify(program), "");
}

std::vector<Array> RowKernel::run(int64_t extent, const std::vector<Array> &arrays,
                                  std::vector<int64_t> order,
                                  const std::vector<std::pair<int, int>> &sameMemory) const {
  std::vector<GuardedBuffer> buffers;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    buffers.emplace_back(program.buffers[i].dtype, elementCount(program, i, extent));
    buffers[i].set(arrays[i]);
  }
  std::vector<void *> pointers;
  for (GuardedBuffer &buffer : buffers)
    pointers.push_back(buffer.data());
  for (auto [input, output] : sameMemory)
    pointers[output] = pointers[input];
  if (order.empty()) {
    order.resize(taskCount(program, extent));
    std::iota(order.begin(), order.end(), 0);
  }
  for (int64_t task : order)
    kernel.call(pointers, extent, task);

  std::vector<Array> results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_TRUE(buffers[i].intact()) << "buffer " << i << " was overrun";
    results.push_back(buffers[i].get());
  }
  for (auto [input, output] : sameMemory)
    results[output] = results[input];
  return results;
}

std::vector<Array> randomArrays(const Program &program, int64_t extent, uint64_t seed, double low,
                                double high) {
  std::mt19937_64 random(seed);
  std::vector<Array> arrays;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    Dtype dtype = program.buffers[i].dtype;
    Array array(elementCount(program, i, extent));
    for (double &value : array) {
      value = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
      value = dtype == Dtype::i32 ? std::floor(value) : roundTo(dtype, value);
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

static bool isClose(double got, double want, Bound bound) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got))
    return got == want;
  return std::fabs(got - want) <= bound.absolute + bound.relative * std::fabs(want);
}

void expectClose(const Array &got, const Array &want, Bound bound, const std::string &what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  size_t bad = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (!isClose(got[i], want[i], bound) && bad++ == 0)
      first = i;
  if (bad > 0)
    ADD_FAILURE() << what << ": " << bad << " of " << got.size() << " differ, first [" << first
                  << "]: got " << got[first] << ", want " << want[first];
}

void expectSame(const Array &got, const Array &want, const std::string &what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    bool bothNan = std::isnan(got[i]) && std::isnan(want[i]);
    if (!bothNan && std::bit_cast<uint64_t>(got[i]) != std::bit_cast<uint64_t>(want[i])) {
      ADD_FAILURE() << what << " [" << i << "]: got " << got[i] << ", want " << want[i];
      return;
    }
  }
}

void checkAgainstReference(const Program &program, int64_t extent, const std::vector<Array> &arrays,
                           Bound bound) {
  ASSERT_EQ(verify(program), "");
  std::vector<Array> want = arrays;
  evaluate(program, extent, want);
  auto check = [&](const std::vector<Array> &got, const std::string &device) {
    for (size_t i = 0; i < got.size(); ++i) {
      Bound allowed = bound;
      if (program.buffers[i].dtype == Dtype::bf16)
        allowed.relative += 0x1p-7;
      if (program.buffers[i].dtype == Dtype::f16)
        allowed.relative += 0x1p-10;
      expectClose(got[i], want[i], allowed,
                  device + ", columns " + std::to_string(program.columns) + ", extent " +
                      std::to_string(extent) + ", buffer " + std::to_string(i));
    }
  };
  for (const codegen::CpuTarget &target : codegen::hostTargets()) {
    RowKernel kernel(program, target);
    ASSERT_TRUE(kernel);
    check(kernel.run(extent, arrays), std::to_string(target.vectorBits) + " bits");
  }
  GpuRowKernel kernel(program);
  ASSERT_TRUE(kernel);
  check(kernel.run(extent, arrays), "emulated GPU");
}

} // namespace gradc::row
