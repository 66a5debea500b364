// See Panels.h.
#include "codegen/cpu/Panels.h"

#include "codegen/cpu/GemmBlock.h"
#include "codegen/cpu/GemmThin.h"
#include "codegen/kernels/Specs.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
namespace gradc::codegen {

nn::PanelsAttr panelsOf(MLIRContext *context, const GemmSpec &spec, bool transposed,
                        const CpuTarget &target) {
  if (isThin(spec) || spec.scaled || spec.batch != 1)
    return {};
  return nn::PanelsAttr::get(context, gemmTile(target).bStride, target.f32Lanes(), transposed,
                             spec.roundInputs == InputRounding::tf32, takesPairs(spec, target));
}

int64_t storedPanelStride(const GemmSpec &spec, const CpuTarget &target) {
  int64_t steps = llvm::divideCeil(spec.k, stepsTogether(takesPairs(spec, target)));
  return gemmTile(target).bStride * static_cast<int64_t>(llvm::alignTo(steps, target.f32Lanes()));
}

namespace {

nn::PanelsAttr layoutOf(Value panels) {
  return cast<nn::PanelsAttr>(cast<RankedTensorType>(panels.getType()).getEncoding());
}

/// Rows of the matrix that every layout packs on their own: whole panels where it is transposed,
/// whole units of the depth where not.
int64_t rowsOfBand(nn::PackPanelsOp op) {
  int64_t rows = 1;
  for (Value result : op.getResults()) {
    nn::PanelsAttr layout = layoutOf(result);
    rows = std::lcm(rows, layout.getTransposed()
                              ? layout.getWidth()
                              : layout.getDepthUnit() * stepsTogether(layout.getPairs()));
  }
  return rows;
}

/// Floats that lie in panels in the second cache, beside their source, before they are written.
constexpr int64_t mostScratch = 16 * 1024;

/// Columns of a band that are packed at a time: whole panels, and whole units of the depth.
int64_t columnsOfChunk(nn::PackPanelsOp op) {
  int64_t unit = 1;
  for (Value result : op.getResults()) {
    nn::PanelsAttr layout = layoutOf(result);
    unit = std::lcm(unit, std::lcm(layout.getWidth(),
                                   layout.getDepthUnit() * stepsTogether(layout.getPairs())));
  }
  return std::max(unit, mostScratch / rowsOfBand(op) / unit * unit);
}

/// Writes floats past the caches, which would read the lines first, and have no use for them before
/// the next step. Both addresses are aligned to vectors.
void stream(KernelBuilder &k, Value from, Value to, Value floats) {
  k.forRange(k.index(0), floats, k.lanes(), [&](Value i) {
    LLVM::StoreOp::create(k.builder(), k.location(), k.load(k.at(from, i)), k.at(to, i),
                          static_cast<unsigned>(k.lanes() * sizeof(float)), /*isVolatile=*/false,
                          /*isNonTemporal=*/true);
  });
}

/// A chunk of a band in one layout: packed in `scratch`, then written.
struct Chunk {
  Value matrix, scratch;
  Value row, column;   ///< of the matrix
  Value rows, columns; ///< of the chunk

  void pack(KernelBuilder &k, Value result, Value panels) const {
    nn::PanelsAttr layout = layoutOf(result);
    bool transposed = layout.getTransposed(), pairs = layout.getPairs();
    int64_t width = layout.getWidth(), stride = columnsOf(result);
    auto stored = nn::storedType(cast<RankedTensorType>(result.getType())).getShape();
    PackFormat format{transposed, dtypeOf(result),
                      layout.getTf32() ? InputRounding::tf32 : InputRounding::none,
                      /*scaled=*/false, pairs};
    Value from = k.v.elementPointer(format.dtype, matrix, k.add(k.mul(row, stride), column));
    PackSource source{
        format, from, stride, transposed ? columns : rows, transposed ? rows : columns, {}};
    Value floats = k.mul(paddedDepth(k, source.depth, pairs), width);
    callPack(k, width, source, scratch, floats);
    Value panel = k.divide(transposed ? row : column, width);
    Value step = k.divide(transposed ? column : row, stepsTogether(pairs));
    Value place = k.at(panels, k.add(k.mul(panel, stored[1] * width), k.mul(step, width)));
    k.forRange(k.index(0), k.ceilDivide(source.count, width), 1, [&](Value i) {
      stream(k, k.at(scratch, k.mul(i, floats)), k.at(place, k.mul(i, stored[1] * width)), floats);
    });
  }
};

} // namespace

int64_t packPanelsTaskCount(nn::PackPanelsOp op) {
  return static_cast<int64_t>(llvm::divideCeil(rowsOf(op.getInput()), rowsOfBand(op)));
}

func::FuncOp emitPackPanels(ModuleOp module, StringRef name, nn::PackPanelsOp op,
                            const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  int64_t band = rowsOfBand(op), part = columnsOfChunk(op), columns = columnsOf(op.getInput());
  Value row = k.mul(k.task(), band);
  Value rows = k.minimum(k.sub(k.index(rowsOf(op.getInput())), row), band);
  Value scratch = k.stack(band * part);
  k.forRange(0, columns, part, [&](Value column) {
    Chunk chunk{k.buffer(0), scratch, row,
                column,      rows,    k.minimum(k.sub(k.index(columns), column), part)};
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      chunk.pack(k, result, k.buffer(static_cast<int>(i) + 1));
  });
  // Such writes are not ordered before the end of the task otherwise.
  LLVM::FenceOp::create(k.builder(), k.location(), LLVM::AtomicOrdering::seq_cst, "");
  return k.finish();
}

} // namespace gradc::codegen
