// Generated matrix products of narrow types and with operands rounded to tf32: against double loops
// on the operands as they are stored, and exactly where the sums are exact.
#include "tests/numerics/Elements.h"
#include "tests/numerics/GemmHarness.h"

#include "codegen/cpu/ObjectFile.h"
#include "ir/row/Evaluate.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace {

using namespace gradc::codegen;
using gradc::row::Dtype;
using gradc::row::roundTo;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Types {
  Dtype a, b, c;
  InputRounding rounding = InputRounding::none;
};

/// Both operands narrow, one of them, C narrow or not, and with tf32 what is not narrow.
const Types allTypes[] = {
    {Dtype::bf16, Dtype::bf16, Dtype::bf16},
    {Dtype::bf16, Dtype::bf16, Dtype::f32},
    {Dtype::f16, Dtype::f16, Dtype::f16},
    {Dtype::f16, Dtype::f16, Dtype::f32},
    {Dtype::bf16, Dtype::f16, Dtype::f32},
    {Dtype::f32, Dtype::bf16, Dtype::bf16},
    {Dtype::f32, Dtype::f32, Dtype::f16},
    {Dtype::f32, Dtype::f32, Dtype::f32, InputRounding::tf32},
    {Dtype::bf16, Dtype::f32, Dtype::bf16, InputRounding::tf32},
};

/// Operands of fp8, of one format or both, with their scales.
const Types float8Types[] = {
    {Dtype::f8e4m3, Dtype::f8e4m3, Dtype::bf16},
    {Dtype::f8e4m3, Dtype::f8e4m3, Dtype::f32},
    {Dtype::f8e5m2, Dtype::f8e4m3, Dtype::bf16},
    {Dtype::f8e4m3, Dtype::f8e5m2, Dtype::f32},
};

GemmSpec withTypes(GemmSpec spec, const Types &types) {
  spec.a.dtype = types.a, spec.b.dtype = types.b, spec.c.dtype = types.c;
  spec.scaled = gradc::row::byteSize(types.a) == 1;
  spec.roundInputs = types.rounding;
  return spec;
}

void checkAllTypes(const std::vector<GemmSpec> &specs, const std::vector<CpuTarget> &targets,
                   const std::vector<CpuTarget> &targetsOfBf16) {
  std::vector<GemmSpec> ofBf16, others;
  for (llvm::ArrayRef<Types> list : {llvm::ArrayRef(allTypes), llvm::ArrayRef(float8Types)})
    for (const Types &types : list)
      for (const GemmSpec &spec : specs)
        (types.a == Dtype::bf16 && types.b == Dtype::bf16 ? ofBf16 : others)
            .push_back(withTypes(spec, types));
  for (const CpuTarget &target : targets)
    checkProducts(others, target);
  for (const CpuTarget &target : targetsOfBf16)
    checkProducts(ofBf16, target);
}

CompiledKernel compile(const GemmSpec &spec, const CpuTarget &target) {
  return CompiledKernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitGemm(module, name, spec, target);
                        });
}

TEST(GemmPrecision, ShapesThatFillNoTile) {
  std::vector<GemmSpec> specs{makeSpec(7, 5, 3, false, true), makeSpec(1, 1, 1, false, false),
                              makeSpec(40, 97, 48, true, false)};
  checkAllTypes(specs, gemmTargets(), bf16Targets());
}

TEST(GemmPrecision, StridedBatches) {
  checkAllTypes(allTransposes(37, 29, 21, 3, 3), hostTargets(), hostTargets());
}

TEST(GemmPrecision, ManySlicesAndTasks) {
  std::vector<GemmSpec> specs;
  for (const Types &types : allTypes)
    specs.push_back(withTypes(makeSpec(131, 403, 777, false, true, 5), types));
  for (const Types &types : float8Types)
    specs.push_back(withTypes(makeSpec(131, 403, 777, true, false, 5), types));
  for (const GemmSpec &spec : allTransposes(131, 403, 777, 5)) {
    EXPECT_GE(gemmTaskCount(spec), 8);
    specs.push_back(withTypes(spec, {Dtype::bf16, Dtype::bf16, Dtype::bf16}));
  }
  for (const CpuTarget &target : hostTargets())
    checkProducts(specs, target);
}

/// Depths of odd length end in half a pair; several slices begin with a whole one.
TEST(GemmPrecision, PairsOfBf16) {
  std::vector<GemmSpec> specs;
  for (int64_t depth : {31, 1101})
    for (const GemmSpec &spec : allTransposes(37, 53, depth))
      for (Dtype c : {Dtype::f32, Dtype::bf16})
        specs.push_back(withTypes(spec, {Dtype::bf16, Dtype::bf16, c}));
  for (const CpuTarget &target : bf16Targets())
    checkProducts(specs, target);
}

/// The instruction itself runs only where there is one; that it is asked for, and taken by LLVM,
/// shows everywhere.
TEST(GemmPrecision, PairsOfBf16AsAnInstruction) {
  CpuTarget target = CpuTarget::host();
  target.cpu = "znver5";
  target.features = "";
  target.vectorBits = 512;
  target.hasBf16 = target.pairsBf16 = true;
  mlir::MLIRContext context;
  loadKernelDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  emitGemm(*module, "product", withTypes(makeSpec(64, 96, 128, false, true), allTypes[1]), target);
  llvm::LLVMContext llvmContext;
  auto lowered = lowerToLlvmIr(*module, target, llvmContext);
  ASSERT_TRUE(bool(lowered)) << llvm::toString(lowered.takeError());
  EXPECT_NE((*lowered)->getFunction("llvm.x86.avx512bf16.dpbf16ps.512"), nullptr);
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("product", "o", path));
  llvm::FileRemover remover(path);
  EXPECT_EQ(llvm::toString(writeObjectFile(**lowered, target, path.str().str())), "");
}

TEST(GemmPrecision, AccumulatesInF32) {
  std::vector<GemmSpec> specs;
  for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    specs.push_back(withTypes(makeSpec(50, 70, 300, true, false), {dtype, dtype, Dtype::f32}));
    specs.back().accumulate = true;
  }
  specs.push_back(
      withTypes(makeSpec(50, 70, 300, true, false), {Dtype::f8e5m2, Dtype::f8e4m3, Dtype::f32}));
  specs.back().accumulate = true;
  for (const CpuTarget &target : bf16Targets())
    checkProducts(specs, target);
}

/// Small integers, whose sums are exact in f32: what is left is the rounding of C, ties included.
/// Many slices deep, so that rounding between them would show.
TEST(GemmPrecision, RoundsOnceToNearestEven) {
  for (const CpuTarget &target : hostTargets())
    for (Dtype dtype : {Dtype::bf16, Dtype::f16})
      for (int64_t depth : {64, 901}) {
        SCOPED_TRACE(testing::Message() << gradc::row::name(dtype) << ", depth " << depth << ", "
                                        << target.vectorBits << " bits");
        GemmSpec spec = withTypes(makeSpec(61, 83, depth, false, true), {dtype, dtype, dtype});
        CompiledKernel kernel = compile(spec, target);
        ASSERT_TRUE(kernel);
        GemmProblem problem(spec);
        std::mt19937 random(7);
        for (std::vector<float> *operand : {&problem.a, &problem.b})
          for (float &x : *operand)
            x = static_cast<float>(random() % 65) - 32;
        std::vector<float> c = problem.run(kernel, 0, false);
        int64_t ties = 0;
        problem.forEach([&](int64_t, int64_t i, int64_t j) {
          double sum = 0;
          for (int64_t p = 0; p < depth; ++p)
            sum += problem.a[i * depth + p] * problem.b[j * depth + p];
          double want = roundTo(dtype, sum);
          EXPECT_EQ(c[i * spec.n + j], want) << sum;
          // A tie: the neighbour on the other side is as far away.
          double other = 2 * sum - want;
          ties += want != sum && roundTo(dtype, other) == other;
        });
        EXPECT_GT(ties, 50);
      }
}

/// A column times one: each element alone, as it is read and written.
std::vector<float> passThrough(const std::vector<float> &numbers, const Types &types,
                               const CpuTarget &target) {
  GemmSpec spec =
      withTypes(makeSpec(static_cast<int64_t>(numbers.size()), 1, 1, true, false), types);
  CompiledKernel kernel = compile(spec, target);
  EXPECT_TRUE(kernel);
  if (!kernel)
    return {};
  GemmProblem problem(spec);
  problem.a = numbers;
  problem.b = {1};
  std::vector<float> c = problem.run(kernel, 0, false);
  c.resize(numbers.size());
  return c;
}

void expectNumbers(const std::vector<float> &got, const std::vector<float> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i << " is " << got[i];
    else
      EXPECT_EQ(got[i], want[i]) << i;
}

TEST(GemmPrecision, RoundsOperandsToTf32) {
  auto bits = [](uint32_t x) { return std::bit_cast<float>(x); };
  // Ties both ways, beside them, the next exponent, the largest, subnormals, what is no number.
  const std::pair<float, float> cases[] = {
      {1 + 0x1p-11f, 1},
      {1 + 0x3p-11f, 1 + 0x1p-9f},
      {-1 - 0x1p-11f, -1},
      {-1 - 0x3p-11f, -1 - 0x1p-9f},
      {1 + 0x1p-11f + 0x1p-23f, 1 + 0x1p-10f},
      {1 + 0x1p-11f - 0x1p-23f, 1},
      {1 + 0x1p-10f, 1 + 0x1p-10f},
      {2 - 0x1p-11f, 2},
      {0x1.ffep127f, infinity},
      {0x1.ffdffep127f, 0x1.ffcp127f},
      {std::numeric_limits<float>::max(), infinity},
      {-std::numeric_limits<float>::max(), -infinity},
      {0x1p-136f, 0x1p-136f},
      {0x1p-137f, 0},
      {0x3p-137f, 0x1p-135f},
      {0, 0},
      {infinity, infinity},
      {-infinity, -infinity},
      {nan, nan},
      {bits(0x7f800001), nan},
      {bits(0x7fffffff), nan},
      {bits(0xffffffff), nan},
  };
  std::vector<float> numbers, want;
  for (auto [number, rounded] : cases) {
    numbers.push_back(number);
    want.push_back(rounded);
    EXPECT_EQ(std::isnan(rounded) ? 0 : roundToTf32(number), std::isnan(rounded) ? 0 : rounded);
  }
  for (const CpuTarget &target : gemmTargets())
    expectNumbers(
        passThrough(numbers, {Dtype::f32, Dtype::f32, Dtype::f32, InputRounding::tf32}, target),
        want);
}

TEST(GemmPrecision, ReadsAndWritesEveryNarrowNumber) {
  for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    std::vector<float> numbers;
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      auto half = static_cast<uint16_t>(bits);
      auto number = static_cast<float>(
          gradc::row::readElement(dtype, reinterpret_cast<const std::byte *>(&half)));
      numbers.push_back(number);
    }
    for (const CpuTarget &target : dtype == Dtype::bf16 ? bf16Targets() : gemmTargets()) {
      SCOPED_TRACE(testing::Message() << gradc::row::name(dtype) << ", " << target.vectorBits);
      std::vector<float> want = numbers;
      // Where an instruction rounds to bf16, it takes subnormal numbers for zeros.
      if (target.hasBf16 && dtype == Dtype::bf16)
        for (float &number : want)
          number = std::fpclassify(number) == FP_SUBNORMAL ? 0 : number;
      expectNumbers(passThrough(numbers, {dtype, dtype, dtype}, target), want);
    }
  }
}

/// A NaN in any row of A, and in any column of B, reaches what is made of it and no more.
TEST(GemmPrecision, KeepsNansOfFp8) {
  std::vector<GemmSpec> specs;
  for (const Types &types : float8Types)
    specs.push_back(withTypes(makeSpec(19, 35, 300, false, false), types));
  CompiledKernel kernel = compileProducts(specs, CpuTarget::host());
  ASSERT_TRUE(kernel);
  for (auto [number, spec] : llvm::enumerate(specs)) {
    GemmProblem problem(spec);
    problem.a[elementOffset(spec.a, 0, 18, 12)] = nan;
    problem.b[elementOffset(spec.b, 0, 4, 34)] = nan;
    std::vector<float> c = problem.run(kernel, number, false);
    problem.forEach([&](int64_t, int64_t i, int64_t j) {
      EXPECT_EQ(std::isnan(c[elementOffset(problem.spec.c, 0, i, j)]), i == 18 || j == 34)
          << i << ", " << j;
    });
  }
}

TEST(GemmPrecision, ReadsEveryFp8NumberTimesTheScales) {
  for (Dtype dtype : {Dtype::f8e4m3, Dtype::f8e5m2})
    for (const CpuTarget &target : gemmTargets()) {
      SCOPED_TRACE(testing::Message() << gradc::row::name(dtype) << ", " << target.vectorBits);
      std::vector<float> numbers, want;
      for (int code = 0; code < 256; ++code) {
        auto byte = static_cast<std::byte>(code);
        auto number = static_cast<float>(gradc::row::readElement(dtype, &byte));
        if (std::isinf(number))
          continue; // the harness writes the largest number for it
        numbers.push_back(number);
        want.push_back(
            static_cast<float>(number * GemmProblem::scales[0] * GemmProblem::scales[1]));
      }
      expectNumbers(passThrough(numbers, {dtype, Dtype::f8e4m3, Dtype::f32}, target), want);
    }
}

TEST(GemmPrecision, OverflowsToInfinity) {
  std::vector<float> numbers{65504,       65519,           65520,      -65520,
                             0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f};
  for (const CpuTarget &target : gemmTargets())
    for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      std::vector<float> want;
      for (float number : numbers)
        want.push_back(static_cast<float>(roundTo(dtype, number)));
      expectNumbers(passThrough(numbers, {Dtype::f32, dtype, dtype}, target), want);
    }
}

TEST(GemmPrecision, KeepsNansAndInfinitiesWhereTheyBelong) {
  std::vector<Types> types{{Dtype::f32, Dtype::f32, Dtype::f32}};
  llvm::append_range(types, allTypes);
  std::vector<GemmSpec> specs;
  for (const Types &of : types)
    for (int64_t depth : {13, 300})
      specs.push_back(withTypes(makeSpec(19, 35, depth, false, false), of));
  CompiledKernel kernel = compileProducts(specs, CpuTarget::host());
  ASSERT_TRUE(kernel);
  for (auto [number, spec] : llvm::enumerate(specs)) {
    GemmProblem problem(spec);
    problem.a[elementOffset(spec.a, 0, 18, 12)] = infinity;
    problem.b[elementOffset(spec.b, 0, 4, 34)] = nan;
    std::vector<float> c = problem.run(kernel, number, false);
    problem.forEach([&](int64_t, int64_t i, int64_t j) {
      float value = c[elementOffset(problem.spec.c, 0, i, j)];
      EXPECT_EQ(std::isnan(value), j == 34) << i << ", " << j;
      EXPECT_EQ(std::isfinite(value), j != 34 && i != 18) << i << ", " << j;
    });
  }
}

TEST(GemmPrecision, HeldSumsStayOnTheStack) {
  // A task holds all of its C in f32: no shape may make that large.
  for (auto [m, n] : {std::pair<int64_t, int64_t>{50257, 768}, {1024, 50257}, {50257, 50257}}) {
    GemmSpec spec = withTypes(makeSpec(m, n, 1024, false, false), allTypes[0]);
    EXPECT_GE(gemmTaskCount(spec), m * n / (224 * 1024));
  }
}

TEST(GemmPrecision, TypesShareWhatTheyCan) {
  const CpuTarget target = CpuTarget::host();
  CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp module,
                                    llvm::StringRef name) {
    GemmSpec spec = makeSpec(64, 64, 64, false, false);
    emitGemm(module, name, spec, target);
    emitGemm(module, "bf16", withTypes(spec, {Dtype::bf16, Dtype::bf16, Dtype::f32}), target);
    emitGemm(module, "narrow", withTypes(spec, {Dtype::bf16, Dtype::bf16, Dtype::bf16}), target);
    emitGemm(module, "tf32",
             withTypes(spec, {Dtype::f32, Dtype::f32, Dtype::f32, InputRounding::tf32}), target);
    // Four products, A and B packed from f32, from bf16 and rounded; C in f32 and in bf16.
    EXPECT_EQ(std::distance(module.begin(), module.end()), 4 + 3 * 2 + 2);
  });
  EXPECT_TRUE(kernel);
}

} // namespace
