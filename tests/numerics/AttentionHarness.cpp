// See AttentionHarness.h.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <list>

namespace gradc::codegen::attention_test {

using row::Dtype;

/// What stands between operands; a number of every dtype.
static const float sentinel = 12288;

/// Calls f(index) for the elements of q, k or v in their order.
template <typename F>
static void forEach(const AttentionSpec &s, const Operands &operands, int which, F f) {
  const AttentionSpec::Strides &to = operands.strides[which];
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.seq; ++t)
      for (int64_t h = 0; h < (which == 0 ? s.heads : s.kvHeads); ++h)
        for (int64_t d = 0; d < s.headDim; ++d)
          f(operands.offsets[which] + b * to.batch + t * to.token + h * to.head + d);
}

Operands::Operands(const AttentionSpec &s, bool packed) {
  int64_t heads[3] = {s.heads, s.kvHeads, s.kvHeads}, end = 0, gap = packed ? 3 : 0;
  int64_t perToken = (s.heads + 2 * s.kvHeads) * s.headDim + gap;
  for (int i = 0; i < 3; ++i) {
    offsets[i] = end;
    if (packed)
      strides[i] = {s.seq * perToken, perToken, s.headDim};
    else
      strides[i] = {s.seq * heads[i] * s.headDim, s.headDim, s.seq * s.headDim};
    end += packed ? heads[i] * s.headDim : s.batch * s.seq * heads[i] * s.headDim;
  }
  memory.assign(packed ? s.batch * s.seq * perToken : end, sentinel);
  used.assign(memory.size(), 0);
  for (int i = 0; i < 3; ++i)
    forEach(s, *this, i, [&](int64_t at) { used[at] = 1; });
}

std::vector<float> Operands::gather(const AttentionSpec &s, int which) const {
  std::vector<float> out;
  forEach(s, *this, which, [&](int64_t at) { out.push_back(memory[at]); });
  return out;
}

void Operands::expectGapsIntact() const {
  for (size_t i = 0; i < memory.size(); ++i)
    if (!used[i])
      ASSERT_EQ(memory[i], sentinel) << "element " << i << " lies outside the operands";
}

Data::Data(const AttentionSpec &s, bool packed, uint32_t seed)
    : spec(s), in(s, packed), gradients(s, packed) {
  spec.q = in.strides[0], spec.k = in.strides[1], spec.v = in.strides[2];
  spec.dq = spec.q, spec.dk = spec.k, spec.dv = spec.v;
  spec.o = spec.dO = AttentionSpec::contiguous(s.seq, s.heads, s.headDim);
  int64_t count = s.batch * s.seq * s.heads * s.headDim;
  o.assign(count, NAN);
  lse.assign(s.batch * s.heads * s.seq, NAN);
  dO.resize(count);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto next = [&] { return static_cast<float>(row::roundTo(s.dtype, normal(random))); };
  for (size_t i = 0; i < in.memory.size(); ++i)
    if (in.used[i])
      in.memory[i] = next(), gradients.memory[i] = NAN;
  for (float &x : dO)
    x = next();
  if (s.documents)
    firstKeys = documentsOf(s, 40);
}

std::vector<int32_t> documentsOf(const AttentionSpec &s, int64_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution ends(1 / static_cast<double>(length));
  std::vector<int32_t> firstKeys;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0, start = 0; t < s.seq; ++t) {
      if (t > 0 && ends(random))
        start = t;
      firstKeys.push_back(static_cast<int32_t>(start));
    }
  return firstKeys;
}

Reference Data::want(const float *storedO) const {
  return reference(spec, {in.view(0),
                          in.view(1),
                          in.view(2),
                          {dO.data(), spec.dO},
                          random,
                          firstKeys.data(),
                          storedO});
}

namespace {

/// The buffers of one call, in the elements' dtypes.
class Arguments {
public:
  row::GuardedBuffer &add(Dtype dtype, const std::vector<float> &values) {
    row::GuardedBuffer &buffer = buffers.emplace_back(dtype, values.size());
    buffer.set({values.begin(), values.end()});
    return buffer;
  }
  /// Three slices of one buffer.
  row::GuardedBuffer &add(Dtype dtype, const Operands &operands) {
    row::GuardedBuffer &buffer = add(dtype, operands.memory);
    for (int64_t offset : operands.offsets)
      addresses.push_back(static_cast<char *>(buffer.data()) + offset * row::byteSize(dtype));
    return buffer;
  }
  row::GuardedBuffer &pass(row::GuardedBuffer &buffer) {
    addresses.push_back(buffer.data());
    return buffer;
  }
  /// What stands between the tensors that are read and those that are written.
  void passMask(const Data &x) {
    if (x.spec.documents)
      pass(x.firstKeys);
    if (x.spec.dropout > 0)
      for (int32_t key : {x.random.seed, x.random.step, x.random.firstRow, x.random.stream})
        pass(std::vector{key});
  }
  void call(const CompiledKernel &kernel, int64_t tasks, bool reversed) {
    for (int64_t i = 0; i < tasks; ++i)
      kernel.call(addresses, 0, reversed ? tasks - 1 - i : i);
    for (row::GuardedBuffer &buffer : buffers)
      EXPECT_TRUE(buffer.intact());
  }

private:
  void pass(const std::vector<int32_t> &numbers) {
    row::GuardedBuffer &buffer = buffers.emplace_back(Dtype::i32, numbers.size());
    buffer.set({numbers.begin(), numbers.end()});
    pass(buffer);
  }

  std::list<row::GuardedBuffer> buffers;
  std::vector<void *> addresses;
};

void read(const row::GuardedBuffer &buffer, std::vector<float> &values) {
  row::Array all = buffer.get();
  values.assign(all.begin(), all.end());
}

} // namespace

Kernels::Kernels(const AttentionSpec &spec, const CpuTarget &target)
    : spec(spec),
      forward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m,
                          llvm::StringRef name) { emitAttentionForward(m, name, spec, target); }),
      backward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
        emitAttentionBackward(m, name, spec, target);
      }) {}

void Kernels::run(Data &x, bool reversed) const {
  runForward(x, reversed);
  runBackward(x, reversed);
}

void Kernels::runForward(Data &x, bool reversed) const {
  Arguments arguments;
  auto &in = arguments.add(spec.dtype, x.in);
  arguments.passMask(x);
  auto &o = arguments.pass(arguments.add(spec.dtype, x.o));
  auto &lse = arguments.pass(arguments.add(Dtype::f32, x.lse));
  arguments.call(forward, attentionForwardTaskCount(spec), reversed);
  read(in, x.in.memory);
  read(o, x.o);
  read(lse, x.lse);
}

void Kernels::runBackward(Data &x, bool reversed) const {
  Arguments arguments;
  auto &in = arguments.add(spec.dtype, x.in);
  arguments.pass(arguments.add(spec.dtype, x.o));
  arguments.pass(arguments.add(Dtype::f32, x.lse));
  arguments.pass(arguments.add(spec.dtype, x.dO));
  arguments.passMask(x);
  auto &gradients = arguments.add(spec.dtype, x.gradients);
  arguments.call(backward, attentionBackwardTaskCount(spec), reversed);
  read(in, x.in.memory);
  read(gradients, x.gradients.memory);
}

double distance(const std::vector<float> &got, const std::vector<double> &want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i] && std::isinf(want[i]))
      continue;
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  double ratio = std::sqrt(difference / std::max(norm, 0.01 * static_cast<double>(want.size())));
  return ratio >= 0 ? ratio : INFINITY;
}

/// Half a unit in the last place, relative; 0 for f32, whose roundings are in the other bounds.
static double roundoff(Dtype dtype) {
  return dtype == Dtype::bf16 ? 0x1p-8 : dtype == Dtype::f16 ? 0x1p-11 : 0;
}

/// Results of f32 are within `bound` by norm. Narrow ones are rounded once: each element is within
/// half a unit, besides 8 times the bound, relative to the root of the mean square, for its f32.
static void expectResult(Dtype dtype, const std::vector<float> &got,
                         const std::vector<double> &want, double bound, const char *what) {
  EXPECT_LE(distance(got, want), bound + roundoff(dtype)) << what;
  if (dtype == Dtype::f32)
    return;
  double squares = 0;
  for (double x : want)
    squares += x * x;
  double typical = std::max(0.1, std::sqrt(squares / static_cast<double>(want.size())));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]), // false for a NaN
              roundoff(dtype) * std::fabs(want[i]) + 8 * bound * typical)
        << what << ", element " << i << ": " << got[i] << " for " << want[i];
}

std::vector<CpuTarget> everyTarget() {
  std::vector<CpuTarget> targets = hostTargets();
  if (targets.front().vectorBits < 512) {
    targets.push_back(targets.front());
    targets.back().vectorBits = 512;
  }
  return targets;
}
std::vector<CpuTarget> hostTarget() { return {CpuTarget::host()}; }

static bool sameBits(const std::vector<float> &x, const std::vector<float> &y) {
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

void check(const Data &data, const std::vector<CpuTarget> &targets) {
  const AttentionSpec &spec = data.spec;
  Reference want = data.want();
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(testing::Message()
                 << "B" << spec.batch << " T" << spec.seq << " H" << spec.heads << "/"
                 << spec.kvHeads << " D" << spec.headDim << (spec.causal ? " causal" : "") << " W"
                 << spec.window << (spec.documents ? " documents" : "") << " dropout "
                 << spec.dropout << " dtype " << static_cast<int>(spec.dtype) << ", "
                 << target.vectorBits << " bits");
    Data run = data;
    Kernels kernels(spec, target);
    ASSERT_TRUE(kernels);
    kernels.run(run);
    expectResult(spec.dtype, run.o, want.o, 1e-6, "o");
    EXPECT_LE(distance(run.lse, want.lse), 1e-6);
    Reference gradients = spec.narrow() ? data.want(run.o.data()) : want;
    expectResult(spec.dtype, run.gradients.gather(spec, 0), gradients.dq, 3e-6, "dq");
    expectResult(spec.dtype, run.gradients.gather(spec, 1), gradients.dk, 3e-6, "dk");
    expectResult(spec.dtype, run.gradients.gather(spec, 2), gradients.dv, 1e-6, "dv");
    EXPECT_TRUE(sameBits(run.in.memory, data.in.memory));
    run.gradients.expectGapsIntact();

    Data again = data;
    kernels.run(again, /*reversed=*/true);
    EXPECT_TRUE(sameBits(again.o, run.o));
    EXPECT_TRUE(sameBits(again.gradients.memory, run.gradients.memory));
  }
}

void check(const AttentionSpec &spec, bool packed, const std::vector<CpuTarget> &targets) {
  check(Data(spec, packed), targets);
}

AttentionSpec shape(int64_t batch, int64_t seq, int64_t heads, int64_t kvHeads, int64_t headDim,
                    bool causal, int64_t window) {
  AttentionSpec s;
  s.batch = batch, s.seq = seq, s.heads = heads, s.kvHeads = kvHeads, s.headDim = headDim;
  s.scale = 1 / std::sqrt(static_cast<double>(headDim));
  s.causal = causal, s.window = window;
  return s;
}

} // namespace gradc::codegen::attention_test
