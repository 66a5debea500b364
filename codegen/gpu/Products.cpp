// See Products.h.
#include "codegen/gpu/Products.h"

#include <limits>

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t depth = 16; ///< of a matrix instruction

/// The bits of 1.
int64_t oneOf(Dtype dtype) { return dtype == Dtype::bf16 ? 0x3f80 : 0x3c00; }

} // namespace

void Products::dots(Bands &sums, const SharedTile &own, const SharedTile &tile,
                    int64_t first) const {
  if (dtype == Dtype::f32)
    plainDots(sums, own, tile, first);
  else
    dotsOfMatrices(sums, own, tile, first);
}

void Products::weigh(Bands &sums, const Bands &weights, const SharedTile &tile,
                     int64_t first) const {
  if (dtype == Dtype::f32)
    plainWeigh(sums, weights, tile, first);
  else if (careful)
    weighFinite(sums, weights, tile, first);
  else
    weighMatrices(sums, weights, tile, first);
}

// --- matrix instructions

void Products::dotsOfMatrices(Bands &sums, const SharedTile &own, const SharedTile &tile,
                              int64_t first) const {
  for (int64_t column = 0; column < tile.layout.columns; column += depth) {
    SmallVector<FragmentA> rows;
    for (size_t band = 0; band < sums.size(); ++band)
      rows.push_back(own.loadA(static_cast<int64_t>(band) * bandRows, column));
    for (size_t n = 0; n < sums[0].size(); n += 2) {
      auto pair = tile.loadB(first + static_cast<int64_t>(n) * fragmentColumns, column);
      for (auto [band, a] : llvm::zip_equal(sums, rows)) {
        multiplyAdd(e, dtype, band[n], a, pair[0]);
        multiplyAdd(e, dtype, band[n + 1], a, pair[1]);
      }
    }
  }
}

/// By band, and by step of the depth.
std::vector<std::vector<FragmentA>> Products::operandsOf(const Bands &weights) const {
  std::vector<std::vector<FragmentA>> operands(weights.size());
  for (auto [to, band] : llvm::zip_equal(operands, weights))
    for (size_t n = 0; n < band.size(); n += 2)
      to.push_back(asOperand(e, dtype, band[n], band[n + 1]));
  return operands;
}

void Products::weighMatrices(Bands &sums, const Bands &weights, const SharedTile &tile,
                             int64_t first) const {
  auto operands = operandsOf(weights);
  for (size_t step = 0; step < operands[0].size(); ++step)
    for (size_t n = 0; n < sums[0].size(); n += 2) {
      auto pair = tile.loadTransposedB(first + static_cast<int64_t>(step) * depth,
                                       static_cast<int64_t>(n) * fragmentColumns);
      for (auto [band, a] : llvm::zip_equal(sums, operands)) {
        multiplyAdd(e, dtype, band[n], a[step], pair[0]);
        multiplyAdd(e, dtype, band[n + 1], a[step], pair[1]);
      }
    }
}

/// The elements that are finite, others being 0; and 1 in their places, 0 elsewhere.
std::pair<FragmentB, FragmentB> Products::splitFinite(const FragmentB &from) const {
  int64_t exponent = dtype == Dtype::bf16 ? 0x7f80 : 0x7c00;
  int64_t one = oneOf(dtype);
  constexpr int64_t half = 0xffff;
  FragmentB finite, marks;
  for (size_t i = 0; i < from.r.size(); ++i) {
    Val kept = e.number(0), marked = e.number(0);
    for (int64_t shift : {0, 16}) {
      auto inPlace = [&](int64_t bits) {
        return e.number(static_cast<int32_t>(static_cast<uint32_t>(bits) << shift));
      };
      Val isFinite = e.equal((from.r[i] & inPlace(exponent)) ^ inPlace(exponent), 0);
      kept = kept | e.select(isFinite, e.number(0), inPlace(half));
      marked = marked | e.select(isFinite, inPlace(one), e.number(0));
    }
    finite.r[i] = from.r[i] & kept;
    marks.r[i] = marked;
  }
  return {finite, marks};
}

/// 1 where a weight, as it is multiplied, is not 0.
FragmentA Products::presenceOf(const FragmentA &weights) const {
  FragmentA present;
  for (auto [to, from] : llvm::zip_equal(present.r, weights.r)) {
    to = e.number(0);
    for (int64_t shift : {0, 16}) {
      Val isZero = e.equal(from & (int64_t{0x7fff} << shift), 0);
      to = to | e.select(isZero, e.number(0), e.number(oneOf(dtype) << shift));
    }
  }
  return present;
}

/// Sums of the finite elements; NaN where a weight other than 0 meets one that is not.
void Products::weighFinite(Bands &sums, const Bands &weights, const SharedTile &tile,
                           int64_t first) const {
  auto operands = operandsOf(weights);
  for (size_t n = 0; n < sums[0].size(); n += 2) {
    Bands met = zeroBands(e, static_cast<int64_t>(sums.size()), 2 * fragmentColumns);
    for (size_t step = 0; step < operands[0].size(); ++step) {
      auto pair = tile.loadTransposedB(first + static_cast<int64_t>(step) * depth,
                                       static_cast<int64_t>(n) * fragmentColumns);
      for (size_t half = 0; half < 2; ++half) {
        auto [finite, marks] = splitFinite(pair[half]);
        for (size_t band = 0; band < sums.size(); ++band) {
          multiplyAdd(e, dtype, sums[band][n + half], operands[band][step], finite);
          multiplyAdd(e, dtype, met[band][half], presenceOf(operands[band][step]), marks);
        }
      }
    }
    Val nan = e.real(std::numeric_limits<float>::quiet_NaN());
    for (size_t band = 0; band < sums.size(); ++band)
      for (size_t half = 0; half < 2; ++half)
        sums[band][n + half].map([&](Val x, int h, int p) {
          return e.select(e.less(e.real(0), met[band][half].c[2 * h + p]), nan, x);
        });
  }
}

// --- fused multiply-adds

/// A loop over units of four columns.
void Products::plainDots(Bands &sums, const SharedTile &own, const SharedTile &tile,
                         int64_t first) const {
  constexpr int64_t unit = 4;
  e.loop(e.number(0), e.number(tile.layout.units()), variablesOf(sums), [&](Val step) {
    SmallVector<std::array<Val, 2>> rows;
    for (size_t band = 0; band < sums.size(); ++band) {
      Val row = place.quad + static_cast<int64_t>(band) * bandRows;
      Val upper = e.loadVector(unit, e.f32(), own.unit(row, step));
      rows.push_back({upper, e.loadVector(unit, e.f32(), own.unit(row + bandRows / 2, step))});
    }
    for (size_t n = 0; n < sums[0].size(); ++n)
      for (int p = 0; p < 2; ++p) {
        int64_t at = first + static_cast<int64_t>(n) * fragmentColumns + p;
        Val column = e.loadVector(unit, e.f32(), tile.unit(place.member * 2 + at, step));
        for (auto [band, row] : llvm::zip_equal(sums, rows))
          for (int h = 0; h < 2; ++h)
            for (int64_t i = 0; i < unit; ++i) {
              Val &sum = band[n].c[2 * h + p];
              sum = e.fma(e.element(row[h], i), e.element(column, i), sum);
            }
      }
  });
}

/// A loop over the members of a quad, each of which has two of eight columns of weights.
void Products::plainWeigh(Bands &sums, const Bands &weights, const SharedTile &tile,
                          int64_t first) const {
  constexpr int64_t members = 4;
  Val zero = e.real(0), quadStart = place.lane - place.member;
  e.loop(e.number(0), e.number(members), variablesOf(sums), [&](Val member) {
    for (size_t fragment = 0; fragment < weights[0].size(); ++fragment)
      for (int p = 0; p < 2; ++p) {
        SmallVector<std::array<Val, 2>> weight;
        for (const auto &band : weights) {
          const std::array<Val, 4> &c = band[fragment].c;
          Val upper = e.from(c[p], quadStart + member);
          weight.push_back({upper, e.from(c[2 + p], quadStart + member)});
        }
        Val row = member * 2 + (first + static_cast<int64_t>(fragment) * fragmentColumns + p);
        for (size_t n = 0; n < sums[0].size(); ++n) {
          Val address = tile.pairOf(row, static_cast<int64_t>(n) * fragmentColumns);
          Val pair = e.loadVector(2, e.f32(), address);
          for (auto [band, w] : llvm::zip_equal(sums, weight))
            band[n].map([&](Val sum, int h, int p) {
              Val x = e.element(pair, p);
              return e.fma(w[h], careful ? e.select(e.notZero(w[h]), x, zero) : x, sum);
            });
        }
      }
  });
}

} // namespace gradc::codegen::gpu
