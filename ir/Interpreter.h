// The interpreter: runs a function of nn ops on host tensors in f64, op by op, each by its own
// reference (EvaluateOpInterface). It is what passes and kernels are checked against.
#pragma once

#include "ir/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc::nn {

/// The results of a function on arguments of its types. Nothing is rounded to the element types:
/// f32 and bf16 tensors hold f64 values. Values are freed after their last use. Fails, with a
/// diagnostic on the op or function, where an op cannot be evaluated or refuses its values.
/// Understands `nn.microbatches` and `func.call` besides ops that evaluate themselves.
mlir::FailureOr<llvm::SmallVector<HostTensor>> interpret(mlir::func::FuncOp function,
                                                         llvm::ArrayRef<HostTensor> arguments);

/// The same for the single block of a region that uses nothing from outside, up to its terminator.
mlir::FailureOr<llvm::SmallVector<HostTensor>>
interpretRegion(mlir::Region &region, llvm::ArrayRef<HostTensor> arguments);

/// Zeros in the shape of a ranked, statically shaped tensor type.
HostTensor zerosOf(mlir::Type type);

/// Random arguments that the function accepts, the same for the same seed and function. An argument
/// with the attribute `nn.range = [low, high]` (numbers) is uniform in it; else the ops that read
/// it, through views and regions, decide: indices are below the size of what they index and some
/// targets are -1, second moments are positive, optimizer coefficients sane. Floats that no op
/// restricts are bell-shaped with standard deviation 0.5, unrestricted integers in [0, 4).
llvm::SmallVector<HostTensor> randomArguments(mlir::func::FuncOp function, uint64_t seed);

} // namespace gradc::nn
