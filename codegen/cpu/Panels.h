// Matrices that are kept in the panels which products multiply (#nn.panels): weights, packed once a
// step instead of at each of their products.
//
// Panels are those of GemmPack.h, but of the whole depth and without gaps; a product's slice of the
// depth is a part of each panel.
#pragma once

#include "codegen/cpu/Gemm.h"
#include "ir/Nn.h"

namespace gradc::codegen {

/// The panels in which a product reads its B in place, `transposed` being how the matrix is stored;
/// null of a product that packs nothing or more than panels hold.
nn::PanelsAttr panelsOf(mlir::MLIRContext *context, const GemmSpec &spec, bool transposed,
                        const CpuTarget &target);

/// Floats from one panel of B to the next, where B lies in panels.
int64_t storedPanelStride(const GemmSpec &spec, const CpuTarget &target);

/// Tasks of the packing kernel: bands of the matrix's rows.
int64_t packPanelsTaskCount(nn::PackPanelsOp op);

/// Buffers: the matrix, contiguous, and the panels of each result, each aligned to 64 bytes. The
/// extent is not looked at. Scratch is on the stack, under 128 KiB.
/// Only for layouts that panelsOf gave for this target.
mlir::func::FuncOp emitPackPanels(mlir::ModuleOp module, llvm::StringRef name, nn::PackPanelsOp op,
                                  const CpuTarget &target);

} // namespace gradc::codegen
