// See AttentionData.h.
#include "tests/numerics/AttentionData.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

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

Operands::Operands(const AttentionSpec &s, bool packed, int64_t gap) {
  int64_t heads[3] = {s.heads, s.kvHeads, s.kvHeads}, end = 0;
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

Data::Data(const AttentionSpec &s, bool packed, uint32_t seed, int64_t gap)
    : spec(s), in(s, packed, gap), gradients(s, packed, gap) {
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

// --- the buffers of a call

row::GuardedBuffer &Arguments::buffer(Dtype dtype, const std::vector<float> &values) {
  row::GuardedBuffer &buffer = buffers.emplace_back(dtype, values.size());
  buffer.set({values.begin(), values.end()});
  return buffer;
}
row::GuardedBuffer &Arguments::add(Dtype dtype, const std::vector<float> &values, bool writable) {
  row::GuardedBuffer &added = buffer(dtype, values);
  auto bytes = static_cast<int64_t>(values.size()) * row::byteSize(dtype);
  places.push_back({added.data(), bytes, writable});
  return added;
}
row::GuardedBuffer &Arguments::add(Dtype dtype, const Operands &operands, bool writable) {
  row::GuardedBuffer &added = buffer(dtype, operands.memory);
  for (int64_t offset : operands.offsets) {
    int64_t before = offset * row::byteSize(dtype);
    auto bytes = static_cast<int64_t>(operands.memory.size()) * row::byteSize(dtype) - before;
    places.push_back({static_cast<char *>(added.data()) + before, bytes, writable});
  }
  return added;
}
void Arguments::addMask(const Data &x) {
  if (x.spec.documents)
    add(x.firstKeys);
  if (x.spec.dropout > 0)
    for (int32_t key : {x.random.seed, x.random.step, x.random.firstRow, x.random.stream})
      add(std::vector{key});
}
void Arguments::add(const std::vector<int32_t> &numbers) {
  row::GuardedBuffer &added = buffers.emplace_back(Dtype::i32, numbers.size());
  added.set({numbers.begin(), numbers.end()});
  places.push_back({added.data(), static_cast<int64_t>(numbers.size() * sizeof(int32_t)), false});
}
bool Arguments::intact() const { return std::ranges::all_of(buffers, &row::GuardedBuffer::intact); }

static void read(const row::GuardedBuffer &buffer, std::vector<float> &values) {
  row::Array all = buffer.get();
  values.assign(all.begin(), all.end());
}

void callForward(Data &x, Call call) {
  Arguments arguments;
  auto &in = arguments.add(x.spec.dtype, x.in, /*writable=*/false);
  arguments.addMask(x);
  auto &o = arguments.add(x.spec.dtype, x.o, /*writable=*/true);
  auto &lse = arguments.add(Dtype::f32, x.lse, /*writable=*/true);
  call(arguments);
  EXPECT_TRUE(arguments.intact());
  read(in, x.in.memory);
  read(o, x.o);
  read(lse, x.lse);
}

void callBackward(Data &x, Call call) {
  Arguments arguments;
  auto &in = arguments.add(x.spec.dtype, x.in, /*writable=*/false);
  arguments.add(x.spec.dtype, x.o, /*writable=*/false);
  arguments.add(Dtype::f32, x.lse, /*writable=*/false);
  arguments.add(x.spec.dtype, x.dO, /*writable=*/false);
  arguments.addMask(x);
  auto &gradients = arguments.add(x.spec.dtype, x.gradients, /*writable=*/true);
  call(arguments);
  EXPECT_TRUE(arguments.intact());
  read(in, x.in.memory);
  read(gradients, x.gradients.memory);
}

// --- comparison

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

void expectResult(Dtype dtype, const std::vector<float> &got, const std::vector<double> &want,
                  double bound, const char *what) {
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

bool sameBits(const std::vector<float> &x, const std::vector<float> &y) {
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
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
