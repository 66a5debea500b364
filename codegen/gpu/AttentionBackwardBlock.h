// A block of attention's backward pass. Those that own keys and those that own queries do the same
// on exchanged sides: with own rows X1, X2 and the other side's tiles Y1, Y2
//   scores = X1 Y1^T, dP = X2 Y2^T, P = exp(scale scores - lse), dS = P (dP - delta),
//   first += dS Y1, second += P Y2,
// where keys own (K, V) and see (Q, dO): first is dk, second dv, and queries own (Q, dO) and see
// (K, V): first is dq. So P and dS already are the operands of the products that use them. With
// dropout's factors M: dS = P (M dP - delta), and second takes M P.
#pragma once

#include "codegen/gpu/AttentionBlock.h"

namespace gradc::codegen::gpu {

/// Whose rows a block owns, and which of the two sums it makes. A block that makes only the second
/// needs neither dP nor X2.
struct BackwardRole {
  bool ofKeys;
  bool makesFirst, makesSecond;
};
/// The roles of a launch's blocks, in the order in which a group of heads has them.
llvm::SmallVector<BackwardRole> backwardRoles(const AttentionSpec &spec);
/// Blocks of a role, or of all, that a key head has with its query heads.
int64_t blocksOfKeyHead(const AttentionSpec &spec, const BackwardRole &role);
int64_t backwardBlocksOfKeyHead(const AttentionSpec &spec);

/// Places in shared memory, in bytes.
struct BackwardLayout {
  int64_t tile, statistics, stage, own, total; ///< bytes; `own` and `statistics` are places
  int64_t perStatistic;

  BackwardLayout(const AttentionSpec &spec, const BackwardRole &role);
};

class BackwardBlock : AttentionBlock {
public:
  /// `buffers`: the kernel's. The spec outlives the block.
  BackwardBlock(BlockPrinter &printer, const AttentionSpec &spec, const BackwardRole &role,
                Val memory, llvm::ArrayRef<mlir::Value> buffers);

  /// The role's block number `task` in the group number `group`, of `keyHeads` key heads each.
  void emit(Val task, Val group, int64_t keyHeads);

private:
  /// What a row's scores need besides: -lse in base 2, and rowsum(dO * O).
  struct RowStatistics {
    Val offset, delta;
  };

  Val buffer(size_t i) { return e.of(buffers[i]); }
  Val result(size_t i) { return buffer(buffers.size() - 3 + i); }
  HeadMatrix queries(Val queryHead) { return matrix(buffer(0), spec.q, batch, queryHead); }
  HeadMatrix keys(Val keyHead) { return matrix(buffer(1), spec.k, batch, keyHead); }
  HeadMatrix values(Val keyHead) { return matrix(buffer(2), spec.v, batch, keyHead); }
  HeadMatrix outputs(Val queryHead) { return matrix(buffer(3), spec.o, batch, queryHead); }
  HeadMatrix gradients(Val queryHead) { return matrix(buffer(5), spec.dO, batch, queryHead); }
  Val tileOf(Val i) const { return (firstTile + i % tilesAHead) * schedule.tile; }
  Val headOf(Val i) { return role.ofKeys ? head * spec.group() + i / tilesAHead : head; }

  void openTask(Val task, Val group, int64_t keyHeads);
  RowStatistics statisticsOf(Val queryHead, Val query);
  void passOverTiles(bool careful);
  void loadOwn();
  void fetch(Val i, Val bytes);
  void fetchStatistics(Val i, Val bytes);
  void store();

  void openDropout(Val i);
  void compute(Val from, Val bytes, int64_t chunk, bool careful);
  void dropGradients(Bands &dP, int64_t fragment);
  void weigh(Bands &scores, Val statistics, bool careful);
  void subtractDelta(Bands &dP, const Bands &p, Val statistics, bool careful);
  std::array<Val, 2> ofColumns(Val statistics, size_t fragment);

  const AttentionSpec &spec;
  BackwardRole role;
  AttentionSchedule schedule;
  BackwardLayout shared;
  llvm::ArrayRef<mlir::Value> buffers;
  Val batch, head, firstRow; ///< the head is a key head where keys are owned
  Val firstTile, tilesAHead;
  std::vector<RowStatistics> rows; ///< by band and half, where queries are owned
  std::vector<Val> kept;           ///< by band: of the tile (AttentionDropout)
  Bands first, second;
};

} // namespace gradc::codegen::gpu
