// See WarpRandom.h.
#include "codegen/gpu/WarpRandom.h"

#include "ir/row/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

class WarpRandom {
public:
  WarpRandom(BlockPrinter &printer, const RandomStream &stream, Value first)
      : k(printer), first(first), group(row::philoxGroup / k.lanes()),
        counters(row::philoxLanes / group), few(k.builder(), k.location(), {.lanes = counters}),
        words(makeWords(stream)) {}

  Value emit() {
    Value word = k.remainder(k.divide(first, row::philoxLanes), wordCount);
    Value source = k.add(k.roundDown(k.remainder(k.thread(), warpThreads), group),
                         k.remainder(first, row::philoxLanes));
    SmallVector<Value> numbers;
    for (int64_t lane = 0; lane < k.lanes(); ++lane)
      numbers.push_back(wordOf(lane, k.add(source, lane / counters), word));
    Value vector =
        vector::FromElementsOp::create(k.builder(), k.location(), k.v.vectorOf(k.v.i32), numbers);
    return emitFraction(k.v, vector);
  }

private:
  static constexpr int64_t wordCount = 4; ///< of a counter

  /// All words of this thread's counters: those of its place among the threads of a group.
  std::array<Value, 4> makeWords(const RandomStream &stream) {
    Value start = k.add(k.mul(k.divide(first, row::philoxGroup), row::philoxLanes),
                        k.mul(k.remainder(k.thread(), group), counters));
    Value steps =
        arith::ExtUIOp::create(k.builder(), k.location(), few.vectorOf(few.i64), few.iota());
    return emitPhiloxWords(few, stream, k.add(few.splat(start), steps));
  }

  /// What an element takes: word number `word`, which is the same for all elements of a vector, of
  /// a counter of thread `source`. A vector of all eight lanes begins at the first counter.
  Value wordOf(int64_t lane, Value source, Value word) {
    OpBuilder &b = k.builder();
    Value thread = arith::TruncIOp::create(b, k.location(), k.v.i32, source);
    Value result;
    for (int64_t w = 0; w < wordCount; ++w) {
      Value own =
          vector::ExtractOp::create(b, k.location(), words[w], ArrayRef<int64_t>{lane % counters});
      Value x = k.ofThread(own, thread);
      result = result ? k.select(k.equal(word, k.index(w)), x, result) : x;
    }
    return result;
  }

  BlockPrinter &k;
  Value first;
  int64_t group;    ///< threads that share a group of elements
  int64_t counters; ///< of a thread
  Vectors few;      ///< of them
  std::array<Value, 4> words;
};

} // namespace

UniformVector uniformOfWarp(BlockPrinter &printer) {
  if (printer.lanes() != 4 && printer.lanes() != 8)
    return {};
  return [&printer](const RandomStream &stream, Value first) {
    return WarpRandom(printer, stream, first).emit();
  };
}

} // namespace gradc::codegen::gpu
