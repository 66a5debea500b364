// What a product must be before it may touch memory.
#pragma once

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

/// A defect status names a type or an epilogue that does not exist, or an operand (A, B, C, bias or
/// aux) whose elements reach outside of its buffer.
Status checkGemm(const GradcGemm &gemm);

} // namespace gradc::rt
