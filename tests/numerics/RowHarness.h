// Runs row programs compiled and by reference, and compares.
#pragma once

#include "ir/row/Evaluate.h"
#include "tests/numerics/CompiledKernel.h"

#include <cstddef>
#include <random>

namespace gradc::row {

/// A buffer as a kernel sees it, between two guards that show whether anything beyond was written.
class GuardedBuffer {
public:
  GuardedBuffer(Dtype dtype, int64_t count);
  void set(const Array &values); ///< rounded to the dtype
  Array get() const;
  void *data() { return bytes.data() + guard; }
  bool intact() const;

private:
  static constexpr size_t guard = 256;
  Dtype dtype;
  size_t count;
  std::vector<std::byte> bytes;
};

/// A program compiled for a target.
class RowKernel {
public:
  RowKernel(const Program &program, const codegen::CpuTarget &target);
  explicit operator bool() const { return static_cast<bool>(kernel); }

  /// Runs all tasks in the given order (empty: 0, 1, …) on copies of `arrays` and returns the
  /// buffers' contents afterwards. `sameMemory` lists pairs (input, output) given one address.
  std::vector<Array> run(int64_t extent, const std::vector<Array> &arrays,
                         std::vector<int64_t> order = {},
                         const std::vector<std::pair<int, int>> &sameMemory = {}) const;

  const Program program;

private:
  codegen::CompiledKernel kernel;
};

/// Random numbers in [low, high] for each buffer, integers in i32 buffers; rounded to the dtypes.
std::vector<Array> randomArrays(const Program &program, int64_t extent, uint64_t seed,
                                double low = -2, double high = 2);

/// Allowed difference: |got - want| <= absolute + relative * |want|. Infinities and NaN must match.
struct Bound {
  double relative, absolute;
};

/// Fails the test, naming the first element that is out of bounds and the number of them.
void expectClose(const Array &got, const Array &want, Bound bound, const std::string &what);
/// Same bits; NaNs are equal.
void expectSame(const Array &got, const Array &want, const std::string &what);

/// Compiles `program` for each host target, and for a GPU that is emulated, runs it on `arrays` and
/// compares every buffer with the reference: bf16 and f16 buffers get one unit in their last place
/// more.
void checkAgainstReference(const Program &program, int64_t extent, const std::vector<Array> &arrays,
                           Bound bound);

} // namespace gradc::row
