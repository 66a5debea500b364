// See AttentionDropout.h.
#include "codegen/gpu/AttentionDropout.h"

#include "ir/row/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

/// That a thread computes at a time, of elements in neighbouring columns. Four would spill where
/// heads are wide: their words and rounds stand beside all of the block's sums.
constexpr int64_t counters = 2;
constexpr int64_t bitsOfFragment = 4;

} // namespace

AttentionDropout::AttentionDropout(Emit &e, const Place &place, const AttentionSpec &spec,
                                   ArrayRef<Value> keys)
    : e(e), place(place), spec(spec), keys(keys) {}

void AttentionDropout::openHead(Val batch, Val head) {
  // As nn.dropout has it: uses of one seed differ in their streams.
  auto key = [&](size_t i) { return e.load(e.i32(), e.of(keys[i]), 4); };
  Val seed = key(0) + key(3) * static_cast<int32_t>(row::philoxStreamStep);
  stream = {seed.v, key(1).v, /*stream=*/0};
  Val before = e.widen(key(2)) * spec.heads; // rows of the sequences before the launch's
  firstRow = before + e.widen((batch * spec.heads + head) * spec.seq);
}

bool AttentionDropout::wholeGroups() const { return spec.seq % row::philoxGroup == 0; }

/// Its global number, i64.
Val AttentionDropout::element(Val query, Val key) const {
  return (firstRow + e.widen(query)) * spec.seq + e.widen(key);
}

AttentionDropout::Words AttentionDropout::wordsOf(ArrayRef<Val> elements) const {
  SmallVector<Value> numbers;
  for (Val x : elements)
    numbers.push_back(((x / row::philoxGroup) * row::philoxLanes + x % row::philoxLanes).v);
  Vectors few(e.builder(), e.location(), {.lanes = counters});
  Value vector =
      vector::FromElementsOp::create(e.builder(), e.location(), few.vectorOf(few.i64), numbers);
  Words words;
  for (auto [to, from] : llvm::zip_equal(words, emitPhiloxWords(few, stream, vector)))
    to = e.of(from);
  return words;
}

static Val wordOf(Emit &e, Val words, int64_t counter) {
  return e.of(vector::ExtractOp::create(e.builder(), e.location(), words.v, counter));
}

/// Word `word` of a counter's four, or the one two further where bit 4 of `low`, the number of a
/// key in its group, is set.
Val AttentionDropout::wordInGroup(const Words &words, int64_t counter, int64_t word,
                                  Val low) const {
  Val isUpper = e.equal(low & 16, 16);
  return e.select(isUpper, wordOf(e, words[word + 2], counter), wordOf(e, words[word], counter));
}

Val AttentionDropout::ownWord(const Words &words, int64_t counter, Val element) const {
  Val which = e.narrow(element / row::philoxLanes) & 3, word = wordOf(e, words[3], counter);
  for (int64_t w = 0; w < 3; ++w)
    word = e.select(e.equal(which, w), wordOf(e, words[w], counter), word);
  return word;
}

/// That bit where a word keeps its weight: the number that it stands for is not below the rate.
Val AttentionDropout::bit(Val word, int64_t place) const {
  // Both are multiples of 2^-24 once the rate is rounded up to one, which changes no comparison.
  auto rate = static_cast<int64_t>(std::ceil(std::ldexp(static_cast<float>(spec.dropout), 24)));
  Val dropped = e.lessUnsigned(word >> 8, e.number(rate));
  return e.select(dropped, e.number(0), e.number(static_cast<int32_t>(uint32_t{1} << place)));
}

/// The bits of all steps, each where it says. A loop: ten rounds are long code.
Val AttentionDropout::collect(int64_t steps, function_ref<Bits(Val step)> ofStep) const {
  Val all = e.number(0);
  e.loop(e.number(0), e.number(steps), {&all}, [&](Val step) {
    Bits found = ofStep(step);
    all = all | (found.bits << found.place);
  });
  return all;
}

Val AttentionDropout::keptOfQueries(Val row, Val column, int64_t columns) {
  Val query = row + place.quad, key = column + place.member * 2;
  // The elements of a fragment, a row at a time, and others whose words the same counters have.
  int64_t fragments = wholeGroups() ? std::min<int64_t>(4, columns / fragmentColumns) : 1;
  int64_t steps = columns / fragmentColumns / fragments;
  return collect(2 * steps, [&](Val step) -> Bits {
    Val n = step / 2, h = step % 2;
    Val at = key + n * (fragments * fragmentColumns);
    std::array<Val, counters> elements{element(query + h * 8, at), element(query + h * 8, at + 1)};
    Words words = wordsOf(elements);
    Val bits = e.number(0);
    for (int64_t fragment = 0; fragment < fragments; ++fragment)
      for (int64_t p = 0; p < counters; ++p) {
        Val word = !wholeGroups()   ? ownWord(words, p, elements[p])
                   : fragments == 4 ? wordOf(e, words[fragment], p)
                                    : wordInGroup(words, p, fragment, column);
        bits = bits | bit(word, bitsOfFragment * fragment + p);
      }
    return {bits, n * (fragments * bitsOfFragment) + h * 2};
  });
}

Val AttentionDropout::keptOfKeys(Val row, Val column, int64_t columns) {
  Val key = row + place.quad, query = column + place.member * 2;
  int64_t fragments = columns / fragmentColumns;
  // A fragment's queries with the key of the upper half, whose counters have the lower half's, too.
  if (wholeGroups())
    return collect(fragments, [&](Val n) -> Bits {
      Val at = query + n * fragmentColumns;
      Words words = wordsOf({element(at, key), element(at + 1, key)});
      Val bits = e.number(0);
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t p = 0; p < counters; ++p)
          bits = bits | bit(wordInGroup(words, p, h, row), 2 * h + p);
      return {bits, n * bitsOfFragment};
    });
  return collect(2 * fragments, [&](Val step) -> Bits {
    Val at = query + step / 2 * fragmentColumns, ofHalf = key + step % 2 * 8;
    std::array<Val, counters> elements{element(at, ofHalf), element(at + 1, ofHalf)};
    Words words = wordsOf(elements);
    Val bits = e.number(0);
    for (int64_t p = 0; p < counters; ++p)
      bits = bits | bit(ownWord(words, p, elements[p]), p);
    return {bits, step * 2};
  });
}

Val AttentionDropout::keeps(Val bits, int64_t n, int h, int p) {
  auto mask = static_cast<int32_t>(uint32_t{1} << (bitsOfFragment * n + 2 * h + p));
  return e.equal(e.equal(bits & mask, 0), e.truth(false));
}

} // namespace gradc::codegen::gpu
