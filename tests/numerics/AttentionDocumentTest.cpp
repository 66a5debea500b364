// Attention kernels with documents: against f64 with each query's first key, alone and with every
// other mask; against the documents as sequences of their own; and what the mask hides has no
// effect.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;
using row::Dtype;

AttentionSpec withDocuments(AttentionSpec spec, double dropout = 0, Dtype dtype = Dtype::f32) {
  spec.documents = true;
  spec.dropout = dropout;
  spec.dtype = dtype;
  return spec;
}

/// Documents of about `length` tokens.
void checkDocuments(const AttentionSpec &spec, int64_t length, bool packed,
                    const std::vector<CpuTarget> &targets) {
  Data data(spec, packed);
  data.firstKeys = documentsOf(spec, length);
  check(data, targets);
}

TEST(AttentionDocuments, Lengths) {
  for (int64_t length : {1, 2, 10, 100, 10000})
    checkDocuments(withDocuments(shape(2, 200, 2, 2, 16)), length, true, hostTarget());
  checkDocuments(withDocuments(shape(2, 77, 4, 4, 17)), 20, true, everyTarget());
  checkDocuments(withDocuments(shape(1, 1, 4, 4, 16)), 1, true, hostTarget());
}

TEST(AttentionDocuments, SeveralKeyBlocksAndSuperblocks) {
  for (int64_t length : {30, 130, 700})
    checkDocuments(withDocuments(shape(1, 1321, 4, 4, 16)), length, true, hostTarget());
  checkDocuments(withDocuments(shape(1, 700, 4, 4, 64)), 100, false, everyTarget());
}

/// A document may reach back over more than one key block.
TEST(AttentionDocuments, LongDocuments) {
  AttentionSpec spec = withDocuments(shape(1, 1700, 4, 4, 16));
  Data data(spec, true);
  for (int64_t t = 0; t < spec.seq; ++t)
    data.firstKeys[t] = t < 300 ? 0 : t < 1601 ? 300 : 1601;
  check(data, hostTarget());
}

TEST(AttentionDocuments, GroupedHeads) {
  checkDocuments(withDocuments(shape(2, 77, 6, 2, 16)), 20, true, everyTarget());
  checkDocuments(withDocuments(shape(1, 150, 8, 1, 24)), 50, false, hostTarget());
}

TEST(AttentionDocuments, Windows) {
  for (int64_t window : {1, 17, 64, 1000})
    checkDocuments(withDocuments(shape(1, 150, 4, 4, 16, window % 2 == 0, window)), 40, true,
                   hostTarget());
  checkDocuments(withDocuments(shape(1, 1300, 2, 1, 16, true, 70)), 100, true, hostTarget());
  checkDocuments(withDocuments(shape(1, 1300, 4, 4, 16, true, 600)), 400, true, hostTarget());
}

/// Without the causal mask a query sees everything from its first key on.
TEST(AttentionDocuments, KeysAheadVisible) {
  checkDocuments(withDocuments(shape(2, 100, 4, 4, 24, false)), 30, true, everyTarget());
  checkDocuments(withDocuments(shape(1, 600, 1, 1, 128, false)), 100, false, hostTarget());
  checkDocuments(withDocuments(shape(1, 1100, 4, 4, 16, false)), 300, true, hostTarget());
}

TEST(AttentionDocuments, FewHeadsAreSplitByRows) {
  checkDocuments(withDocuments(shape(1, 333, 1, 1, 64)), 60, true, everyTarget());
  checkDocuments(withDocuments(shape(1, 1333, 2, 1, 16, true, 40)), 100, true, hostTarget());
}

TEST(AttentionDocuments, Dropout) {
  checkDocuments(withDocuments(shape(2, 77, 4, 4, 16), 0.1), 20, true, everyTarget());
  checkDocuments(withDocuments(shape(1, 1200, 4, 4, 16), 0.5), 150, true, hostTarget());
  checkDocuments(withDocuments(shape(1, 150, 4, 2, 16, true, 33), 0.1), 40, false, everyTarget());
}

TEST(AttentionDocuments, NarrowTypes) {
  for (Dtype dtype : {Dtype::bf16, Dtype::f16})
    checkDocuments(withDocuments(shape(2, 77, 6, 2, 16, true, 20), 0.1, dtype), 20, true,
                   everyTarget());
  // Gradients that are gathered in parts.
  checkDocuments(withDocuments(shape(1, 1100, 4, 4, 256, true, 40), 0, Dtype::bf16), 100, true,
                 hostTarget());
}

/// First keys of any order: some queries see nothing, neither of the block nor at all.
TEST(AttentionDocuments, FirstKeysOfAnyOrder) {
  for (bool causal : {true, false})
    for (int64_t seq : {100, 700}) {
      AttentionSpec spec = withDocuments(shape(2, seq, 4, 2, 16, causal), 0.1);
      Data data(spec, true);
      std::mt19937 random(5);
      std::uniform_int_distribution<int32_t> anywhere(-3, static_cast<int32_t>(seq) + 3);
      for (int32_t &first : data.firstKeys)
        first = anywhere(random);
      check(data, seq == 100 ? everyTarget() : hostTarget());
    }
}

TEST(AttentionDocuments, QueriesThatSeeNothing) {
  for (auto [seq, window] : {std::pair(150, 0), {150, 17}, {1200, 0}, {1200, 70}}) {
    AttentionSpec spec = withDocuments(shape(1, seq, 4, 4, 16, true, window));
    Data data(spec, true);
    std::fill(data.firstKeys.begin(), data.firstKeys.end(), static_cast<int32_t>(seq));
    check(data, hostTarget());
    Kernels kernels(data.spec, CpuTarget::host());
    ASSERT_TRUE(kernels);
    for (int64_t at = 0; at < static_cast<int64_t>(data.in.memory.size()); ++at)
      if (data.in.used[at])
        data.in.memory[at] = NAN;
    std::fill(data.dO.begin(), data.dO.end(), NAN);
    kernels.run(data);
    for (float x : data.o)
      ASSERT_EQ(x, 0);
    for (int which : {0, 1, 2})
      for (float x : data.gradients.gather(spec, which))
        ASSERT_EQ(x, 0) << which;
  }
}

/// A document gives what it gives as a sequence of its own.
TEST(AttentionDocuments, AreSequencesOfTheirOwn) {
  constexpr int64_t cut = 70, seq = 160, width = 4 * 16;
  Data whole(withDocuments(shape(1, seq, 4, 4, 16)), false);
  for (int64_t t = 0; t < seq; ++t)
    whole.firstKeys[t] = t < cut ? 0 : cut;
  Kernels kernels(whole.spec, CpuTarget::host());
  ASSERT_TRUE(kernels);
  kernels.run(whole);
  for (auto [first, end] : {std::pair(int64_t{0}, cut), {cut, seq}}) {
    Data part(shape(1, end - first, 4, 4, 16), true);
    for (int which : {0, 1, 2})
      for (int64_t t = first; t < end; ++t)
        for (int64_t h = 0; h < 4; ++h)
          std::copy_n(whole.in.row(which, t) + h * whole.in.strides[which].head, 16,
                      part.in.row(which, t - first) + h * 16);
    std::copy(whole.dO.begin() + first * width, whole.dO.begin() + end * width, part.dO.begin());
    Kernels alone(part.spec, CpuTarget::host());
    ASSERT_TRUE(alone);
    alone.run(part);
    auto expectSame = [&](const std::vector<float> &got, const std::vector<float> &want) {
      std::vector<float> slice(got.begin() + first * width, got.begin() + end * width);
      EXPECT_LE(distance(slice, {want.begin(), want.end()}), 1e-6);
    };
    expectSame(whole.o, part.o);
    for (int which : {0, 1, 2}) {
      std::vector<float> gathered; // tokens outside, heads inside
      for (int64_t t = 0; t < seq; ++t)
        for (int64_t h = 0; h < 4; ++h) {
          const float *row = whole.gradients.row(which, t) + h * whole.in.strides[which].head;
          gathered.insert(gathered.end(), row, row + 16);
        }
      expectSame(gathered, part.gradients.gather(part.spec, which));
    }
  }
}

/// Whatever the tokens of one document hold, no bit of the others changes.
void checkHidden(const AttentionSpec &spec, const std::vector<int32_t> &firstKeys, int64_t first,
                 int64_t end) {
  Data plain(spec, true), spoiled = plain;
  plain.firstKeys = spoiled.firstKeys = firstKeys;
  for (int which : {0, 1, 2})
    for (int64_t t = first; t < end; ++t)
      for (int64_t h = 0; h < (which == 0 ? spec.heads : spec.kvHeads); ++h)
        spoiled.in.row(which, t)[h * spec.headDim + t % spec.headDim] = t % 2 ? NAN : INFINITY;
  for (int64_t t = first; t < end; ++t)
    spoiled.dORow(t)[0] = NAN;
  Kernels kernels(plain.spec, CpuTarget::host());
  ASSERT_TRUE(kernels);
  kernels.run(plain);
  kernels.run(spoiled);
  int64_t width = spec.heads * spec.headDim, keyWidth = spec.kvHeads * spec.headDim;
  auto expectUntouched = [&](const std::vector<float> &got, const std::vector<float> &want,
                             int64_t perToken, const char *what) {
    ASSERT_EQ(static_cast<int64_t>(got.size()), spec.seq * perToken);
    for (int64_t t = 0; t < spec.seq; ++t)
      if (t < first || t >= end) {
        ASSERT_EQ(std::memcmp(&got[t * perToken], &want[t * perToken], perToken * sizeof(float)), 0)
            << what << " of token " << t;
        ASSERT_TRUE(std::isfinite(got[t * perToken])) << what << " of token " << t;
      }
  };
  expectUntouched(spoiled.o, plain.o, width, "o");
  const char *names[] = {"dq", "dk", "dv"};
  for (int which : {0, 1, 2})
    expectUntouched(spoiled.gradients.gather(spec, which), plain.gradients.gather(spec, which),
                    which == 0 ? width : keyWidth, names[which]);
}

TEST(AttentionDocuments, OthersHaveNoEffect) {
  for (auto [seq, first, end] : {std::tuple(200, 60, 101), {1200, 500, 530}, {1200, 3, 700}}) {
    std::vector<int32_t> firstKeys(seq);
    for (int t = 0; t < seq; ++t)
      firstKeys[t] = t < first ? 0 : t < end ? first : end;
    Dtype dtype = seq == 200 ? Dtype::bf16 : Dtype::f32;
    double dropout = first == 500 ? 0.5 : 0;
    checkHidden(withDocuments(shape(1, seq, 4, 2, 16), dropout, dtype), firstKeys, first, end);
    checkHidden(withDocuments(shape(1, seq, 1, 1, 24, true, 50), dropout, dtype), firstKeys, first,
                end);
  }
}

TEST(AttentionDocuments, FirstKeysAreBytesThatMove) {
  AttentionSpec plain = shape(2, 8, 4, 2, 16), spec = withDocuments(plain);
  EXPECT_EQ(attentionForwardBytes(spec), attentionForwardBytes(plain) + 2 * 8 * 4);
  EXPECT_EQ(attentionBackwardBytes(spec), attentionBackwardBytes(plain) + 2 * 8 * 4);
}

} // namespace
