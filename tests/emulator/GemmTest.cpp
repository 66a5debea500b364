// The products of a GPU's library as the emulated device plays them: types, scales, tf32.
#include "runtime/emulator/Gemm.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace gradc::rt {
namespace {

/// Numbers of one type, from their bits: bits[i] is values[i] exactly.
struct Numbers {
  GradcType type;
  int64_t bytes;
  std::vector<uint32_t> bits;
  std::vector<double> values;
};

const Numbers operands[] = {
    {GRADC_F32, 4, {0x3f800000, 0xc0200000, 0x3e800000, 0x40400000}, {1, -2.5, 0.25, 3}},
    {GRADC_BF16, 2, {0x3f80, 0xc020, 0x3e80, 0x4040}, {1, -2.5, 0.25, 3}},
    {GRADC_F16, 2, {0x3c00, 0xc100, 0x3400, 0x0001}, {1, -2.5, 0.25, 0x1p-24}},
    {GRADC_F8E4M3, 1, {0x38, 0xc2, 0x01, 0x7e}, {1, -2.5, 0x1p-9, 448}},
    {GRADC_F8E5M2, 1, {0x3c, 0xc1, 0x01, 0x7b}, {1, -2.5, 0x1p-16, 57344}},
};

std::vector<std::byte> memoryOf(const Numbers &numbers) {
  std::vector<std::byte> memory;
  for (uint32_t bits : numbers.bits)
    for (int64_t i = 0; i < numbers.bytes; ++i)
      memory.push_back(std::byte(bits >> (8 * i)));
  return memory;
}

int64_t bytesOf(GradcType type) {
  for (const Numbers &numbers : operands)
    if (numbers.type == type)
      return numbers.bytes;
  return 0;
}

/// 2 x 2 matrices, row by row, with C in f32.
GradcGemm squares(GradcType a, GradcType b) {
  GradcGemm gemm{};
  gemm.name = "squares";
  gemm.m = gemm.n = gemm.k = 2;
  gemm.batch[0] = gemm.batch[1] = 1;
  auto matrix = [](GradcType type, int64_t bytes) {
    return GradcMatrix{{GRADC_ARENA, 0, 0, 4 * bytes}, 2, 1, {0, 0}, type};
  };
  gemm.a = matrix(a, bytesOf(a));
  gemm.b = matrix(b, bytesOf(b));
  gemm.c = matrix(GRADC_F32, 4);
  return gemm;
}

TEST(EmulatedGemm, ReadsEveryType) {
  constexpr float scale = 0.5f;
  for (const Numbers &a : operands)
    for (const Numbers &b : operands) {
      float c[4];
      ASSERT_TRUE(emulateGemm(squares(a.type, b.type), {memoryOf(a).data(), memoryOf(b).data(),
                                                        reinterpret_cast<std::byte *>(c), scale})
                      .ok());
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          EXPECT_EQ(c[2 * i + j], float(scale * (a.values[2 * i] * b.values[j] +
                                                 a.values[2 * i + 1] * b.values[2 + j])))
              << a.type << " x " << b.type << ": " << i << ", " << j;
    }
}

TEST(EmulatedGemm, RoundsToTheResultsType) {
  const float a[4] = {1, 0x1p-9f, 0x1p-8f, 1}, b[4] = {1, 0, 1, 3};
  GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
  gemm.c.type = GRADC_BF16;
  uint16_t c[4];
  ASSERT_TRUE(emulateGemm(gemm, {reinterpret_cast<const std::byte *>(a),
                                 reinterpret_cast<const std::byte *>(b),
                                 reinterpret_cast<std::byte *>(c), 1})
                  .ok());
  EXPECT_EQ(c[0], 0x3f80); // 1 + 2^-9 is nearer to 1 than to 1 + 2^-7
  EXPECT_EQ(c[1], 0x3bc0); // 3 * 2^-9
  EXPECT_EQ(c[2], 0x3f80); // 1 + 2^-8: half way, to even
  EXPECT_EQ(c[3], 0x4040); // 3
}

TEST(EmulatedGemm, Tf32RoundsOperandsAndAccumulatesInF32) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[4] = {1 + 0x1p-11f, 0, 1 + 0x1.8p-10f, nan}, b[4] = {1, 0, 0, 1};
  float c[4] = {2, 2, 2, 2};
  GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
  gemm.tf32 = gemm.accumulate = 1;
  ASSERT_TRUE(emulateGemm(gemm, {reinterpret_cast<const std::byte *>(a),
                                 reinterpret_cast<const std::byte *>(b),
                                 reinterpret_cast<std::byte *>(c), 1})
                  .ok());
  EXPECT_EQ(c[0], 3); // half way, to even
  EXPECT_EQ(c[1], 2);
  EXPECT_TRUE(std::isnan(c[2])); // zero times NaN
  EXPECT_TRUE(std::isnan(c[3]));
}

TEST(EmulatedGemm, RefusesTypesThatAreNone) {
  GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
  gemm.c.type = GRADC_F8E4M3;
  EXPECT_FALSE(emulateGemm(gemm, {}).ok());
  gemm = squares(static_cast<GradcType>(5), GRADC_F32);
  EXPECT_FALSE(emulateGemm(gemm, {}).ok());
}

/// The result of a product whose operands all are `memory`, which must not be touched if it fails.
Status onZeros(const GradcGemm &gemm) {
  std::vector<float> memory(64);
  auto *bytes = reinterpret_cast<std::byte *>(memory.data());
  return emulateGemm(gemm, {bytes, bytes, bytes, 1});
}

TEST(EmulatedGemm, RefusesWhatReachesOutsideOfItsBuffer) {
  const std::pair<GradcMatrix GradcGemm::*, const char *> matrices[] = {
      {&GradcGemm::a, "operand A"}, {&GradcGemm::b, "operand B"}, {&GradcGemm::c, "operand C"}};
  for (auto [matrix, name] : matrices) {
    auto expectRefused = [&, matrix = matrix, name = name](auto change) {
      GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
      ASSERT_TRUE(onZeros(gemm).ok());
      change(gemm, gemm.*matrix);
      Status status = onZeros(gemm);
      EXPECT_EQ(status.code(), ExitCode::defect);
      EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    };
    expectRefused([](GradcGemm &, GradcMatrix &m) { m.buffer.bytes = 15; });
    expectRefused([](GradcGemm &, GradcMatrix &m) { m.rowStride = 3; });
    expectRefused([](GradcGemm &, GradcMatrix &m) { m.columnStride = -1; });
    expectRefused([](GradcGemm &gemm, GradcMatrix &m) {
      gemm.batch[1] = 2;
      m.batchStride[1] = 1;
    });
  }
}

TEST(EmulatedGemm, RefusesEpiloguesThatReachOutside) {
  GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
  gemm.bias.bytes = 8;
  gemm.aux.bytes = 16;
  gemm.auxStride = 2;
  std::vector<float> memory(64);
  auto *bytes = reinterpret_cast<std::byte *>(memory.data());
  auto refusal = [&](const GradcGemm &changed) {
    Status status = emulateGemm(changed, {bytes, bytes, bytes, 1, bytes, bytes});
    return std::string(status.message());
  };
  for (int64_t epilogue = GRADC_NO_EPILOGUE; epilogue <= GRADC_BIAS_GRADIENT_B; ++epilogue) {
    gemm.epilogue = epilogue;
    EXPECT_EQ(refusal(gemm), "") << epilogue;
  }
  gemm.epilogue = GRADC_GELU_AUX_BIAS;
  auto expectRefused = [&](auto change, const char *says) {
    GradcGemm changed = gemm;
    change(changed);
    EXPECT_NE(refusal(changed).find(says), std::string::npos) << refusal(changed);
  };
  expectRefused([](GradcGemm &g) { g.bias.bytes = 7; }, "operand bias");
  expectRefused([](GradcGemm &g) { g.aux.bytes = 15; }, "operand aux");
  expectRefused([](GradcGemm &g) { g.auxStride = 3; }, "operand aux");
  expectRefused([](GradcGemm &g) { g.biasType = GRADC_F8E4M3; }, "type 3");
  expectRefused([](GradcGemm &g) { g.epilogue = 10; }, "epilogue 10");
  gemm.c.buffer.bytes = gemm.a.buffer.bytes = gemm.b.buffer.bytes = 64;
  expectRefused([](GradcGemm &g) { g.batch[0] = 2; }, "an epilogue of 2 batches");
}

TEST(EmulatedGemm, TakesAllOfItsBuffer) {
  GradcGemm gemm = squares(GRADC_F32, GRADC_F32);
  gemm.batch[0] = 2;
  for (GradcMatrix *matrix : {&gemm.a, &gemm.b, &gemm.c}) {
    *matrix = {{GRADC_ARENA, 0, 0, 4 * 8}, 1, 2, {4, 0}, GRADC_F32}; // transposed, two of them
    ASSERT_TRUE(onZeros(gemm).ok());
  }
  gemm.batch[0] = 0;
  gemm.a.buffer.bytes = 0; // no element is read
  EXPECT_TRUE(onZeros(gemm).ok());
}

} // namespace
} // namespace gradc::rt
