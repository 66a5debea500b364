// ldmatrix and mma.sync against products in f64, by the fragments' layouts in the PTX manual.
#include "tests/emulator/LoadedModule.h"

#include "runtime/emulator/Numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace gradc {
namespace {

using namespace rt::emulator;

/// An element type of operands.
struct Format {
  const char *name;
  int bits;
  uint32_t (*encode)(float);
  float (*decode)(uint32_t);
};

const Format bf16{"bf16", 16, [](float x) { return uint32_t(toBf16(x)); },
                  [](uint32_t bits) { return fromBf16(static_cast<uint16_t>(bits)); }};
const Format f16{"f16", 16, [](float x) { return uint32_t(toF16(x)); },
                 [](uint32_t bits) { return fromF16(static_cast<uint16_t>(bits)); }};
const Format tf32{"tf32", 32,
                  [](float x) { return std::bit_cast<uint32_t>(x) & ~uint32_t(0x1fff); },
                  [](uint32_t bits) { return std::bit_cast<float>(bits); }};
const Format e4m3{"e4m3", 8, [](float x) { return uint32_t(toE4m3(x)); },
                  [](uint32_t bits) { return fromE4m3(static_cast<uint8_t>(bits)); }};
const Format e5m2{"e5m2", 8, [](float x) { return uint32_t(toE5m2(x)); },
                  [](uint32_t bits) { return fromE5m2(static_cast<uint8_t>(bits)); }};

struct Product {
  const char *intrinsic; ///< after llvm.nvvm.mma.
  int k;
  const Format &a, &b;
  const char *operandType; ///< of A's and B's registers in LLVM IR
};

const Product products[] = {
    {"m16n8k8.row.col.bf16", 8, bf16, bf16, "i32"},
    {"m16n8k16.row.col.bf16", 16, bf16, bf16, "i32"},
    {"m16n8k8.row.col.f32.f32", 8, f16, f16, "<2 x half>"},
    {"m16n8k16.row.col.f32.f32", 16, f16, f16, "<2 x half>"},
    {"m16n8k4.row.col.tf32", 4, tf32, tf32, "i32"},
    {"m16n8k8.row.col.tf32", 8, tf32, tf32, "i32"},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, e4m3, e4m3, "i32"},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 32, e5m2, e5m2, "i32"},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 32, e4m3, e5m2, "i32"},
    {"m16n8k32.row.col.f32.e5m2.e4m3.f32", 32, e5m2, e4m3, "i32"},
};

/// A kernel of one warp: lane l multiplies the fragments in words[l], A's registers, then B's, then
/// C's, and writes D's to out[l].
std::string productKernel(const Product &product, int registers) {
  std::string type = product.operandType, body, arguments, words = std::to_string(registers + 4);
  for (int i = 0; i < registers + 4; ++i) {
    std::string number = std::to_string(i), kind = i < registers ? type : "float";
    body += "  %p" + number + " = getelementptr i32, ptr addrspace(1) %mine, i32 " + number +
            "\n  %r" + number + " = load " + kind + ", ptr addrspace(1) %p" + number +
            ", align 4\n";
    arguments += (i ? ", " : "") + kind + " %r" + number;
  }
  std::string result;
  for (int i = 0; i < 4; ++i) {
    std::string number = std::to_string(i);
    result += "  %d" + number + " = extractvalue {float, float, float, float} %d, " + number +
              "\n  %o" + number + " = getelementptr float, ptr addrspace(1) %to, i32 " + number +
              "\n  store float %d" + number + ", ptr addrspace(1) %o" + number + ", align 4\n";
  }
  return "define ptx_kernel void @product(ptr addrspace(1) %words, ptr addrspace(1) %out, i64 "
         "%extent) {\n"
         "  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()\n"
         "  %mine = getelementptr [" +
         words + " x i32], ptr addrspace(1) %words, i32 %lane\n" + body +
         "  %d = call {float, float, float, float} @llvm.nvvm.mma." + product.intrinsic + "(" +
         arguments + ")\n  %to = getelementptr [4 x float], ptr addrspace(1) %out, i32 %lane\n" +
         result + "  ret void\n}\n";
}

/// Numbers of both signs and several magnitudes.
float sample(int i) { return std::ldexp(static_cast<float>(i * 37 % 29 - 14), i % 5 - 4); }

TEST(EmulatorMatrix, ProductsAgreeWithF64) {
  for (const Product &product : products) {
    SCOPED_TRACE(product.intrinsic);
    int k = product.k, perWord = 32 / product.a.bits;
    int aRegisters = k / perWord / 2, bRegisters = k / perWord / 4;
    int words = aRegisters + bRegisters + 4;
    auto a = [&](int row, int i) { return product.a.encode(sample(row * 31 + i)); };
    auto b = [&](int i, int column) { return product.b.encode(sample(i * 11 + column * 3 + 5)); };
    auto c = [&](int row, int column) { return sample(row * 8 + column + 1); };
    std::vector<uint32_t> fragments(32 * words);
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane / 4, member = lane % 4;
      uint32_t *mine = fragments.data() + lane * words;
      for (int element = 0; element < aRegisters * perWord; ++element) {
        int i = element / perWord, row = i % 2 ? group + 8 : group;
        int column = member * perWord + element % perWord + (i >= 2 ? 4 * perWord : 0);
        mine[i] |= a(row, column) << (product.a.bits * (element % perWord) % 32);
      }
      for (int element = 0; element < bRegisters * perWord; ++element) {
        int i = element / perWord;
        int row = member * perWord + element % perWord + (i == 1 ? 4 * perWord : 0);
        mine[aRegisters + i] |= b(row, group) << (product.b.bits * (element % perWord) % 32);
      }
      for (int i = 0; i < 4; ++i)
        mine[aRegisters + bRegisters + i] =
            std::bit_cast<uint32_t>(c(i < 2 ? group : group + 8, member * 2 + i % 2));
    }
    LoadedModule module(productKernel(product, aRegisters + bRegisters));
    std::vector<float> out(128);
    expectOk(Launch(module, "product", 1, 32).reads(fragments).writes(out).run());
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        int row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + i % 2;
        double expected = c(row, column), size = std::abs(expected);
        for (int j = 0; j < k; ++j) {
          double term = double(product.a.decode(a(row, j))) * product.b.decode(b(j, column));
          expected += term;
          size += std::abs(term);
        }
        double error = std::abs(out[lane * 4 + i] - expected);
        EXPECT_TRUE(error <= size * (k + 1) * 0x1p-24) << row << ", " << column << ": " << error;
      }
  }
}

/// A kernel of one warp: its threads write numbers 0 to 8 x 8 x count to shared memory, and load
/// `count` matrices of them, lane 8i + r naming row r of matrix i.
std::string loadKernel(int count, bool transposed, const std::string &meet, int skew = 0) {
  std::string n = std::to_string(count), results = count == 1 ? "i32" : "{i32";
  for (int i = 1; i < count; ++i)
    results += ", i32";
  if (count > 1)
    results += "}";
  std::string stores;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    stores +=
        (count == 1 ? "  %w0 = bitcast i32 %loaded to i32"
                    : "  %w" + number + " = extractvalue " + results + " %loaded, " + number) +
        "\n  %index" + number + " = add i32 %slot, " + number + "\n  %o" + number +
        " = getelementptr i32, ptr addrspace(1) %out, i32 %index" + number + "\n  store i32 %w" +
        number + ", ptr addrspace(1) %o" + number + ", align 4\n";
  }
  return R"(
@tile = internal addrspace(3) global [1024 x i8] undef, align 16
define ptx_kernel void @load(ptr addrspace(1) %out, i64 %extent) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %fill
fill:
  %i = phi i32 [ %lane, %0 ], [ %next, %fill ]
  %word = shl i32 %i, 1
  %high = add i32 %word, 1
  %shifted = shl i32 %high, 16
  %pair = or i32 %word, %shifted
  %address = getelementptr i32, ptr addrspace(3) @tile, i32 %i
  store i32 %pair, ptr addrspace(3) %address, align 4
  %next = add i32 %i, 32
  %more = icmp ult i32 %next, )" +
         std::to_string(32 * count) + R"(
  br i1 %more, label %fill, label %meet
meet:
  )" + meet +
         R"(
  %row = and i32 %lane, )" +
         std::to_string(8 * count - 1) + R"(
  %offset = shl i32 %row, 4
  %skewed = add i32 %offset, )" +
         std::to_string(skew) + R"(
  %from = getelementptr i8, ptr addrspace(3) @tile, i32 %skewed
  %loaded = call )" +
         results + " @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + n + (transposed ? ".trans" : "") +
         R"(.b16.p3(ptr addrspace(3) %from)
  %slot = mul i32 %lane, )" +
         n + "\n" + stores + "  ret void\n}\n";
}

constexpr const char *warpBarrier = "call void @llvm.nvvm.bar.warp.sync(i32 -1)";

TEST(EmulatorMatrix, LoadMatrix) {
  for (int count : {1, 2, 4})
    for (bool transposed : {false, true}) {
      LoadedModule module(loadKernel(count, transposed, warpBarrier));
      std::vector<uint32_t> out(32 * count);
      expectOk(Launch(module, "load", 1, 32).writes(out).run());
      for (int lane = 0; lane < 32; ++lane)
        for (int matrix = 0; matrix < count; ++matrix)
          for (int half = 0; half < 2; ++half) {
            int row = lane / 4, column = lane % 4 * 2 + half;
            if (transposed)
              std::swap(row, column);
            EXPECT_EQ(out[lane * count + matrix] >> (16 * half) & 0xffff,
                      matrix * 64 + row * 8 + column);
          }
    }
}

TEST(EmulatorMatrix, LoadMatrixOfWhatIsNotThere) {
  std::vector<uint32_t> out(128);
  auto run = [&](const std::string &meet, int skew) {
    LoadedModule module(loadKernel(4, false, meet, skew));
    return Launch(module, "load", 1, 32).writes(out).run();
  };
  expectReport(run("", 0), {"race: reads byte 0 of shared memory that thread 0 wrote",
                            "%loaded = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix"});
  expectReport(run(warpBarrier, 8), {"misaligned: the address is 8 bytes past a multiple of 16"});
  expectReport(run(warpBarrier, 16), {"uninitialised: reads byte 512 of shared memory"});
  expectReport(run(warpBarrier, 1024), {"out of bounds: ends 16 bytes behind shared memory"});
}

} // namespace
} // namespace gradc
