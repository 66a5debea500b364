// Prints the random numbers of `uniform` nodes (ir/row/Philox.h) as integer vector arithmetic.
#pragma once

#include "codegen/kernels/Vectors.h"

#include <array>

namespace gradc::codegen {

/// Seed, step (i32 scalars) and stream of a `uniform` node.
struct RandomStream {
  mlir::Value seed, step;
  int32_t stream = 0;
};

/// The four words, as i32 shaped like `numbers`, of the counters numbered so (i64).
std::array<mlir::Value, 4> emitPhiloxWords(const Vectors &vectors, const RandomStream &stream,
                                           mlir::Value numbers);
/// The f32 in [0, 1) that a word stands for.
mlir::Value emitFraction(const Vectors &vectors, mlir::Value word);

/// True when `emitUniformGroup` can make the numbers of `count` vectors at once.
bool canEmitUniformGroup(const Vectors &vectors, int64_t count);

/// `count` vectors of numbers for consecutive elements from global index `first` (i64), which must
/// be a multiple of lanes * count.
llvm::SmallVector<mlir::Value> emitUniformGroup(const Vectors &vectors, const RandomStream &stream,
                                                mlir::Value first, int64_t count);

/// One vector of numbers for consecutive elements from any global index: four times the work.
mlir::Value emitUniform(const Vectors &vectors, const RandomStream &stream, mlir::Value first);

} // namespace gradc::codegen
