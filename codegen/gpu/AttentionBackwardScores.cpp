// See AttentionBackwardBlock.h: what a block makes of a tile.
#include "codegen/gpu/AttentionBackwardBlock.h"

#include <limits>

using namespace mlir;

namespace gradc::codegen::gpu {

/// Turns to the weights of a tile that dropout keeps.
void BackwardBlock::openDropout(Val i) {
  if (!dropout)
    return;
  dropout.openHead(batch, headOf(i));
  kept.clear();
  for (int64_t band = 0; band < schedule.bands; ++band) {
    Val row = firstRow + warpRow + band * bandRows;
    kept.push_back(role.ofKeys ? dropout.keptOfKeys(row, tileOf(i), schedule.tile)
                               : dropout.keptOfQueries(row, tileOf(i), schedule.tile));
  }
}

/// The other side's rows chunk .. chunk + schedule.chunk of a tile.
void BackwardBlock::compute(Val from, Val bytes, int64_t chunk, bool careful) {
  Products products(e, place, spec.dtype, careful);
  SharedTile one = tile(bytes), two = tile(bytes + shared.tile);
  SharedTile ownOne = tile(shared.own).from(warpRow);
  SharedTile ownTwo = tile(shared.own + layout.bytes(schedule.rows())).from(warpRow);
  Val statistics = e.at(memory, bytes + (shared.statistics + chunk * 4));
  Bands p = zeroBands(e, schedule.bands, schedule.chunk), dS = p;
  products.dots(p, ownOne, one, chunk);
  orient(p);
  if (role.makesFirst)
    products.dots(dS, ownTwo, two, chunk);
  Val row = firstRow + warpRow, column = from + chunk;
  if (role.ofKeys)
    mask.maskQueries(p, row, column, e.at(statistics, 2 * shared.perStatistic));
  else
    mask.maskKeys(p, row, column);
  int64_t fragment = chunk / fragmentColumns;
  weigh(p, statistics, careful);
  if (role.makesFirst) {
    if (dropout)
      dropGradients(dS, fragment);
    subtractDelta(dS, p, statistics, careful);
  }
  if (role.makesSecond) {
    if (dropout)
      drop(p, kept, fragment);
    products.weigh(second, p, ownPart(two), chunk);
  }
  if (role.makesFirst)
    products.weigh(first, dS, ownPart(one), chunk);
}

/// The gradients of what dropout gave become those of what it took.
void BackwardBlock::dropGradients(Bands &dP, int64_t fragment) {
  drop(dP, kept, fragment);
  for (auto &band : dP)
    for (FragmentC &x : band)
      x.map([&](Val gradient, int, int) { return gradient * e.real(dropout.factor()); });
}

/// One statistic of the thread's two columns of a fragment, of tiles whose rows are queries.
std::array<Val, 2> BackwardBlock::ofColumns(Val statistics, size_t fragment) {
  Val at = e.at(statistics, place.member * 8 + static_cast<int64_t>(fragment) * 32);
  Val both = e.loadVector(2, e.f32(), at);
  return {e.element(both, 0), e.element(both, 1)};
}

/// Scores become P.
void BackwardBlock::weigh(Bands &scores, Val statistics, bool careful) {
  Val toBase2 = e.real(scale() * log2e);
  Val hidden = e.real(-std::numeric_limits<float>::infinity());
  for (size_t n = 0; n < scores[0].size(); ++n) {
    std::array<Val, 2> offsets;
    if (role.ofKeys)
      offsets = ofColumns(statistics, n);
    for (size_t band = 0; band < scores.size(); ++band)
      scores[band][n].map([&](Val x, int h, int c) {
        Val offset = role.ofKeys ? offsets[c] : rows[2 * band + h].offset;
        Val weight = e.exp2(e.fma(x, toBase2, offset));
        // What is hidden has no weight even where its query's lse is NaN.
        return careful ? e.select(e.equal(x, hidden), e.real(0), weight) : weight;
      });
  }
}

/// dP becomes dS, not yet scaled.
void BackwardBlock::subtractDelta(Bands &dP, const Bands &p, Val statistics, bool careful) {
  for (size_t n = 0; n < dP[0].size(); ++n) {
    std::array<Val, 2> deltas;
    if (role.ofKeys)
      deltas = ofColumns(e.at(statistics, shared.perStatistic), n);
    for (size_t band = 0; band < dP.size(); ++band)
      dP[band][n].map([&](Val x, int h, int c) {
        Val delta = role.ofKeys ? deltas[c] : rows[2 * band + h].delta;
        Val weight = p[band][n].c[2 * h + c], gradient = weight * (x - delta);
        return careful ? e.select(e.notZero(weight), gradient, e.real(0)) : gradient;
      });
  }
}

} // namespace gradc::codegen::gpu
