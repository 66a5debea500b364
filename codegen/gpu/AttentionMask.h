// Which keys a query sees, as a block of an attention kernel asks: the tiles that it must look at,
// and the pairs within them. Query i sees the keys first .. last: last is i where keys behind a
// query are hidden, else the sequence's last; first is 0, i - window + 1, or where the query's
// document starts, whichever is latest.
#pragma once

#include "codegen/gpu/Attention.h"
#include "codegen/gpu/Fragments.h"

namespace gradc::codegen::gpu {

class AttentionMask {
public:
  /// `firstKeys`: the buffer of i32 [batch, seq], which is not read without documents.
  AttentionMask(Emit &e, const Place &place, const AttentionSpec &spec, Val firstKeys)
      : e(e), place(place), spec(spec), firstKeys(firstKeys) {}

  /// Turns to a sequence; needed before what follows.
  void openSequence(Val batch);

  struct Range {
    Val low, high; ///< high is not in it
  };
  /// Keys that some of `count` queries from `query` on see. Notes the documents of these queries.
  Range keysOf(Val query, int64_t count);
  /// Queries that see some of `count` keys from `key` on.
  Range queriesOf(Val key, int64_t count) const;

  /// The first key of a query, clamped to 0 .. seq; of the last one where it is beyond.
  Val firstKey(Val query) const;

  // Masking sets scores to -inf: of a warp's rows from `row` on and the columns from `column` on.
  /// Rows are queries, of the block that keysOf was called for.
  void maskKeys(Bands &scores, Val row, Val column) const;
  /// Rows are keys. `columnFirstKeys`: address in shared memory of the first keys from `column` on.
  void maskQueries(Bands &scores, Val row, Val column, Val columnFirstKeys) const;

private:
  Val lastKey(Val query) const;
  Val firstSeen(Val query) const;

  Emit &e;
  const Place &place;
  const AttentionSpec &spec;
  Val firstKeys;
  Val latestFirst; ///< of the block's queries
};

} // namespace gradc::codegen::gpu
