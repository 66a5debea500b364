// See GemmHarness.h.
#include "tests/numerics/GemmHarness.h"

#include "codegen/cpu/KernelBuilder.h"
#include "tests/numerics/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace gradc::codegen {

namespace {

const float sentinel = 12544; // a number of every type

std::vector<float> randomNumbers(row::Dtype dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
  return row::decode<float>(dtype, row::encode(dtype, numbers));
}

GemmSpec::Matrix strides(int64_t rows, int64_t columns, bool transposed, int64_t gap) {
  int64_t line = (transposed ? rows : columns) + gap;
  int64_t batch = line * (transposed ? columns : rows) + gap;
  return {transposed ? 1 : line, transposed ? line : 1, batch};
}

int64_t elements(const GemmSpec::Matrix &x, int64_t batch, int64_t rows, int64_t columns) {
  return elementOffset(x, batch - 1, rows - 1, columns - 1) + 1;
}

std::string describe(const GemmSpec &s) {
  auto type = [](const GemmSpec::Matrix &x) { return std::string(row::name(x.dtype)); };
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         ", batch " + std::to_string(s.batch) + ", " + type(s.a) + " x " + type(s.b) + " -> " +
         type(s.c) + (s.a.columnStride == 1 ? "" : ", A transposed") +
         (s.b.columnStride == 1 ? "" : ", B transposed") + (s.accumulate ? ", accumulate" : "") +
         (s.roundInputs == InputRounding::tf32 ? ", tf32" : "");
}

void emitAll(mlir::ModuleOp module, llvm::StringRef name, const std::vector<GemmSpec> &specs,
             const CpuTarget &target) {
  std::vector<mlir::func::FuncOp> products;
  for (const GemmSpec &spec : specs)
    products.push_back(emitGemm(module, "product" + std::to_string(products.size()), spec, target));
  KernelBuilder k(module, name, target);
  for (auto [i, product] : llvm::enumerate(products))
    k.ifTrue(
        k.less(k.extent(), k.index(int64_t(i))), [] {},
        [&] {
          k.ifTrue(k.less(k.extent(), k.index(int64_t(i) + 1)), [&] {
            mlir::func::CallOp::create(
                k.builder(), k.location(), product,
                mlir::ValueRange{k.parameter(0), k.parameter(1), k.parameter(2)});
          });
        });
  k.finish();
}

} // namespace

GemmSpec makeSpec(int64_t m, int64_t n, int64_t k, bool aTransposed, bool bTransposed,
                  int64_t gap) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  spec.threads = 8;
  spec.a = strides(m, k, aTransposed, gap);
  spec.b = strides(k, n, bTransposed, gap);
  spec.c = strides(m, n, false, gap);
  return spec;
}

std::vector<GemmSpec> allTransposes(int64_t m, int64_t n, int64_t k, int64_t gap, int64_t batch) {
  std::vector<GemmSpec> specs;
  for (int transposes = 0; transposes < 4; ++transposes) {
    specs.push_back(makeSpec(m, n, k, transposes & 1, transposes & 2, gap));
    specs.back().batch = batch;
  }
  return specs;
}

int64_t elementOffset(const GemmSpec::Matrix &x, int64_t batch, int64_t row, int64_t column) {
  return batch * x.batchStride + row * x.rowStride + column * x.columnStride;
}

double roundToTf32(double value) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int unit = std::max(std::ilogb(value), -126) - 10;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) >= 0x1p128 ? std::copysign(INFINITY, value) : rounded;
}

GemmProblem::GemmProblem(const GemmSpec &s)
    : spec(s), a(randomNumbers(s.a.dtype, elements(s.a, s.batch, s.m, s.k), 1)),
      b(randomNumbers(s.b.dtype, elements(s.b, s.batch, s.k, s.n), 2)),
      before(elements(s.c, s.batch, s.m, s.n) + 8, sentinel) {
  std::vector<float> numbers = randomNumbers(s.c.dtype, s.batch * s.m * s.n, 3);
  forEach([&](int64_t batch, int64_t i, int64_t j) {
    before[elementOffset(s.c, batch, i, j)] = numbers[(batch * s.m + i) * s.n + j];
  });
}

std::vector<float> GemmProblem::run(const CompiledKernel &kernel, int64_t extent,
                                    bool backwards) const {
  std::vector<std::byte> storedA = row::encode(spec.a.dtype, a);
  std::vector<std::byte> storedB = row::encode(spec.b.dtype, b);
  std::vector<std::byte> c = row::encode(spec.c.dtype, before);
  float scaleOfA = scales[0], scaleOfB = scales[1];
  std::vector<void *> buffers{storedA.data(), storedB.data(), c.data()};
  if (spec.scaled)
    buffers.insert(buffers.begin() + 2, {&scaleOfA, &scaleOfB});
  int64_t tasks = gemmTaskCount(spec);
  for (int64_t task = 0; task < tasks; ++task)
    kernel.call(buffers, extent, backwards ? tasks - 1 - task : task);
  return row::decode<float>(spec.c.dtype, c);
}

std::vector<double> GemmProblem::asRead(const std::vector<float> &operand) const {
  std::vector<double> numbers(operand.begin(), operand.end());
  if (spec.roundInputs == InputRounding::tf32)
    for (double &number : numbers)
      number = roundToTf32(number); // changes no narrow one
  return numbers;
}

void GemmProblem::expectProduct(const std::vector<float> &c) const {
  std::vector<float> rest = c, restBefore = before;
  double unit = spec.c.dtype == row::Dtype::f32 ? 0 : row::unitRoundoff(spec.c.dtype);
  std::vector<double> left = asRead(a), right = asRead(b);
  double scale = spec.scaled ? scales[0] * scales[1] : 1;
  int64_t wrong = 0;
  forEach([&](int64_t batch, int64_t i, int64_t j) {
    int64_t at = elementOffset(spec.c, batch, i, j);
    double want = spec.accumulate ? before[at] : 0, size = std::abs(want);
    const double *x = &left[elementOffset(spec.a, batch, i, 0)];
    const double *y = &right[elementOffset(spec.b, batch, 0, j)];
    for (int64_t step = 0; step < spec.k; ++step) {
      double term = x[step * spec.a.columnStride] * y[step * spec.b.rowStride] * scale;
      want += term;
      size += std::abs(term);
    }
    double sums = 2e-6 * (size + 0.1);
    bool close = std::abs(c[at] - want) <= sums + unit * (std::abs(want) + sums);
    if (!close && ++wrong <= 3)
      ADD_FAILURE() << "C[" << batch << ", " << i << ", " << j << "] is " << c[at] << ", not "
                    << want;
    rest[at] = restBefore[at] = 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rest, restBefore) << "written outside of C";
}

CompiledKernel compileProducts(const std::vector<GemmSpec> &specs, const CpuTarget &target) {
  return CompiledKernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitAll(module, name, specs, target);
                        });
}

void checkProducts(const std::vector<GemmSpec> &specs, const CpuTarget &target) {
  CompiledKernel kernel = compileProducts(specs, target);
  ASSERT_TRUE(kernel);
  for (size_t i = 0; i < specs.size(); ++i) {
    const GemmSpec &spec = specs[i];
    SCOPED_TRACE(describe(spec) + ", vectors of " + std::to_string(target.vectorBits) + " bits" +
                 (target.pairsBf16 ? ", pairs of bf16" : ""));
    EXPECT_EQ(verify(spec), "");
    GemmProblem problem(spec);
    std::vector<float> c = problem.run(kernel, i, false), again = problem.run(kernel, i, true);
    problem.expectProduct(c);
    EXPECT_EQ(std::memcmp(c.data(), again.data(), c.size() * sizeof(float)), 0)
        << "the order of the tasks shows";
  }
}

std::vector<CpuTarget> gemmTargets() {
  std::vector<CpuTarget> targets = hostTargets();
  if (targets.front().vectorBits < 512) {
    targets.push_back(targets.front());
    targets.back().vectorBits = 512;
  }
  return targets;
}

std::vector<CpuTarget> bf16Targets() {
  std::vector<CpuTarget> targets;
  for (CpuTarget target : gemmTargets())
    for (bool pairs : {false, true}) {
      target.pairsBf16 = pairs;
      targets.push_back(target);
    }
  return targets;
}

} // namespace gradc::codegen
