// Dropout in the attention kernels: the factors, 0 or 1 / (1 - rate), of a query's keys. They are
// made anew wherever they are needed, forward and backward, from the numbers that nn.dropout has
// for [batch, heads, seq, seq] (ir/row/Philox.h).
#pragma once

#include "codegen/cpu/Attention.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

class AttentionDropout {
public:
  /// Reads seed, step, first row and stream from the kernel's buffers from `firstBuffer` on; no
  /// buffer is read without dropout. `keys`: the most that are asked for at once.
  AttentionDropout(KernelBuilder &k, const AttentionSpec &spec, int firstBuffer, int64_t keys);

  explicit operator bool() const { return spec.dropout > 0; }

  /// Turns to a head; needed before `factors`.
  void openHead(mlir::Value batch, mlir::Value head);

  /// Makes the factors of the query's keys `low` .. `high`, which count from key `base`: an address
  /// at which the factor of key base + t stands at t. Others there are finite. The next call
  /// overwrites them.
  mlir::Value factors(mlir::Value query, mlir::Value base, mlir::Value low, mlir::Value high);

private:
  KernelBuilder &k;
  const AttentionSpec &spec;
  mlir::Value seed, step, firstRow; ///< the last widened to i64
  mlir::Value headRow;              ///< of query 0, in rows of [batch, heads, seq, seq]
  mlir::Value scratch;
};

} // namespace gradc::codegen
