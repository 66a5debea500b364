// Attention kernels against f64 loops: shapes that fill no tile, grouped heads, windows, slices of
// a packed buffer; on the host's vectors and on narrower ones.
#include "codegen/cpu/Attention.h"

#include "tests/numerics/AttentionReference.h"
#include "tests/numerics/CompiledKernel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

namespace {

using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;
using Strides = AttentionSpec::Strides;

const float sentinel = 12345.5f;

/// Memory for q, k and v (or their gradients): apart, or slices of one buffer whose tokens have a
/// gap between them that must stay untouched.
struct Operands {
  std::vector<float> memory;
  int64_t offsets[3];
  Strides strides[3];
  std::vector<char> used;

  Operands(const AttentionSpec &s, bool packed) {
    int64_t heads[3] = {s.heads, s.kvHeads, s.kvHeads}, end = 0, gap = packed ? 3 : 0;
    int64_t perToken = (s.heads + 2 * s.kvHeads) * s.headDim + gap;
    for (int i = 0; i < 3; ++i) {
      offsets[i] = end;
      if (packed)
        strides[i] = {s.seq * perToken, perToken, s.headDim};
      else
        strides[i] = Strides{s.seq * heads[i] * s.headDim, s.headDim, s.seq * s.headDim};
      end += packed ? heads[i] * s.headDim : s.batch * s.seq * heads[i] * s.headDim;
    }
    memory.assign(packed ? s.batch * s.seq * perToken : end, sentinel);
    used.assign(memory.size(), 0);
    for (int i = 0; i < 3; ++i)
      forEach(s, i, heads[i], [&](int64_t at) { used[at] = 1; });
  }

  template <typename F> void forEach(const AttentionSpec &s, int which, int64_t heads, F f) const {
    const Strides &to = strides[which];
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t t = 0; t < s.seq; ++t)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t d = 0; d < s.headDim; ++d)
            f(offsets[which] + b * to.batch + t * to.token + h * to.head + d);
  }
  float *at(int which) { return memory.data() + offsets[which]; }
  View<const float> view(int which) { return {at(which), strides[which]}; }
  std::vector<float> gather(const AttentionSpec &s, int which) const {
    std::vector<float> out;
    forEach(s, which, which == 0 ? s.heads : s.kvHeads,
            [&](int64_t at) { out.push_back(memory[at]); });
    return out;
  }
  void expectGapsIntact() const {
    for (size_t i = 0; i < memory.size(); ++i)
      if (!used[i])
        ASSERT_EQ(memory[i], sentinel) << "element " << i << " lies outside the operands";
  }
};

struct Data {
  AttentionSpec spec;
  Operands in, gradients;
  std::vector<float> o, lse, dO;

  Data(AttentionSpec s, bool packed, uint32_t seed = 1)
      : spec(s), in(s, packed), gradients(s, packed) {
    spec.q = in.strides[0], spec.k = in.strides[1], spec.v = in.strides[2];
    spec.dq = spec.q, spec.dk = spec.k, spec.dv = spec.v;
    spec.o = spec.dO = AttentionSpec::contiguous(s.seq, s.heads, s.headDim);
    int64_t count = s.batch * s.seq * s.heads * s.headDim;
    // NaN where nothing was written shows in every comparison.
    o.assign(count, NAN);
    lse.assign(s.batch * s.heads * s.seq, NAN);
    dO.resize(count);
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < in.memory.size(); ++i)
      if (in.used[i])
        in.memory[i] = normal(random), gradients.memory[i] = NAN;
    for (float &x : dO)
      x = normal(random);
  }
  Inputs inputs() { return {in.view(0), in.view(1), in.view(2), {dO.data(), spec.dO}}; }
};

class Kernels {
public:
  Kernels(const AttentionSpec &spec, const CpuTarget &target)
      : spec(spec),
        forward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m,
                            llvm::StringRef name) { emitAttentionForward(m, name, spec, target); }),
        backward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
          emitAttentionBackward(m, name, spec, target);
        }) {}
  explicit operator bool() const { return forward && backward; }

  void run(Data &x, bool reversed = false) const {
    runForward(x, reversed);
    runBackward(x, reversed);
  }
  void runForward(Data &x, bool reversed = false) const {
    run(forward, {x.in.at(0), x.in.at(1), x.in.at(2), x.o.data(), x.lse.data()},
        attentionForwardTaskCount(spec), reversed);
  }
  void runBackward(Data &x, bool reversed = false) const {
    run(backward,
        {x.in.at(0), x.in.at(1), x.in.at(2), x.o.data(), x.lse.data(), x.dO.data(),
         x.gradients.at(0), x.gradients.at(1), x.gradients.at(2)},
        attentionBackwardTaskCount(spec), reversed);
  }

private:
  static void run(const CompiledKernel &kernel, std::vector<void *> buffers, int64_t tasks,
                  bool reversed) {
    for (int64_t i = 0; i < tasks; ++i)
      kernel.call(buffers, 0, reversed ? tasks - 1 - i : i);
  }

  AttentionSpec spec;
  CompiledKernel forward, backward;
};

/// |got - want| / |want| by norm; a NaN makes it infinite. Results that cancel (a row that sees one
/// key has no gradient) are measured against a tenth of their terms, which are about 1.
double distance(const std::vector<float> &got, const std::vector<double> &want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  double ratio = std::sqrt(difference / std::max(norm, 0.01 * static_cast<double>(want.size())));
  return ratio >= 0 ? ratio : INFINITY;
}

/// The host, narrower vectors, and the widest, which LLVM splits where the host has none: the
/// shapes of tiles differ between them.
std::vector<CpuTarget> everyTarget() {
  std::vector<CpuTarget> targets = hostTargets();
  if (targets.front().vectorBits < 512) {
    targets.push_back(targets.front());
    targets.back().vectorBits = 512;
  }
  return targets;
}
std::vector<CpuTarget> hostTarget() { return {CpuTarget::host()}; }

void check(AttentionSpec spec, bool packed, const std::vector<CpuTarget> &targets) {
  Data data(spec, packed);
  Reference want = reference(data.spec, data.inputs());
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(testing::Message()
                 << "B" << spec.batch << " T" << spec.seq << " H" << spec.heads << "/"
                 << spec.kvHeads << " D" << spec.headDim << (spec.causal ? " causal" : "") << " W"
                 << spec.window << (packed ? " packed" : "") << ", " << target.vectorBits
                 << " bits");
    Data run = data;
    Kernels kernels(run.spec, target);
    ASSERT_TRUE(kernels);
    kernels.run(run);
    EXPECT_LE(distance(run.o, want.o), 1e-6);
    EXPECT_LE(distance(run.lse, want.lse), 1e-6);
    EXPECT_LE(distance(run.gradients.gather(spec, 0), want.dq), 3e-6);
    EXPECT_LE(distance(run.gradients.gather(spec, 1), want.dk), 3e-6);
    EXPECT_LE(distance(run.gradients.gather(spec, 2), want.dv), 1e-6);
    EXPECT_EQ(run.in.memory, data.in.memory);
    run.gradients.expectGapsIntact();

    Data again = data;
    kernels.run(again, /*reversed=*/true);
    EXPECT_EQ(std::memcmp(again.o.data(), run.o.data(), run.o.size() * 4), 0);
    EXPECT_EQ(std::memcmp(again.gradients.memory.data(), run.gradients.memory.data(),
                          run.gradients.memory.size() * 4),
              0);
  }
}

AttentionSpec shape(int64_t batch, int64_t seq, int64_t heads, int64_t kvHeads, int64_t headDim,
                    bool causal = true, int64_t window = 0) {
  AttentionSpec s;
  s.batch = batch, s.seq = seq, s.heads = heads, s.kvHeads = kvHeads, s.headDim = headDim;
  s.scale = 1 / std::sqrt(static_cast<double>(headDim));
  s.causal = causal, s.window = window;
  return s;
}

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

/// Rows of one head's o or dq (contiguous heads apart) whose bits differ from those of another run.
std::vector<int64_t> changedRows(const AttentionSpec &s, const std::vector<float> &x,
                                 const std::vector<float> &y) {
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < s.seq; ++t)
    if (std::memcmp(&x[t * s.headDim], &y[t * s.headDim], s.headDim * sizeof(float)) != 0)
      rows.push_back(t);
  return rows;
}

void checkMaskedNan(int64_t window, const std::vector<CpuTarget> &targets) {
  AttentionSpec spec = shape(1, 200, 1, 1, 24, true, window);
  int64_t spoiled = 90, last = window > 0 ? spoiled + window - 1 : spec.seq - 1;
  std::vector<int64_t> later, earlier;
  for (int64_t t = spoiled; t <= last; ++t)
    later.push_back(t);
  for (int64_t t = window > 0 ? std::max<int64_t>(0, spoiled - window + 1) : 0; t <= spoiled; ++t)
    earlier.push_back(t);
  Data clean(spec, true);
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(testing::Message() << "window " << window << ", " << target.vectorBits);
    Kernels kernels(clean.spec, target);
    ASSERT_TRUE(kernels);
    Data plain = clean, badKey = clean, badQuery = clean;
    kernels.run(plain);
    for (int which : {1, 2}) // a key and its value
      badKey.in.at(which)[spoiled * badKey.spec.k.token] = NAN;
    kernels.run(badKey);
    EXPECT_EQ(changedRows(spec, badKey.o, plain.o), later);
    EXPECT_EQ(changedRows(spec, badKey.gradients.gather(spec, 0), plain.gradients.gather(spec, 0)),
              later);
    badQuery.in.at(0)[spoiled * badQuery.spec.q.token] = INFINITY;
    badQuery.dO[spoiled * badQuery.spec.dO.token] = NAN;
    kernels.run(badQuery);
    EXPECT_EQ(changedRows(spec, badQuery.o, plain.o), std::vector<int64_t>{spoiled});
    for (int which : {1, 2})
      EXPECT_EQ(changedRows(spec, badQuery.gradients.gather(spec, which),
                            plain.gradients.gather(spec, which)),
                earlier);
  }
}

/// What a mask hides has no effect, not even where it is NaN.
TEST(Attention, MaskedNanHasNoEffect) {
  checkMaskedNan(0, hostTarget());
  checkMaskedNan(1, hostTarget());
  checkMaskedNan(50, everyTarget());
}

/// A row none of whose keys count: its scores are all -inf.
TEST(Attention, RowThatSeesNothing) {
  AttentionSpec spec = shape(1, 50, 1, 1, 16);
  Data data(spec, false);
  for (int64_t d = 0; d < 16; ++d) {
    data.in.at(0)[d] = 1;
    data.in.at(1)[d] = -INFINITY;
  }
  for (int64_t t = 1; t < 50; ++t) // the others see that key with a weight of 0 as well
    for (int64_t d = 0; d < 16; ++d)
      data.in.at(0)[t * 16 + d] = std::fabs(data.in.at(0)[t * 16 + d]) + 0.01f;
  for (const CpuTarget &target : everyTarget()) {
    Data run = data;
    Kernels kernels(run.spec, target);
    ASSERT_TRUE(kernels);
    kernels.run(run);
    for (int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(run.o[d], 0);
      EXPECT_EQ(run.gradients.at(1)[d], 0); // that key's gradients
      EXPECT_EQ(run.gradients.at(2)[d], 0);
    }
    EXPECT_EQ(run.lse[0], -INFINITY);
    for (const auto &x : {run.o, run.gradients.gather(spec, 1), run.gradients.gather(spec, 2)})
      for (float element : x)
        EXPECT_TRUE(std::isfinite(element));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  AttentionSpec spec = shape(1, 100, 4, 4, 16);
  spec.scale = 40;
  Data data(spec, false);
  Reference want = reference(data.spec, data.inputs());
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
