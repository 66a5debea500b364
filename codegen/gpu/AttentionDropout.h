// Which weights dropout keeps in attention: the masks of ir/row/Philox.h for nn.dropout on
// [batch, heads, seq, seq], made anew wherever they are needed, as bits in the registers of the
// thread that holds the weights.
//
// A counter has the numbers of four keys that are 8 apart, of one query. Where rows are whole
// groups of 32 keys these four are a thread's own in four fragments side by side (own rows being
// queries) or two of them in one fragment (own rows being keys), so that nothing is exchanged.
// Other rows take a counter a weight.
#pragma once

#include "codegen/gpu/Fragments.h"
#include "codegen/kernels/AttentionSpec.h"
#include "codegen/kernels/RandomNumbers.h"

namespace gradc::codegen::gpu {

class AttentionDropout {
public:
  /// `keys`: the kernel's buffers of seed, step, first row and stream; not looked at without
  /// dropout. They outlive the object.
  AttentionDropout(Emit &e, const Place &place, const AttentionSpec &spec,
                   llvm::ArrayRef<mlir::Value> keys);

  explicit operator bool() const { return spec.dropout > 0; }
  /// What kept weights are multiplied by, and all sums of them.
  double factor() const { return 1 / (1 - spec.dropout); }

  /// Turns to a head of a sequence (i32); needed before what follows, once a tile: the keys, which
  /// it loads, would else be held in registers beside the products.
  void openHead(Val batch, Val head);

  /// Bits of a band of 16 rows from `row` on, of up to 64 columns from `column` on: `keeps` reads
  /// them. Row and column are multiples of 16. Whole warps.
  Val keptOfQueries(Val row, Val column, int64_t columns); ///< rows are queries, columns keys
  Val keptOfKeys(Val row, Val column, int64_t columns);    ///< rows are keys, columns queries

  /// Whether element c[2h + p] of fragment n of the band is kept.
  Val keeps(Val bits, int64_t n, int h, int p);

private:
  using Words = std::array<Val, 4>; ///< vectors: the words of two counters
  struct Bits {
    Val bits, place; ///< of the lowest
  };
  Val element(Val query, Val key) const;
  Words wordsOf(llvm::ArrayRef<Val> elements) const;
  Val bit(Val word, int64_t place) const;
  Val wordInGroup(const Words &words, int64_t counter, int64_t word, Val low) const;
  Val ownWord(const Words &words, int64_t counter, Val element) const;
  Val collect(int64_t steps, llvm::function_ref<Bits(Val step)> step) const;
  bool wholeGroups() const;

  Emit &e;
  const Place &place;
  const AttentionSpec &spec;
  llvm::ArrayRef<mlir::Value> keys;
  RandomStream stream;
  Val firstRow; ///< i64: of this head's query 0 in rows of [batch, heads, seq, seq]
};

} // namespace gradc::codegen::gpu
