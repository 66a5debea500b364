// The GPU's kernels that are not row programs, emulated, against plain loops:
// at sizes that leave ragged rows, columns and blocks. Sums in the order of the
// tokens are exact.
#include "codegen/gpu/Documents.h"
#include "codegen/gpu/Embedding.h"
#include "codegen/gpu/Rope.h"
#include "codegen/gpu/Sums.h"
#include "codegen/gpu/TransposedCopy.h"
#include "ir/row/Evaluate.h"
#include "tests/numerics/Elements.h"
#include "tests/numerics/EmulatedKernels.h"
#include "tests/numerics/Traffic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

using namespace gradc::codegen;
using gradc::row::Dtype;
using gradc::rt::EmulatedBuffer;

constexpr gpu::GpuTarget target{80};

/// Numbers of the dtype.
std::vector<float> randomFloats(int64_t count, uint32_t seed, Dtype dtype = Dtype::f32) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &x : out)
    x = static_cast<float>(gradc::row::roundTo(dtype, normal(random)));
  return out;
}

template <typename Number> EmulatedBuffer reads(std::vector<Number> &numbers) {
  return {numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(Number)), false};
}
template <typename Number> EmulatedBuffer writes(std::vector<Number> &numbers) {
  return {numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(Number)), true};
}

/// All but the first `count`.
template <typename Number> EmulatedBuffer behind(std::vector<Number> &numbers, int64_t count) {
  auto bytes = static_cast<int64_t>(sizeof(Number));
  return {numbers.data() + count, (static_cast<int64_t>(numbers.size()) - count) * bytes, false};
}

/// Runs what `emit` prints under the name it is given; it accesses what `work` says.
template <typename Emit>
void run(Emit emit, const std::vector<EmulatedBuffer> &buffers, int64_t extent, int64_t tasks,
         const gradc::KernelWork &work) {
  gpu::GpuModule module;
  emit(module.get(), "kernel");
  gpu::EmulatedKernels kernels(module, target);
  ASSERT_TRUE(kernels);
  kernels.run("kernel", buffers, extent, tasks);
  gradc::test::expectTraffic(kernels.traffic(), work);
}

TEST(GpuFamilies, FoldRows) {
  for (int64_t columns : {1, 31, 33, 100})
    for (int64_t rows : {0, 1, 7, 32, 75}) {
      std::vector<float> partials = randomFloats(rows * columns, 3), out(columns, 77);
      int64_t tasks = (columns + gpu::foldColumnsPerTask - 1) / gpu::foldColumnsPerTask;
      run([&](auto module, auto name) { gpu::emitFoldRows(module, name, columns, target); },
          {reads(partials), writes(out)}, rows, tasks, gpu::sumWork(rows * columns, columns, 1));
      for (int64_t column = 0; column < columns; ++column) {
        double want = 0;
        for (int64_t row = 0; row < rows; ++row)
          want += partials[row * columns + column];
        EXPECT_NEAR(out[column], want, 1e-5) << rows << " rows, column " << column;
      }
    }
}

TEST(GpuFamilies, TransposedCopy) {
  for (int64_t rows : {16, 48, 64, 80})
    for (int64_t columns : {16, 64, 112}) {
      std::vector<uint8_t> in(rows * columns), out(rows * columns, 255);
      for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<uint8_t>(i * 7 % 251);
      run([&](auto module,
              auto name) { gpu::emitTransposedCopy(module, name, rows, columns, target); },
          {reads(in), writes(out)}, rows, gpu::transposedCopyBlocks(rows, columns),
          gpu::transposedCopyWork(rows, columns));
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          ASSERT_EQ(out[column * rows + row], in[row * columns + column])
              << rows << " x " << columns << ": " << row << ", " << column;
    }
}

TEST(GpuFamilies, SquareSumsOfChunks) {
  constexpr int64_t perTask = gradc::row::flatElementsPerTask;
  for (int64_t extent : {1, 1000, 16384, 16387, 40000}) {
    std::vector<float> x = randomFloats(extent, 5);
    int64_t tasks = (extent + perTask - 1) / perTask;
    std::vector<float> partials(tasks, -1);
    run([](auto module, auto name) { gpu::emitChunkSquareSums(module, name, target); },
        {reads(x), writes(partials)}, extent, tasks, gpu::sumWork(extent, tasks, 2));
    for (int64_t task = 0; task < tasks; ++task) {
      double want = 0;
      for (int64_t i = task * perTask; i < std::min(extent, (task + 1) * perTask); ++i)
        want += static_cast<double>(x[i]) * x[i];
      EXPECT_FLOAT_EQ(partials[task], static_cast<float>(want)) << extent << ", task " << task;
    }
  }
}

TEST(GpuFamilies, SumOfEverything) {
  for (int64_t extent : {0, 1, 31, 4096, 20001}) {
    std::vector<float> x = randomFloats(extent, 9), out{5};
    double want = 0;
    for (float number : x)
      want += number;
    run([](auto module, auto name) { gpu::emitFoldAll(module, name, target); },
        {reads(x), writes(out)}, extent, 1, gpu::sumWork(extent, 1, 1));
    EXPECT_FLOAT_EQ(out[0], static_cast<float>(want)) << extent;
  }
  std::vector<float> withNan{1, NAN, 2}, out{0};
  run([](auto module, auto name) { gpu::emitFoldAll(module, name, target); },
      {reads(withNan), writes(out)}, 3, 1, gpu::sumWork(3, 1, 1));
  EXPECT_TRUE(std::isnan(out[0]));
}

/// With repeats and some negative.
std::vector<int32_t> randomTokens(int64_t count, int64_t vocab) {
  std::mt19937 random(5);
  std::vector<int32_t> out(count);
  for (int32_t &x : out)
    x = random() % 7 == 0 ? -1 - static_cast<int32_t>(random() % 100)
                          : static_cast<int32_t>(random() % vocab);
  return out;
}

TEST(GpuFamilies, EmbeddingLooksUpRows) {
  for (auto [tableType, outType] :
       {std::pair(Dtype::f32, Dtype::f32), {Dtype::bf16, Dtype::bf16}, {Dtype::f32, Dtype::f16}})
    for (int64_t channels : {1, 100, 768}) {
      const int64_t vocab = 50, count = 37;
      EmbeddingSpec spec{vocab, channels, tableType, outType};
      std::vector<int32_t> tokens = randomTokens(count, vocab);
      std::vector<float> table = randomFloats(vocab * channels, 1, tableType);
      std::vector<std::byte> stored = gradc::row::encode(tableType, table);
      std::vector<std::byte> result(count * channels * gradc::row::byteSize(outType));
      run([&](auto module, auto name) { gpu::emitEmbedding(module, name, spec, target); },
          {reads(tokens), reads(stored), writes(result)}, count, gpu::taskCount(spec, count),
          gpu::embeddingWork(spec, count));
      std::vector<float> got = gradc::row::decode<float>(outType, result);
      for (int64_t i = 0; i < count * channels; ++i) {
        int32_t token = tokens[i / channels];
        double want = token < 0 ? 0 : table[token * channels + i % channels];
        ASSERT_EQ(got[i], static_cast<float>(gradc::row::roundTo(outType, want))) << i;
      }
    }
}

TEST(GpuFamilies, EmbeddingGradientAddsInOrder) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (bool accumulate : {false, true})
      for (int64_t channels : {7, 100, 768}) {
        const int64_t vocab = 13, count = 150;
        EmbeddingGradientSpec spec{vocab, channels, accumulate, dtype};
        std::vector<int32_t> tokens = randomTokens(count, vocab - 1); // one token never comes
        std::vector<float> dy = randomFloats(count * channels, 2, dtype);
        std::vector<float> before = randomFloats(vocab * channels, 4), out = before;
        std::vector<std::byte> stored = gradc::row::encode(dtype, dy);
        run([&](auto module, auto name) { gpu::emitEmbeddingGradient(module, name, spec, target); },
            {reads(tokens), reads(stored), writes(out)}, count, gpu::taskCount(spec, count),
            gpu::embeddingGradientWork(spec, count));
        for (int64_t at = 0; at < vocab * channels; ++at) {
          float want = 0;
          for (int64_t i = 0; i < count; ++i)
            if (tokens[i] == at / channels)
              want += dy[i * channels + at % channels];
          ASSERT_EQ(out[at], accumulate ? before[at] + want : want) << at;
        }
      }
}

/// x begins at a multiple of the spec's lanes and no more.
void checkRope(const RopeSpec &spec, int64_t batch) {
  int64_t half = spec.headDim / 2, tokens = batch * spec.seq;
  std::vector<float> x = randomFloats(batch * spec.x.batch, 1, spec.dtype);
  std::vector<float> cosines = randomFloats(spec.seq * half, 2),
                     sines = randomFloats(spec.seq * half, 3);
  std::vector<int32_t> positions = randomTokens(tokens, spec.seq + 5); // beyond both ends
  std::vector<std::byte> in = gradc::row::encode(spec.dtype, x);
  int64_t skipped = spec.alignedLanes * gradc::row::byteSize(spec.dtype);
  if (spec.alignedLanes < 8)
    in.insert(in.begin(), skipped, std::byte());
  std::vector<std::byte> out(batch * spec.out.batch * gradc::row::byteSize(spec.dtype));
  std::vector<EmulatedBuffer> buffers{reads(in), reads(cosines), reads(sines)};
  if (spec.alignedLanes < 8)
    buffers[0] = behind(in, skipped);
  if (spec.positions)
    buffers.push_back(reads(positions));
  buffers.push_back(writes(out));
  run([&](auto module, auto name) { gpu::emitRope(module, name, spec, target); }, buffers, tokens,
      gpu::taskCount(spec, tokens), gpu::ropeWork(spec, tokens));
  std::vector<float> got = gradc::row::decode<float>(spec.dtype, out);
  auto place = [&](const RopeSpec::Strides &to, int64_t token, int64_t head) {
    return token / spec.seq * to.batch + token % spec.seq * to.token + head * to.head;
  };
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t head = 0; head < spec.heads; ++head)
      for (int64_t i = 0; i < half; ++i) {
        int64_t row = spec.positions ? std::clamp<int64_t>(positions[token], 0, spec.seq - 1)
                                     : token % spec.seq;
        double c = cosines[row * half + i], s = sines[row * half + i] * (spec.inverse ? -1 : 1);
        double low = x[place(spec.x, token, head) + i];
        double high = x[place(spec.x, token, head) + i + half];
        int64_t at = place(spec.out, token, head) + i;
        for (auto [index, want] :
             {std::pair(at, low * c - high * s), {at + half, high * c + low * s}}) {
          double bound = 4e-6 + gradc::row::unitRoundoff(spec.dtype) * std::fabs(want) * 1.01;
          ASSERT_NEAR(got[index], want, bound) << "token " << token << " head " << head << " " << i;
        }
      }
}

TEST(GpuFamilies, Rope) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (int64_t headDim : {6, 64})
      for (bool inverse : {false, true})
        for (bool positions : {false, true}) {
          const int64_t seq = 11, heads = 3, width = heads * headDim, wide = width + headDim;
          RopeSpec spec{seq,
                        heads,
                        headDim,
                        inverse,
                        {seq * wide, wide, headDim},
                        {seq * width, width, headDim},
                        dtype,
                        positions};
          checkRope(spec, 2);
        }
}

/// Vectors are as wide as what the operand is aligned to; the emulator would report one that is
/// not.
TEST(GpuFamilies, OperandsThatBeginAnywhere) {
  for (int64_t alignment : {4, 8}) {
    const int64_t skipped = alignment / 4, count = 5003;
    std::vector<float> x = randomFloats(count + skipped, 5), sum{0}, squares{0};
    double wantSum = 0, wantSquares = 0;
    for (int64_t i = skipped; i < count + skipped; ++i) {
      wantSum += x[i];
      wantSquares += static_cast<double>(x[i]) * x[i];
    }
    run([&](auto module, auto name) { gpu::emitFoldAll(module, name, target, alignment); },
        {behind(x, skipped), writes(sum)}, count, 1, gpu::sumWork(count, 1, 1));
    run([&](auto module, auto name) { gpu::emitChunkSquareSums(module, name, target, alignment); },
        {behind(x, skipped), writes(squares)}, count, 1, gpu::sumWork(count, 1, 2));
    EXPECT_FLOAT_EQ(sum[0], static_cast<float>(wantSum));
    EXPECT_FLOAT_EQ(squares[0], static_cast<float>(wantSquares));

    const int64_t vocab = 9, channels = 96, tokenCount = 21;
    std::vector<int32_t> tokens = randomTokens(tokenCount, vocab);
    std::vector<float> table = randomFloats(vocab * channels + skipped, 1),
                       rows(tokenCount * channels), dy = table, gradient(3 * channels);
    EmbeddingSpec lookUp{vocab, channels, Dtype::f32, Dtype::f32, skipped};
    run([&](auto module, auto name) { gpu::emitEmbedding(module, name, lookUp, target); },
        {reads(tokens), behind(table, skipped), writes(rows)}, tokenCount,
        gpu::taskCount(lookUp, tokenCount), gpu::embeddingWork(lookUp, tokenCount));
    for (int64_t i = 0; i < tokenCount * channels; ++i) {
      int32_t token = tokens[i / channels];
      ASSERT_EQ(rows[i], token < 0 ? 0 : table[skipped + token * channels + i % channels]) << i;
    }
    std::vector<int32_t> rowOf{0, 1, 2, 0, 1, 2, 0, 1, 2};
    EmbeddingGradientSpec adds{3, channels, false, Dtype::f32, skipped};
    run([&](auto module, auto name) { gpu::emitEmbeddingGradient(module, name, adds, target); },
        {reads(rowOf), behind(dy, skipped), writes(gradient)}, vocab, gpu::taskCount(adds, vocab),
        gpu::embeddingGradientWork(adds, vocab));
    for (int64_t i = 0; i < 3 * channels; ++i)
      ASSERT_EQ(gradient[i],
                dy[skipped + i] + dy[skipped + i + 3 * channels] + dy[skipped + i + 6 * channels])
          << i;
  }
  RopeSpec rope{5, 2, 32, false, {5 * 64, 64, 32}, {5 * 64, 64, 32}, Dtype::bf16};
  for (Dtype dtype : {Dtype::bf16, Dtype::f32})
    for (int64_t lanes : {1, 2, 4}) {
      rope.dtype = dtype;
      rope.alignedLanes = lanes;
      checkRope(rope, 2);
    }
}

void checkDocuments(const DocumentsSpec &spec, std::vector<int32_t> tokens) {
  auto count = static_cast<int64_t>(tokens.size());
  std::vector<int32_t> firstKeys(count, -77), positions(count, -77);
  run([&](auto module, auto name) { gpu::emitDocuments(module, name, spec, target); },
      {reads(tokens), writes(firstKeys), writes(positions)}, count, gpu::taskCount(spec, count),
      gpu::documentsWork(spec, count));
  int64_t start = 0;
  for (int64_t n = 0; n < count; ++n) {
    int64_t place = n % spec.seq;
    if (place == 0 || tokens[n - 1] == spec.separator)
      start = place;
    ASSERT_EQ(firstKeys[n], start) << "token " << n;
    ASSERT_EQ(positions[n], place - start) << "token " << n;
  }
}

TEST(GpuFamilies, Documents) {
  std::mt19937 random(4);
  for (int vocab : {1, 2, 5, 50, 500})
    for (int64_t seq : {1, 31, 32, 65, 130}) {
      std::vector<int32_t> tokens(3 * seq);
      for (int32_t &token : tokens)
        token = static_cast<int32_t>(random() % vocab);
      checkDocuments({seq, vocab == 1 ? 0 : 1}, tokens);
    }
}

} // namespace
