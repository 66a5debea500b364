// See AttentionDropout.h.
#include "codegen/gpu/AttentionDropout.h"

#include "ir/row/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t counters = 4; ///< that a thread computes at a time
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

/// The bits of all steps, one step's behind the other's. A loop: ten rounds are long code.
Val AttentionDropout::collect(int64_t steps, int64_t bitsOfStep,
                              function_ref<Val(Val step)> ofStep) const {
  Val all = e.number(0);
  e.loop(e.number(0), e.number(steps), {&all},
         [&](Val step) { all = all | (ofStep(step) << (step * bitsOfStep)); });
  return all;
}

Val AttentionDropout::keptOfQueries(Val row, Val column, int64_t columns) {
  Val query = row + place.quad, key = column + place.member * 2;
  // The four elements of a fragment, and others whose words the same counters have.
  int64_t fragments = wholeGroups() ? std::min<int64_t>(4, columns / fragmentColumns) : 1;
  int64_t steps = columns / fragmentColumns / fragments;
  return collect(steps, fragments * bitsOfFragment, [&](Val step) {
    SmallVector<Val> elements;
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t p = 0; p < 2; ++p)
        elements.push_back(element(query + 8 * h, key + step * (fragments * fragmentColumns) + p));
    Words words = wordsOf(elements);
    Val bits = e.number(0);
    for (int64_t n = 0; n < fragments; ++n)
      for (int64_t i = 0; i < counters; ++i) {
        Val word = !wholeGroups()   ? ownWord(words, i, elements[i])
                   : fragments == 4 ? wordOf(e, words[n], i)
                                    : wordInGroup(words, i, n, column);
        bits = bits | bit(word, bitsOfFragment * n + i);
      }
    return bits;
  });
}

Val AttentionDropout::keptOfKeys(Val row, Val column, int64_t columns) {
  Val key = row + place.quad, query = column + place.member * 2;
  // Two fragments' queries, each with the key of the upper half and, eight further, of the lower
  // half; or the four elements of one fragment.
  int64_t fragments = wholeGroups() ? 2 : 1;
  int64_t steps = columns / fragmentColumns / fragments;
  return collect(steps, fragments * bitsOfFragment, [&](Val step) {
    SmallVector<Val> elements;
    for (int64_t i = 0; i < counters; ++i) {
      int64_t further = wholeGroups() ? i / 2 * fragmentColumns : 0, h = wholeGroups() ? 0 : i / 2;
      Val at = query + step * (fragments * fragmentColumns) + (further + i % 2);
      elements.push_back(element(at, key + 8 * h));
    }
    Words words = wordsOf(elements);
    Val bits = e.number(0);
    for (int64_t i = 0; i < counters; ++i) {
      if (!wholeGroups()) {
        bits = bits | bit(ownWord(words, i, elements[i]), i);
        continue;
      }
      for (int64_t h = 0; h < 2; ++h)
        bits = bits | bit(wordInGroup(words, i, h, row), bitsOfFragment * (i / 2) + 2 * h + i % 2);
    }
    return bits;
  });
}

Val AttentionDropout::keeps(Val bits, int64_t n, int h, int p) {
  auto mask = static_cast<int32_t>(uint32_t{1} << (bitsOfFragment * n + 2 * h + p));
  return e.equal(e.equal(bits & mask, 0), e.truth(false));
}

} // namespace gradc::codegen::gpu
