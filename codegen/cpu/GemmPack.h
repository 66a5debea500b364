// Packing of an operand of a matrix product into panels of f32. The panel p of width w holds, for
// each step of the depth, the w elements of its rows of A (columns of B) side by side:
//
//     panel p at p * panelStride(w, depth), element (step, i) at step * w + i
//
// Of `pairs`, an element is two bf16 in 32 bits, of two steps of the depth: a panel has half as
// many steps then. The depth is padded with zeros to a multiple of the lanes. Rows that do not
// exist hold anything.
#pragma once

#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// Between panels: stores of whole vectors may run over a panel's end by less than this, and panels
/// of a power of two do not compete for the same lines of a cache.
inline constexpr int64_t panelGap = 16;

/// Elements from one panel to the next.
inline int64_t panelStride(int64_t width, int64_t paddedDepth) {
  return width * paddedDepth + panelGap;
}
mlir::Value panelStride(KernelBuilder &k, int64_t width, mlir::Value paddedDepth);

/// Steps of the depth in one of a panel.
inline int64_t stepsTogether(bool pairs) { return pairs ? 2 : 1; }

/// The steps of a panel.
mlir::Value paddedDepth(KernelBuilder &k, mlir::Value depth, bool pairs);

/// How an operand is stored, and to what it is rounded: what tells packing functions apart.
struct PackFormat {
  bool transposed;
  row::Dtype dtype;
  InputRounding rounding;
  bool scaled;
  bool pairs = false; ///< of bf16
};

/// Whether the operands are packed in pairs.
bool takesPairs(const GemmSpec &spec, const CpuTarget &target);

PackFormat packFormat(const GemmSpec &spec, const GemmSpec::Matrix &operand, bool transposed);

/// A vector of an operand in f32, rounded as its format says and multiplied by `scales`, a vector,
/// or null; masked lanes are 0.
mlir::Value loadOperand(KernelBuilder &k, const PackFormat &format, mlir::Value address,
                        mlir::Value mask, mlir::Value scales);

/// Bytes that one prefetch brings.
inline constexpr int64_t cacheLineBytes = 64;

/// Brings a line towards the first cache.
void prefetch(KernelBuilder &k, mlir::Value address);

/// Where an operand comes from: element (step, i) at from[step * stride + i] or, when
/// `transposed`, at from[i * stride + step].
struct PackSource {
  PackFormat format;
  mlir::Value from;
  int64_t stride;
  mlir::Value depth, count; ///< steps, and elements of a step; both at least 1
  mlir::Value scale;        ///< f32, of a scaled format
};

/// The function (i64 depth, i64 count, i64 stride, ptr from, ptr to, i64 panelStride, f32 scale)
/// that packs into panels of `width`, made where it is missing. A part of an operand (some steps of
/// every panel, a panel of its own) is packed by the same function, at the panel stride of the
/// whole.
mlir::func::FuncOp packFunction(KernelBuilder &k, const PackFormat &format, int64_t width);
mlir::FunctionType packFunctionType(KernelBuilder &k);
/// A source's scale; 1 where it has none.
mlir::Value scaleOf(KernelBuilder &k, const PackSource &source);

/// Prints a call of that function: panels of `source` alone, or so far apart.
void callPack(KernelBuilder &k, int64_t width, const PackSource &source, mlir::Value to);
void callPack(KernelBuilder &k, int64_t width, const PackSource &source, mlir::Value to,
              mlir::Value panelStride);

} // namespace gradc::codegen
