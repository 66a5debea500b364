// See Transpose.h.
#include "codegen/cpu/Transpose.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
namespace gradc::codegen {

static Value shuffle(KernelBuilder &k, Value x, Value y, ArrayRef<int64_t> lanes) {
  return vector::ShuffleOp::create(k.builder(), k.location(), x, y, lanes);
}

/// x and y become the lower and the upper elements of both, in groups of `unit` elements and within
/// each 128 bits: what one instruction does.
static void interleave(KernelBuilder &k, Value &x, Value &y, int64_t unit) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < k.lanes(); ++lane) {
    int64_t quarter = lane / 4 * 4, place = lane % 4;
    bool second = place / unit % 2;
    int64_t source = quarter + place / (2 * unit) * unit + place % unit;
    source += second ? k.lanes() : 0;
    low.push_back(source);
    high.push_back(source + 2);
  }
  Value lower = shuffle(k, x, y, low);
  y = shuffle(k, x, y, high);
  x = lower;
}

/// Exchanges the odd blocks of x with the even ones of y.
static void exchange(KernelBuilder &k, Value &x, Value &y, int64_t block) {
  SmallVector<int64_t> upper, lower;
  for (int64_t lane = 0; lane < k.lanes(); ++lane) {
    bool odd = lane & block;
    upper.push_back(odd ? k.lanes() + lane - block : lane);
    lower.push_back(odd ? k.lanes() + lane : lane + block);
  }
  Value first = shuffle(k, x, y, upper);
  y = shuffle(k, x, y, lower);
  x = first;
}

void transposeSquare(KernelBuilder &k, SmallVectorImpl<Value> &rows) {
  for (int64_t i = 0; i < k.lanes(); i += 4) {
    interleave(k, rows[i], rows[i + 1], 1);
    interleave(k, rows[i + 2], rows[i + 3], 1);
    interleave(k, rows[i], rows[i + 2], 2);
    interleave(k, rows[i + 1], rows[i + 3], 2);
    std::swap(rows[i + 1], rows[i + 2]);
  }
  for (int64_t block = 4; block < k.lanes(); block *= 2)
    for (int64_t i = 0; i < k.lanes(); ++i)
      if (!(i & block))
        exchange(k, rows[i], rows[i + block], block);
}

} // namespace gradc::codegen
