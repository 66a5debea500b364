// The GPU's attention kernels, emulated, against f64: sequences that fill no tile, masks, grouped
// heads; what a mask hides; and that the emulator misses no barrier and no wait that they need.
#include "tests/numerics/GpuAttention.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using namespace gradc::codegen::gpu;
using namespace gradc::codegen::attention_test;
using row::Dtype;

AttentionSpec of(Dtype dtype, AttentionSpec spec) {
  spec.dtype = dtype;
  return spec;
}
AttentionSpec withDocuments(AttentionSpec spec) {
  spec.documents = true;
  return spec;
}

AttentionSpec dropping(double rate, AttentionSpec spec) {
  spec.dropout = rate;
  return spec;
}

// Compiling is most of what a case costs, and most of all where products are fused multiply-adds.
// The code of f16 is that of bf16 but for its instructions and constants.

/// Tiles are passed in even and odd numbers, and the last is not full.
TEST(GpuAttention, Shapes) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    checkOnGpu(of(dtype, shape(1, 1, 2, 2, 16)));
    checkOnGpu(of(dtype, shape(1, 130, 2, 2, 64)));
  }
  checkOnGpu(of(Dtype::f32, shape(1, 70, 4, 2, 32)), /*packed=*/false);
  checkOnGpu(of(Dtype::bf16, shape(2, 97, 2, 1, 128, /*causal=*/false)));
  checkOnGpu(of(Dtype::f16, shape(1, 70, 4, 2, 48)), /*packed=*/false);
}

TEST(GpuAttention, Masks) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    checkOnGpu(of(dtype, shape(1, 150, 4, 1, 16, true, 40)));
    checkOnGpu(of(dtype, withDocuments(shape(1, 150, 2, 2, 16, false, 70))));
  }
  checkOnGpu(of(Dtype::bf16, withDocuments(shape(2, 150, 2, 1, 32))));
}

/// Heads that fill no matrix instruction, or whose tokens lie so that 8, 4 or 2 bytes are accessed
/// at a time.
TEST(GpuAttention, HeadDimensions) {
  auto apart = [](Dtype dtype, AttentionSpec spec, int64_t gap) {
    return Data(of(dtype, spec), /*packed=*/true, /*seed=*/1, gap);
  };
  checkOnGpu(of(Dtype::bf16, shape(1, 66, 2, 1, 8)));
  checkOnGpu(of(Dtype::bf16, shape(1, 35, 1, 1, 100, false)));
  checkOnGpu(of(Dtype::f32, shape(1, 70, 1, 1, 20)), /*packed=*/false);
  checkOnGpu(apart(Dtype::f32, shape(1, 66, 2, 2, 12), 2));
  checkOnGpu(apart(Dtype::f16, shape(1, 66, 2, 2, 12), 2));
  checkOnGpu(apart(Dtype::bf16, shape(1, 37, 3, 1, 25), 3));
  checkOnGpu(apart(Dtype::f32, shape(1, 37, 3, 1, 25), 3));
}

/// dk and dv are of blocks of their own, and fewer warps where rows of f32 are long.
TEST(GpuAttention, WideHeads) {
  checkOnGpu(of(Dtype::bf16, dropping(0.3, withDocuments(shape(1, 70, 2, 1, 256, true, 40)))));
  checkOnGpu(of(Dtype::f16, shape(1, 35, 1, 1, 136, false)));
  checkOnGpu(of(Dtype::f32, shape(1, 35, 2, 1, 256)));
}

/// The order of blocks changes no bit.
TEST(GpuAttention, GroupsOfHeads) {
  Data together = gpuData(of(Dtype::bf16, shape(2, 70, 4, 2, 16))), apart = together;
  const AttentionSpec &spec = together.spec;
  GpuAttention(spec).run(together);
  for (int64_t keyHeads : {1, 2}) {
    Data run = apart;
    GpuAttention(spec, keyHeads).run(run);
    EXPECT_TRUE(sameBits(run.o, together.o));
    EXPECT_TRUE(sameBits(run.lse, together.lse));
    EXPECT_TRUE(sameBits(run.gradients.memory, together.gradients.memory));
  }
}

/// What groups in flight read fits the cache, unless one head alone does not.
TEST(GpuAttention, OrderFitsTheCache) {
  struct Case {
    AttentionSpec spec;
    bool fits;
    int64_t leastHeads, mostHeads; ///< of a group
  };
  for (const Case &at : {Case{shape(4, 1024, 12, 12, 64), true, 48, 48},
                         Case{shape(32, 1024, 12, 12, 64), true, 24, 96},
                         Case{shape(97, 1024, 12, 12, 64), true, 12, 12 * 97 / 3},
                         Case{shape(1, 131072, 32, 8, 128), false, 1, 1}}) {
    AttentionSpec spec = of(Dtype::bf16, at.spec);
    int64_t heads = spec.batch * spec.kvHeads;
    for (const AttentionOrder &order : {forwardOrder(spec), backwardOrder(spec)}) {
      EXPECT_EQ(order.fitsCache, at.fits);
      EXPECT_EQ(heads % order.keyHeads, 0);
      EXPECT_GE(order.keyHeads, at.leastHeads);
      EXPECT_LE(order.keyHeads, at.mostHeads);
    }
    KernelWork forward = attentionForwardWork(spec), backward = attentionBackwardWork(spec);
    int64_t matrix = heads * spec.seq * spec.headDim * 2,
            lse = spec.batch * spec.heads * spec.seq * 4;
    int64_t least = (2 + 2 * spec.group()) * matrix + lse;
    int64_t leastBackward = (4 + 4 * spec.group()) * matrix + lse;
    EXPECT_EQ(forward.bytes() == least, at.fits) << forward.bytes() << " of " << least;
    EXPECT_EQ(backward.bytes() == leastBackward, at.fits)
        << backward.bytes() << " of " << leastBackward;
  }
}

TEST(GpuAttention, ScalesOfEverySign) {
  auto scaled = [](double scale, Dtype dtype) {
    AttentionSpec spec = of(dtype, shape(1, 70, 1, 1, 16));
    spec.scale = scale;
    return spec;
  };
  checkOnGpu(scaled(-0.3, Dtype::f32));
  checkOnGpu(scaled(-0.3, Dtype::bf16));
  checkOnGpu(scaled(0, Dtype::f16));
}

/// Rows of whole groups of random numbers and others, whose tiles begin in either half of one; keys
/// and queries beyond the sequence; element numbers beyond 32 bits.
TEST(GpuAttention, Dropout) {
  checkOnGpu(of(Dtype::f16, dropping(0.1, shape(2, 96, 2, 1, 16))));
  checkOnGpu(of(Dtype::bf16, dropping(0.3, withDocuments(shape(1, 96, 2, 1, 80, true, 40)))));
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    checkOnGpu(of(dtype, dropping(0.5, shape(1, 77, 2, 2, 24, false))));
    Data far = gpuData(of(dtype, dropping(0.3, shape(1, 96, 1, 1, 16))));
    far.random = {-1, -2, 1 << 30};
    checkOnGpu(far);
  }
}

/// Rows of [seq, headDim] that differ.
std::vector<int64_t> changedRows(const AttentionSpec &s, const std::vector<float> &x,
                                 const std::vector<float> &y) {
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < s.seq; ++t)
    for (int64_t d = 0; d < s.headDim; ++d)
      if (!(x[t * s.headDim + d] == y[t * s.headDim + d])) {
        rows.push_back(t);
        break;
      }
  return rows;
}
std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t t = first; t <= last; ++t)
    numbers.push_back(t);
  return numbers;
}

class GpuAttentionNotFinite : public testing::TestWithParam<Dtype> {
protected:
  static constexpr int64_t token = 90, seq = 140, window = 30;
  const Data clean = gpuData(of(GetParam(), shape(1, seq, 1, 1, 16, true, window)));
  const GpuAttention kernels{clean.spec};

  void checkHidden() const;
  void checkNothingSeen() const;
};

INSTANTIATE_TEST_SUITE_P(Every, GpuAttentionNotFinite,
                         testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const testing::TestParamInfo<Dtype> &info) {
                           return std::string(row::name(info.param));
                         });

/// A token whose key, value, query or gradient is NaN shows where it is seen and nowhere else, to
/// the bit.
void GpuAttentionNotFinite::checkHidden() const {
  Data plain = clean;
  kernels.run(plain);
  auto changed = [&](const Data &run, int which) {
    return changedRows(clean.spec, run.gradients.gather(clean.spec, which),
                       plain.gradients.gather(clean.spec, which));
  };
  auto later = range(token, token + window - 1), earlier = range(token - window + 1, token);
  auto alone = range(token, token);
  for (int which : {1, 2}) {
    Data run = clean;
    run.in.row(which, token)[0] = NAN;
    kernels.run(run);
    EXPECT_EQ(changedRows(clean.spec, run.o, plain.o), later) << which;
    EXPECT_EQ(changed(run, 0), later) << which;
  }
  Data badQuery = clean, badGradient = clean;
  badQuery.in.row(0, token)[0] = INFINITY;
  badGradient.dORow(token)[0] = NAN;
  for (Data *run : {&badQuery, &badGradient}) {
    kernels.run(*run);
    EXPECT_EQ(changed(*run, 0), alone);
    EXPECT_EQ(changed(*run, 1), earlier);
    EXPECT_EQ(changed(*run, 2), earlier);
  }
  EXPECT_EQ(changedRows(clean.spec, badQuery.o, plain.o), alone);
  EXPECT_TRUE(sameBits(badGradient.o, plain.o));
}

/// Query 0 sees its own key only, with a score of -inf: it gives 0 and no gradient, whatever its
/// gradient and its value are. Others see that value, but not that gradient.
void GpuAttentionNotFinite::checkNothingSeen() const {
  Data data = clean;
  for (int64_t d = 0; d < 16; ++d) {
    data.in.row(0, 0)[d] = -INFINITY;
    data.in.row(1, 0)[d] = 1;
  }
  Data badGradient = data, badValue = data;
  badGradient.dORow(0)[2] = NAN;
  badValue.in.row(2, 0)[3] = NAN;
  for (Data *run : {&data, &badGradient, &badValue}) {
    kernels.run(*run);
    EXPECT_EQ(run->lse[0], -INFINITY);
    for (int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(run->o[d], 0);
      EXPECT_EQ(run->gradients.gather(clean.spec, 0)[d], 0);
    }
  }
  for (const Data *run : {&data, &badGradient})
    for (int which : {0, 1, 2})
      for (float x : run->gradients.gather(clean.spec, which))
        ASSERT_TRUE(std::isfinite(x)) << which;
  for (float x : badGradient.o)
    ASSERT_TRUE(std::isfinite(x));
}

TEST_P(GpuAttentionNotFinite, ShowsWhereItIsSeen) {
  ASSERT_TRUE(kernels);
  checkHidden();
  checkNothingSeen();
}

// --- mutations

/// Leaves one of the two kernels, without the operation number `which` of its kind.
template <typename Op> void mutate(mlir::ModuleOp module, llvm::StringRef kernel, size_t which) {
  llvm::StringRef other = kernel == "forward" ? "backward" : "forward";
  module.lookupSymbol<mlir::LLVM::LLVMFuncOp>(other).erase();
  std::vector<mlir::Operation *> found;
  module.walk([&](Op op) { found.push_back(op); });
  ASSERT_LT(which, found.size());
  found[which]->erase();
}

/// Runs a kernel without that operation: does the emulator complain?
template <typename Op> bool isNoticed(const Data &data, llvm::StringRef kernel, size_t which) {
  GpuAttention kernels(data.spec, [&](mlir::ModuleOp m) { mutate<Op>(m, kernel, which); });
  Data run = data;
  rt::Status status = kernel == "forward" ? kernels.runForward(run, rt::WarpOrder::alternating)
                                          : kernels.runBackward(run, rt::WarpOrder::alternating);
  return !status.ok();
}

/// In the order of the code, for each side of a kernel: the barrier of a tile, that of the block's
/// agreement on its results, those of the careful pass (of a tile, and behind it), and that of the
/// epilogue. Of the waits, every second is for passes that have no tile. Tiles are odd in number
/// and something is not finite, so that all of them are passed and needed.
TEST(GpuAttentionMutations, DeletedBarriersAndWaitsAreNoticed) {
  using mlir::NVVM::BarrierOp;
  using mlir::NVVM::CpAsyncWaitGroupOp;
  Data data = gpuData(of(Dtype::bf16, shape(1, 140, 1, 1, 16, false)));
  data.in.row(2, 3)[0] = NAN;
  for (size_t i = 0; i < 5; ++i)
    EXPECT_TRUE(isNoticed<BarrierOp>(data, "forward", i)) << "barrier " << i;
  for (size_t i : {0, 2})
    EXPECT_TRUE(isNoticed<CpAsyncWaitGroupOp>(data, "forward", i)) << "wait " << i;

  Data ran = data;
  GpuAttention(data.spec).run(ran);
  ran.gradients = data.gradients;
  for (size_t i : {0, 1, 4, 5, 6, 9}) // of keys, then of queries
    EXPECT_TRUE(isNoticed<BarrierOp>(ran, "backward", i)) << "barrier " << i;
  for (size_t i : {0, 4})
    EXPECT_TRUE(isNoticed<CpAsyncWaitGroupOp>(ran, "backward", i)) << "wait " << i;
}

TEST(GpuAttention, SpecsAreVerified) {
  AttentionSpec spec = gpuData(shape(1, 8, 4, 2, 128)).spec;
  EXPECT_EQ(verifyForGpu(spec), "");
  AttentionSpec wide = spec, certain = spec;
  wide.headDim = 257;
  certain.dropout = 1;
  for (const AttentionSpec &wrong : {wide, certain})
    EXPECT_NE(verifyForGpu(wrong), "");
}

} // namespace
