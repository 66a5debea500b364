// The two products that attention is made of, on matrix instructions for 16-bit elements and on
// fused multiply-adds for f32. A warp owns bands of rows; all warps read the same tile.
#pragma once

#include "codegen/gpu/Tiles.h"

namespace gradc::codegen::gpu {

/// `careful`: an element of a tile has no effect on rows whose weight for it is 0, not even when it
/// is infinite or NaN. Otherwise such a row becomes NaN. The bits are the same where all is finite.
class Products {
public:
  Products(Emit &e, const Place &place, row::Dtype dtype, bool careful)
      : e(e), place(place), dtype(dtype), careful(careful) {}

  /// sums[i][j] += dot(own row i, row first + j of tile), over all columns. `own` begins with the
  /// warp's rows; as many tile rows as the sums have columns, a multiple of 16.
  void dots(Bands &sums, const SharedTile &own, const SharedTile &tile, int64_t first) const;

  /// sums[i] += sum over j of weights[i][j] * row first + j of tile.
  void weigh(Bands &sums, const Bands &weights, const SharedTile &tile, int64_t first) const;

private:
  void dotsOfMatrices(Bands &sums, const SharedTile &own, const SharedTile &tile,
                      int64_t first) const;
  void weighMatrices(Bands &sums, const Bands &weights, const SharedTile &tile,
                     int64_t first) const;
  void weighFinite(Bands &sums, const Bands &weights, const SharedTile &tile, int64_t first) const;
  void plainDots(Bands &sums, const SharedTile &own, const SharedTile &tile, int64_t first) const;
  void plainWeigh(Bands &sums, const Bands &weights, const SharedTile &tile, int64_t first) const;
  std::vector<std::vector<FragmentA>> operandsOf(const Bands &weights) const;
  FragmentA presenceOf(const FragmentA &weights) const;
  std::pair<FragmentB, FragmentB> splitFinite(const FragmentB &from) const;

  Emit &e;
  const Place &place;
  row::Dtype dtype;
  bool careful;
};

} // namespace gradc::codegen::gpu
