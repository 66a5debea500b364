// Rotary position embedding, half-split as HF's weights expect: elements i and i + headDim/2 of a
// head at position t are turned by the angle whose cosine and sine stand in row t of two tables.
//   out[i]       = x[i] cos - x[i + D/2] sin
//   out[i + D/2] = x[i + D/2] cos + x[i] sin
// The inverse turns back by the same angle: it is the gradient.
//
// Buffers: x, cos, sin, [positions,] out. x and out are of one type, f32, bf16 or f16; the tables
// are f32 [seq or more, headDim / 2], and so is the arithmetic. out may be x. The extent is the
// number of tokens, batch * seq; positions restart every `seq` tokens or, where the spec asks for
// it, are a buffer of i32, one a token; one that is not in 0 .. seq - 1 is taken as the nearest
// that is.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/kernels/Specs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

/// Tokens that one task handles.
inline constexpr int64_t ropeTokensPerTask = 64;
int64_t taskCount(const RopeSpec &spec, int64_t extent);
int64_t ropeFlops(const RopeSpec &spec, int64_t extent);
int64_t ropeBytes(const RopeSpec &spec, int64_t extent); ///< the tables once

mlir::func::FuncOp emitRope(mlir::ModuleOp module, llvm::StringRef name, const RopeSpec &spec,
                            const CpuTarget &target);

} // namespace gradc::codegen
