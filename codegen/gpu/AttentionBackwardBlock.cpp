// See AttentionBackwardBlock.h: what a block owns, what it brings, and what it leaves.
#include "codegen/gpu/AttentionBackwardBlock.h"

#include "codegen/kernels/CeilDiv.h"

#include <limits>

using namespace mlir;

namespace gradc::codegen::gpu {

SmallVector<BackwardRole> backwardRoles(const AttentionSpec &spec) {
  BackwardRole ofQueries{/*ofKeys=*/false, /*makesFirst=*/true, /*makesSecond=*/false};
  if (!splitsKeyGradients(spec))
    return {{/*ofKeys=*/true, true, true}, ofQueries};
  return {{/*ofKeys=*/true, true, false}, {/*ofKeys=*/true, false, true}, ofQueries};
}

static AttentionSchedule scheduleOf(const AttentionSpec &spec, const BackwardRole &role) {
  return role.ofKeys ? keySchedule(spec) : querySchedule(spec);
}

int64_t blocksOfKeyHead(const AttentionSpec &spec, const BackwardRole &role) {
  int64_t heads = role.ofKeys ? 1 : spec.group();
  return heads * ceilDiv(spec.seq, scheduleOf(spec, role).rows());
}

BackwardLayout::BackwardLayout(const AttentionSpec &spec, const BackwardRole &role) {
  AttentionSchedule schedule = scheduleOf(spec, role);
  TileLayout layout{tileColumns(spec), spec.dtype};
  tile = layout.bytes(schedule.tile);
  statistics = 2 * tile;
  perStatistic = schedule.tile * 4;
  stage = statistics + (role.ofKeys ? (spec.documents ? 3 : 2) * perStatistic : 0);
  own = 2 * stage;
  total = own + (role.makesFirst ? 2 : 1) * layout.bytes(schedule.rows());
}

int64_t backwardBlocksOfKeyHead(const AttentionSpec &spec) {
  int64_t blocks = 0;
  for (const BackwardRole &role : backwardRoles(spec))
    blocks += blocksOfKeyHead(spec, role);
  return blocks;
}

int64_t backwardSharedBytes(const AttentionSpec &spec) {
  int64_t most = 0;
  for (const BackwardRole &role : backwardRoles(spec))
    most = std::max(most, BackwardLayout(spec, role).total);
  return most;
}

BackwardBlock::BackwardBlock(BlockPrinter &printer, const AttentionSpec &spec,
                             const BackwardRole &role, Val memory, ArrayRef<Value> buffers)
    : AttentionBlock(printer, spec, scheduleOf(spec, role), memory, buffers.drop_front(6)),
      spec(spec), role(role), schedule(scheduleOf(spec, role)), shared(spec, role),
      buffers(buffers) {}

void BackwardBlock::emit(Val task, Val group, int64_t keyHeads) {
  openTask(task, group, keyHeads);
  SmallVector<Bands *> results;
  if (role.makesFirst)
    results.push_back(&first);
  if (role.makesSecond)
    results.push_back(&second);
  for (Bands *sums : results)
    *sums = zeroBands(e, schedule.bands, ownColumns());
  attempt(results, firstRow + warpRow, {}, [&](bool careful) { passOverTiles(careful); });
  store();
}

void BackwardBlock::openTask(Val task, Val group, int64_t keyHeads) {
  int64_t perSequence = role.ofKeys ? spec.kvHeads : spec.heads;
  int64_t heads = keyHeads * (role.ofKeys ? 1 : spec.group());
  int64_t tiles = ceilDiv(spec.seq, schedule.rows());
  Val ofTile = task / heads, item = group * heads + task % heads;
  if (spec.masked() && !role.ofKeys) // the longest first
    ofTile = e.number(tiles - 1) - ofTile;
  firstRow = ofTile * schedule.rows();
  batch = item / perSequence;
  head = item % perSequence;
  mask.openSequence(batch);
}

/// Of a query; 0 where there is none. Its delta only where something is made of it. For whole
/// quads.
BackwardBlock::RowStatistics BackwardBlock::statisticsOf(Val queryHead, Val query) {
  Val inside = e.minimum(query, e.number(spec.seq - 1));
  Val lse = e.load(e.f32(), e.at(rowsOfHead(buffer(4), batch, queryHead), e.widen(inside * 4)), 4);
  // A query that has seen nothing has no weights: its scores, all -inf, give exp2(-inf).
  Val isNothing = e.equal(lse, e.real(-std::numeric_limits<float>::infinity()));
  Val zero = e.real(0), exists = e.less(query, spec.seq);
  Val delta = role.makesFirst ? rowProduct(outputs(queryHead), gradients(queryHead), query) : zero;
  Val offset = e.select(isNothing, zero, lse * e.real(-log2e));
  return {e.select(exists, offset, zero), e.select(exists, delta, zero)};
}

void BackwardBlock::passOverTiles(bool careful) {
  for (Bands *sums : {&first, &second})
    for (Val *x : variablesOf(*sums))
      *x = e.real(0);
  AttentionMask::Range seen = role.ofKeys ? mask.queriesOf(firstRow, schedule.rows())
                                          : mask.keysOf(firstRow, schedule.rows());
  firstTile = seen.low / schedule.tile;
  Val endTile = (seen.high + (schedule.tile - 1)) / schedule.tile;
  tilesAHead = e.maximum(endTile - firstTile, e.number(0));
  loadOwn();
  Variables carried = variablesOf(first), others = variablesOf(second);
  carried.insert(carried.end(), others.begin(), others.end());
  pipeline(
      role.ofKeys ? tilesAHead * spec.group() : tilesAHead, shared.stage, carried,
      [&](Val i, Val bytes) { fetch(i, bytes); },
      [&](Val i, Val bytes) {
        openDropout(i);
        for (int64_t chunk = 0; chunk < schedule.tile; chunk += schedule.chunk)
          compute(tileOf(i), bytes, chunk, careful);
      });
}

void BackwardBlock::loadOwn() {
  HeadMatrix one = role.ofKeys ? keys(head) : queries(head);
  copy.load(tile(shared.own), one, firstRow, schedule.rows());
  if (role.makesFirst) {
    HeadMatrix two = role.ofKeys ? values(head) : gradients(head);
    copy.load(tile(shared.own + layout.bytes(schedule.rows())), two, firstRow, schedule.rows());
  }
  rows.clear();
  for (int64_t band = 0; band < schedule.bands && !role.ofKeys; ++band)
    for (int64_t h = 0; h < 2; ++h)
      rows.push_back(
          statisticsOf(head, firstRow + warpRow + place.quad + (band * bandRows + 8 * h)));
}

void BackwardBlock::fetch(Val i, Val bytes) {
  Val from = tileOf(i), of = headOf(i);
  if (!role.ofKeys) {
    Val keyHead = of / spec.group();
    copy.load(tile(bytes), keys(keyHead), from, schedule.tile);
    copy.load(tile(bytes + shared.tile), values(keyHead), from, schedule.tile);
    return;
  }
  copy.load(tile(bytes), queries(of), from, schedule.tile);
  copy.load(tile(bytes + shared.tile), gradients(of), from, schedule.tile);
  fetchStatistics(i, bytes);
}

void BackwardBlock::fetchStatistics(Val i, Val bytes) {
  Val from = tileOf(i);
  Val statistics = e.at(memory, bytes + shared.statistics);
  int64_t quads = schedule.threads() / 4;
  for (int64_t done = 0; done < schedule.tile; done += quads) {
    Val row = place.thread / 4 + done;
    e.when(e.less(row, schedule.tile), {}, [&] { // whole warps
      RowStatistics of = statisticsOf(headOf(i), from + row);
      e.when(e.equal(place.member, 0), {}, [&] {
        Val to = e.at(statistics, row * 4);
        e.store(of.offset, to, 4);
        if (role.makesFirst)
          e.store(of.delta, e.at(to, shared.perStatistic), 4);
        if (spec.documents)
          e.store(mask.firstKey(from + row), e.at(to, 2 * shared.perStatistic), 4);
      });
    });
  }
}

void BackwardBlock::store() {
  auto multiply = [&](Bands &sums, double factor) {
    for (auto &band : sums)
      for (FragmentC &fragment : band)
        fragment.map([&](Val x, int, int) { return x * e.real(factor); });
  };
  multiply(first, spec.scale);
  if (dropout)
    multiply(second, dropout.factor());
  struct Result {
    Bands &sums;
    int64_t place; ///< bytes
    HeadMatrix to;
  };
  SmallVector<Result> results;
  if (role.makesFirst)
    results.push_back({first, 0,
                       role.ofKeys ? matrix(result(1), spec.dk, batch, head)
                                   : matrix(result(0), spec.dq, batch, head)});
  if (role.makesSecond)
    results.push_back(
        {second, layout.bytes(schedule.rows()), matrix(result(2), spec.dv, batch, head)});
  for (Result &made : results)
    for (int64_t band = 0; band < schedule.bands; ++band)
      ownPart(tile(made.place)).storeBand(warpRow + band * bandRows, made.sums[band]);
  e.k.barrier();
  for (Result &made : results)
    copy.store(tile(made.place), made.to, firstRow, schedule.rows());
}

} // namespace gradc::codegen::gpu
