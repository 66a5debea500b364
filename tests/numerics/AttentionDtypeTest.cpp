// Attention kernels on bf16 and f16: against f64 on operands of the type, each result being rounded
// once (the bounds are in AttentionHarness.cpp).
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;
using row::Dtype;

AttentionSpec of(Dtype dtype, AttentionSpec spec) {
  spec.dtype = dtype;
  return spec;
}

class AttentionDtype : public testing::TestWithParam<Dtype> {};

TEST_P(AttentionDtype, Shapes) {
  check(of(GetParam(), shape(2, 77, 6, 2, 16)), true, everyTarget());
  check(of(GetParam(), shape(1, 70, 4, 4, 17)), true, hostTarget());
  check(of(GetParam(), shape(1, 96, 4, 4, 64, false)), false, hostTarget());
  check(of(GetParam(), shape(1, 150, 4, 4, 16, true, 17)), false, hostTarget());
}

/// Rows carried across key blocks, and dk and dv across superblocks, are not rounded on the way.
TEST_P(AttentionDtype, SeveralKeyBlocksAndSuperblocks) {
  check(of(GetParam(), shape(1, 1200, 4, 4, 16)), true, hostTarget());
}

TEST_P(AttentionDtype, FewHeadsAreSplitByRows) {
  check(of(GetParam(), shape(1, 333, 2, 1, 64)), true, hostTarget());
}

/// A head's dk and dv are too large to gather in scratch: they are computed in parts.
TEST_P(AttentionDtype, LongSequencesGatherTheirGradientsInParts) {
  AttentionSpec spec = of(GetParam(), shape(1, 1100, 4, 4, 256, true, 40));
  AttentionSpec wide = spec;
  wide.dtype = Dtype::f32;
  EXPECT_GT(attentionBackwardTaskCount(spec), attentionBackwardTaskCount(wide));
  EXPECT_GT(attentionForwardTaskCount(spec), attentionForwardTaskCount(wide));
  check(spec, true, hostTarget());
}

TEST_P(AttentionDtype, Dropout) {
  AttentionSpec spec = of(GetParam(), shape(2, 77, 4, 2, 16));
  spec.dropout = 0.1;
  check(spec, true, hostTarget());
}

TEST(AttentionDtype, NarrowTensorsTakeHalfTheBytes) {
  AttentionSpec spec = shape(2, 8, 4, 2, 16);
  int64_t lse = 4 * 2 * 4 * 8;
  for (auto bytes : {attentionForwardBytes, attentionBackwardBytes})
    EXPECT_EQ(2 * (bytes(of(Dtype::bf16, spec)) - lse), bytes(spec) - lse);
}

INSTANTIATE_TEST_SUITE_P(Narrow, AttentionDtype, testing::Values(Dtype::bf16, Dtype::f16),
                         [](const testing::TestParamInfo<Dtype> &info) {
                           return info.param == Dtype::bf16 ? "bf16" : "f16";
                         });

} // namespace
