// Matrices in panels: what the packing kernel writes, against the layout's definition, and products
// that read panels against the same products packing for themselves, to the bit.
#include "codegen/cpu/Panels.h"
#include "tests/numerics/Elements.h"
#include "tests/numerics/GemmHarness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using row::Dtype;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

mlir::Type elementType(mlir::MLIRContext &context, Dtype dtype) {
  mlir::Builder b(&context);
  return dtype == Dtype::bf16  ? mlir::Type(b.getBF16Type())
         : dtype == Dtype::f16 ? mlir::Type(b.getF16Type())
                               : mlir::Type(b.getF32Type());
}

/// B of a product, contiguous, and the panels in which the product reads it, alone or with those of
/// the other order before them.
class PackedB {
public:
  PackedB(const GemmProblem &problem, const CpuTarget &target, bool bothOrders)
      : spec(problem.spec), transposed(spec.b.columnStride != 1), stored(2),
        kernel(target, [&](mlir::OpBuilder &builder, mlir::ModuleOp module, llvm::StringRef name) {
          emit(builder, module, name, target, bothOrders);
        }) {
    std::vector<std::byte> matrix = row::encode(spec.b.dtype, problem.b);
    std::vector<void *> buffers{matrix.data()};
    for (size_t i = 0; i < layouts.size(); ++i) {
      int64_t lines = (counts[i] + Line::words - 1) / Line::words;
      stored[i].resize(lines);
      std::fill_n(data(i), lines * Line::words, nan);
      buffers.push_back(data(i));
    }
    for (int64_t task = tasks; task-- > 0;)
      kernel.call(buffers, 0, task);
  }

  struct Layout {
    int64_t columns, depth, panels, steps, width;
    bool pairs, tf32, transposed;
  };
  const float *words(size_t i) const { return stored[i].front().floats; }
  size_t own() const { return layouts.size() - 1; }
  std::vector<Layout> layouts; ///< the product's own last

  /// Makes the columns that do not exist NaN: no sum may read them.
  void spoil() {
    const Layout &layout = layouts[own()];
    for (int64_t j = layout.columns; j < layout.panels * layout.width; ++j)
      for (int64_t step = 0; step < layout.steps; ++step)
        data(own())[(j / layout.width * layout.steps + step) * layout.width + j % layout.width] =
            nan;
  }

private:
  void emit(mlir::OpBuilder &builder, mlir::ModuleOp module, llvm::StringRef name,
            const CpuTarget &target, bool bothOrders) {
    mlir::MLIRContext &context = *builder.getContext();
    context.loadDialect<nn::NnDialect, mlir::func::FuncDialect>();
    int64_t rows = transposed ? spec.n : spec.k, columns = transposed ? spec.k : spec.n;
    auto plain = mlir::RankedTensorType::get({rows, columns}, elementType(context, spec.b.dtype));
    std::vector<mlir::Type> types;
    layouts.clear(); // a kernel may be printed more than once
    counts.clear();
    for (bool order : {!transposed, transposed}) {
      if (order != transposed && !bothOrders)
        continue;
      nn::PanelsAttr panels = panelsOf(&context, spec, order, target);
      auto type = mlir::RankedTensorType::get({rows, columns}, plain.getElementType(), panels);
      llvm::ArrayRef<int64_t> shape = nn::storedType(type).getShape();
      types.push_back(type);
      layouts.push_back({order ? rows : columns, order ? columns : rows, shape[0], shape[1],
                         shape[2], panels.getPairs(), panels.getTf32(), order});
      counts.push_back(nn::storedType(type).getNumElements());
      EXPECT_EQ(nn::byteSize(type), counts.back() * 4);
    }
    mlir::OwningOpRef<mlir::ModuleOp> holder = mlir::ModuleOp::create(builder.getUnknownLoc());
    mlir::OpBuilder inner(&context);
    inner.setInsertionPointToStart(holder->getBody());
    auto function = mlir::func::FuncOp::create(inner, builder.getUnknownLoc(), "holder",
                                               inner.getFunctionType({plain}, {}));
    mlir::Block *body = function.addEntryBlock();
    inner.setInsertionPointToStart(body);
    auto op = nn::PackPanelsOp::create(inner, builder.getUnknownLoc(), types, body->getArgument(0));
    EXPECT_TRUE(mlir::succeeded(op.verify()));
    tasks = packPanelsTaskCount(op);
    emitPackPanels(module, name, op, target);
  }

  struct alignas(64) Line {
    static constexpr int64_t words = 16;
    float floats[words];
  };
  float *data(size_t i) { return stored[i].front().floats; }

  GemmSpec spec;
  bool transposed;
  std::vector<int64_t> counts;
  int64_t tasks = 0;
  std::vector<std::vector<Line>> stored;
  CompiledKernel kernel;
};

GemmSpec typed(GemmSpec spec, Dtype dtype, InputRounding rounding = InputRounding::none) {
  spec.a.dtype = spec.b.dtype = spec.c.dtype = dtype;
  spec.roundInputs = rounding;
  return spec;
}

/// Every way to store a word.
std::vector<GemmSpec> inEveryType(GemmSpec spec) {
  return {typed(spec, Dtype::f32), typed(spec, Dtype::f32, InputRounding::tf32),
          typed(spec, Dtype::bf16), typed(spec, Dtype::f16)};
}

/// The word that the layout's definition asks for.
float expectedWord(const GemmProblem &problem, const PackedB::Layout &layout, int64_t step,
                   int64_t column) {
  bool own = layout.transposed == (problem.spec.b.columnStride != 1);
  auto element = [&](int64_t depth) -> float {
    if (depth >= layout.depth)
      return 0;
    int64_t row = own ? depth : column, across = own ? column : depth;
    float value = problem.b[elementOffset(problem.spec.b, 0, row, across)];
    return layout.tf32 ? static_cast<float>(roundToTf32(value)) : value;
  };
  if (!layout.pairs)
    return element(step);
  uint32_t low = std::bit_cast<uint32_t>(element(2 * step)) >> 16;
  return std::bit_cast<float>(low | (std::bit_cast<uint32_t>(element(2 * step + 1)) & 0xffff0000));
}

void checkWords(const GemmProblem &problem, const PackedB &packed, size_t which) {
  const PackedB::Layout &layout = packed.layouts[which];
  int64_t wrong = 0;
  for (int64_t column = 0; column < layout.columns; ++column)
    for (int64_t step = 0; step < layout.steps; ++step) {
      float word =
          packed.words(which)[(column / layout.width * layout.steps + step) * layout.width +
                              column % layout.width];
      float want = expectedWord(problem, layout, step, column);
      if (std::bit_cast<uint32_t>(word) != std::bit_cast<uint32_t>(want) && ++wrong <= 3)
        ADD_FAILURE() << "step " << step << ", column " << column << ": " << word << ", not "
                      << want;
    }
  EXPECT_EQ(wrong, 0);
}

std::vector<float> product(const GemmProblem &problem, const GemmSpec &spec, const void *b,
                           const CompiledKernel &kernel, int64_t extent) {
  std::vector<std::byte> a = row::encode(spec.a.dtype, problem.a);
  std::vector<std::byte> c = row::encode(spec.c.dtype, problem.before);
  std::vector<void *> buffers{a.data(), const_cast<void *>(b), c.data()};
  for (int64_t task = 0, tasks = gemmTaskCount(spec); task < tasks; ++task)
    kernel.call(buffers, extent, task);
  return row::decode<float>(spec.c.dtype, c);
}

void checkProduct(const GemmSpec &spec, const CpuTarget &target, bool bothOrders) {
  SCOPED_TRACE(std::to_string(spec.m) + " x " + std::to_string(spec.n) + " x " +
               std::to_string(spec.k) + " of " + row::name(spec.b.dtype) +
               (spec.b.columnStride == 1 ? "" : ", B transposed") + ", vectors of " +
               std::to_string(target.vectorBits) + (target.pairsBf16 ? ", pairs" : ""));
  GemmSpec fromPanels = spec;
  fromPanels.panelsB = true;
  ASSERT_EQ(verify(fromPanels), "");
  GemmProblem problem(spec);
  PackedB packed(problem, target, bothOrders);
  for (size_t i = 0; i < packed.layouts.size(); ++i)
    checkWords(problem, packed, i);
  packed.spoil();
  CompiledKernel kernel = compileProducts({spec, fromPanels}, target);
  ASSERT_TRUE(kernel);
  std::vector<std::byte> b = row::encode(spec.b.dtype, problem.b);
  std::vector<float> expected = product(problem, spec, b.data(), kernel, 0);
  std::vector<float> c = product(problem, fromPanels, packed.words(packed.own()), kernel, 1);
  problem.expectProduct(c);
  EXPECT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0)
      << "panels change the bits";
}

/// Every type on each of the targets, B stored by rows and by columns in turn; both orders are
/// packed.
void checkEveryType(int64_t m, int64_t n, int64_t k, const std::vector<CpuTarget> &targets,
                    bool bothOrders) {
  bool transposed = false;
  for (const CpuTarget &target : targets) {
    for (const GemmSpec &spec : inEveryType(makeSpec(m, n, k, false, transposed))) {
      checkProduct(spec, target, bothOrders);
      transposed = !transposed;
    }
    transposed = !transposed; // each type the other way on the next target
  }
}

TEST(Panels, OddShapesInEveryType) { checkEveryType(7, 53, 29, gemmTargets(), true); }

TEST(Panels, SmallerThanAPanelAndAStep) { checkEveryType(5, 1, 1, hostTargets(), true); }

/// Tasks begin at panels in the middle, slices at steps in the middle; the two products are not cut
/// into the same tasks, as only one of them packs B.
TEST(Panels, ManySlicesAndTasks) {
  GemmSpec spec = makeSpec(131, 803, 777, false, false), fromPanels = spec;
  fromPanels.panelsB = true;
  EXPECT_GE(std::min(gemmTaskCount(spec), gemmTaskCount(fromPanels)), 8);
  checkEveryType(spec.m, spec.n, spec.k, hostTargets(), false);
}

TEST(Panels, AddsToC) {
  GemmSpec spec = makeSpec(50, 70, 300, true, true);
  spec.accumulate = true;
  checkProduct(spec, CpuTarget::host(), /*bothOrders=*/false);
}

TEST(Panels, NoneForWhatReadsBInItsPlace) {
  mlir::MLIRContext context;
  context.loadDialect<nn::NnDialect>();
  CpuTarget target = CpuTarget::host();
  GemmSpec thin = makeSpec(1, 50, 70, false, false), batched = makeSpec(9, 50, 70, false, false);
  batched.batch = 2;
  EXPECT_FALSE(panelsOf(&context, thin, false, target));
  EXPECT_FALSE(panelsOf(&context, batched, false, target));
  for (GemmSpec spec : {thin, batched}) {
    spec.panelsB = true;
    EXPECT_NE(verify(spec), "");
  }
}

} // namespace
