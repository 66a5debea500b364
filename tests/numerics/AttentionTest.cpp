// Attention kernels against f64 loops: shapes that fill no tile, grouped heads, windows, slices of
// a packed buffer; on the host's vectors and on narrower ones.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;

TEST(Attention, HeadDimensions) {
  for (int64_t headDim : {17, 80})
    check(shape(1, 70, 4, 4, headDim), headDim % 16 != 0, everyTarget());
  for (int64_t headDim : {1, 24, 48, 64, 128})
    check(shape(1, 70, 4, 4, headDim), headDim % 16 != 0, hostTarget());
}

TEST(Attention, SequenceLengths) {
  for (int64_t seq : {1, 2, 47, 48, 65, 200})
    check(shape(2, seq, 2, 2, 16), seq % 2 == 0, hostTarget());
}

TEST(Attention, SeveralKeyBlocksAndSuperblocks) {
  check(shape(1, 1200, 4, 4, 16), true, hostTarget());
  check(shape(1, 700, 4, 4, 64), true, everyTarget());
}

TEST(Attention, AllKeysVisible) {
  check(shape(1, 1, 4, 4, 16, false), false, hostTarget());
  check(shape(2, 100, 2, 2, 24, false), true, everyTarget());
  check(shape(1, 600, 1, 1, 128, false), false, hostTarget());
}

TEST(Attention, GroupedHeads) {
  check(shape(2, 77, 6, 2, 16), true, everyTarget());
  check(shape(1, 150, 8, 1, 24), false, hostTarget());
}

TEST(Attention, Windows) {
  for (int64_t window : {1, 64, 149, 1000})
    check(shape(1, 150, 4, 4, 16, window % 2 == 0, window), true, hostTarget());
  check(shape(1, 150, 4, 4, 16, true, 17), true, everyTarget());
  check(shape(1, 1300, 2, 1, 16, true, 70), true, hostTarget());
  check(shape(1, 1300, 4, 4, 16, true, 600), false, hostTarget());
}

/// Where heads are few, dk/dv and dq are computed by tasks of their own, of parts of the sequence.
TEST(Attention, FewHeadsAreSplitByRows) {
  EXPECT_GT(attentionForwardTaskCount(shape(1, 1024, 1, 1, 64)), 4);
  EXPECT_GT(attentionBackwardTaskCount(shape(1, 1024, 1, 1, 64)), 4);
  EXPECT_EQ(attentionBackwardTaskCount(shape(4, 1024, 12, 12, 64)), 48);
  check(shape(1, 333, 1, 1, 64), true, everyTarget());
  check(shape(1, 333, 2, 1, 16, true, 40), true, hostTarget());
  check(shape(1, 200, 3, 3, 16, false), true, hostTarget());
}

TEST(Attention, LargeScoresDoNotOverflow) {
  AttentionSpec spec = shape(1, 100, 4, 4, 16);
  spec.scale = 40;
  Data data(spec, false);
  Reference want = data.want();
  Kernels kernels(data.spec, CpuTarget::host());
  ASSERT_TRUE(kernels);
  kernels.run(data);
  // Scores reach several hundred; their rounding errors appear in the weights as they are.
  EXPECT_LE(distance(data.o, want.o), 1e-4);
  EXPECT_LE(distance(data.lse, want.lse), 1e-6);
  EXPECT_LE(distance(data.gradients.gather(spec, 0), want.dq), 1e-3);
}

TEST(Attention, SpecsAreVerified) {
  EXPECT_EQ(verify(shape(1, 8, 4, 2, 16)), "");
  EXPECT_NE(verify(shape(1, 8, 4, 3, 16)), "");
  EXPECT_NE(verify(shape(1, 0, 4, 4, 16)), "");
  EXPECT_NE(verify(shape(1, 8, 4, 4, 4096)), "");
  AttentionSpec spec = shape(1, 8, 4, 4, 16);
  for (double rate : {-0.1, 1.0, std::nan("")}) {
    spec.dropout = rate;
    EXPECT_NE(verify(spec), "") << rate;
  }
  spec.dropout = 0.99;
  EXPECT_EQ(verify(spec), "");
  spec.dtype = row::Dtype::i32;
  EXPECT_NE(verify(spec), "");
}

TEST(Attention, MaskedPairsCostNothing) {
  for (int64_t window : {0, 1, 5, 9, 20}) {
    AttentionSpec spec = shape(1, 9, 1, 1, 4, true, window);
    int64_t pairs = 0;
    for (int64_t i = 0; i < spec.seq; ++i)
      for (int64_t j = 0; j < spec.seq; ++j)
        pairs += sees(spec, i, j);
    EXPECT_EQ(attentionPairs(spec), pairs) << window;
    EXPECT_EQ(attentionForwardFlops(spec), 4 * pairs * 4);
  }
  EXPECT_EQ(attentionPairs(shape(1, 9, 1, 1, 4, false)), 81);
}

} // namespace
