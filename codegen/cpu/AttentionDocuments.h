// Documents in the attention kernels: the first key that each query sees, of a buffer of i32
// [batch, seq]. The numbers need not grow along a row, and one that is out of range is taken as the
// nearest that is not: whatever they are, no address depends on more than 0 .. seq.
#pragma once

#include "codegen/cpu/Attention.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

class AttentionDocuments {
public:
  /// The numbers are the kernel's buffer `buffer`, which is not read without documents.
  AttentionDocuments(KernelBuilder &k, const AttentionSpec &spec, int buffer);

  explicit operator bool() const { return spec.documents; }

  /// Turns to a sequence; needed before what follows.
  void openSequence(mlir::Value batch);

  /// The first key that a query sees; seq where it sees none.
  mlir::Value firstKey(mlir::Value query);
  /// The least of `count` queries from `query` on; those beyond the sequence count as its last.
  mlir::Value leastOf(mlir::Value query, int64_t count);

  struct Bounds {
    mlir::Value least, greatest;
  };
  /// Over the queries low .. high: seq and 0 where there is none.
  Bounds bounds(mlir::Value low, mlir::Value high);
  /// Behind the last of the queries low .. high that sees a key before `endKey`; low where none
  /// does.
  mlir::Value endOfSeeing(mlir::Value low, mlir::Value high, mlir::Value endKey);

private:
  KernelBuilder &k;
  const AttentionSpec &spec;
  mlir::Value all, ofSequence;
};

} // namespace gradc::codegen
