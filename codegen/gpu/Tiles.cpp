// See Tiles.h.
#include "codegen/gpu/Tiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t period = 8; ///< rows after which the swizzle repeats

} // namespace

SharedTile::SharedTile(Emit &e, const Place &place, const TileLayout &layout, Val base)
    : layout(layout), e(&e), place(&place), base(base) {
  // ldmatrix takes the rows of four matrices of 8 x 8 from 32 lanes: first two below one another
  // and then their right neighbours, or the other way round.
  Val low = place.lane & 7;
  auto offset = [&](Val row, Val unit) {
    Val place = layout.swizzled() ? unit ^ low : unit;
    return row * layout.pitch() + place * TileLayout::unitBytes;
  };
  alongRows = offset(place.lane & 15, place.lane >> 4);
  alongColumns = offset((place.lane >> 4) * 8 + low, (place.lane >> 3) & 1);
}

SharedTile SharedTile::from(Val rows) const {
  return SharedTile(*e, *place, layout, e->at(base, rows * layout.pitch()));
}

SharedTile SharedTile::columnsFrom(Val bytes) const {
  return SharedTile(*e, *place, layout, e->at(base, bytes));
}

Val SharedTile::unit(Val row, Val unit) const {
  Val swizzledUnit = layout.swizzled() ? unit ^ (row & (period - 1)) : unit;
  return e->at(base, row * layout.pitch() + swizzledUnit * TileLayout::unitBytes);
}

Val SharedTile::element(Val row, Val low, int64_t column) const {
  int64_t unit = column / layout.unitElements();
  int64_t within = column % layout.unitElements() * layout.elementBytes();
  Val address = e->at(base, row * layout.pitch());
  if (!layout.swizzled())
    return e->at(address, unit * TileLayout::unitBytes + within);
  return e->at(e->at(address, (low ^ unit) * TileLayout::unitBytes), within);
}

Val SharedTile::pairOf(Val row, int64_t column) const {
  // The eight columns are two units, of which members 2 and 3 have the second.
  int64_t first = column / layout.unitElements();
  Val second = place->member >> 1;
  Val start = e->at(base, row * layout.pitch() + (place->member & 1) * (TileLayout::unitBytes / 2));
  if (!layout.swizzled())
    return e->at(e->at(start, second * TileLayout::unitBytes), first * TileLayout::unitBytes);
  return e->at(start, (((row & (period - 1)) ^ second) ^ first) * TileLayout::unitBytes);
}

Val SharedTile::laneAddress(Val laneOffset, int64_t row, int64_t column) const {
  int64_t unit = column / layout.unitElements();
  int64_t rowOffset = row * layout.pitch();
  if (!layout.swizzled())
    return e->at(e->at(base, laneOffset), rowOffset + unit * TileLayout::unitBytes);
  return e->at(e->at(base, laneOffset ^ (unit * TileLayout::unitBytes)), rowOffset);
}

std::array<Val, 4> SharedTile::loadMatrices(Val address, bool transposed) const {
  OpBuilder &b = e->builder();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, e->i32()));
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value all = NVVM::LdMatrixOp::create(b, e->location(), type, address.v, 4u,
                                       transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                                       shape, NVVM::LdStMatrixEltType::B16);
  std::array<Val, 4> result;
  for (int64_t i = 0; i < 4; ++i)
    result[i] = e->of(LLVM::ExtractValueOp::create(b, e->location(), all, i));
  return result;
}

FragmentA SharedTile::loadA(int64_t row, int64_t column) const {
  return {loadMatrices(laneAddress(alongRows, row, column), false)};
}
std::array<FragmentB, 2> SharedTile::loadB(int64_t row, int64_t column) const {
  auto r = loadMatrices(laneAddress(alongColumns, row, column), false);
  return {FragmentB{{r[0], r[1]}}, FragmentB{{r[2], r[3]}}};
}
std::array<FragmentB, 2> SharedTile::loadTransposedB(int64_t row, int64_t column) const {
  auto r = loadMatrices(laneAddress(alongRows, row, column), true);
  return {FragmentB{{r[0], r[1]}}, FragmentB{{r[2], r[3]}}};
}

void SharedTile::storeBand(Val row, const std::vector<FragmentC> &band) const {
  bool narrow = layout.dtype != Dtype::f32;
  for (auto [n, fragment] : llvm::enumerate(band))
    for (int64_t h = 0; h < 2; ++h) {
      int64_t column = static_cast<int64_t>(n) * fragmentColumns;
      Val low = fragment.c[2 * h], high = fragment.c[2 * h + 1];
      Val at = row + place->quad + h * period;
      if (narrow) {
        Val to = e->at(element(at, place->quad, column), place->member * 4);
        e->store(e->pack(layout.dtype, low, high), to, 4);
        continue;
      }
      // Eight columns are two units: members 0 and 1 are in the first.
      Val unitOf = (place->member >> 1) + column / layout.unitElements();
      Val to = e->at(unit(at, unitOf), (place->member & 1) * 8);
      e->store(low, to, 4);
      e->store(high, e->at(to, 4), 4);
    }
}

void TileCopy::forPieces(int64_t rows, int64_t ofRow,
                         function_ref<void(Row row, Val piece)> body) const {
  int64_t total = rows * ofRow;
  bool wholeRows = threads % ofRow == 0;
  for (int64_t done = 0; done < total; done += threads) {
    Val index = place.thread + done;
    Row row = wholeRows ? Row{place.thread / ofRow, done / ofRow} : Row{index / ofRow, 0};
    Val piece = wholeRows ? place.thread % ofRow : index % ofRow;
    if (done + threads <= total)
      body(row, piece);
    else
      e.when(e.less(index, total), {}, [&] { body(row, piece); });
  }
}

Val TileCopy::pieceIn(const SharedTile &tile, Row row, Val piece, int64_t bytes) const {
  int64_t ofUnit = TileLayout::unitBytes / bytes;
  bool isApart = tile.layout.swizzled() && row.further % period != 0;
  Val address = isApart ? tile.unit(row.row + row.further, piece / ofUnit)
                        : e.at(tile.unit(row.row, piece / ofUnit), tile.layout.bytes(row.further));
  return ofUnit == 1 ? address : e.at(address, piece % ofUnit * bytes);
}

/// Of a row counted from `first`.
Val TileCopy::addressOf(const HeadMatrix &matrix, Val first, Row row, Val piece) const {
  Val offset = e.widen(first + row.row) * matrix.rowBytes;
  Val address = e.at(e.at(matrix.base, offset), e.widen(piece * matrix.pieceBytes));
  return e.at(address, row.further * matrix.rowBytes);
}

SmallVector<Val> loadPiece(Emit &e, Val address, int64_t bytes) {
  constexpr int64_t wordBytes = 4;
  if (bytes < wordBytes)
    return {e.of(arith::ExtUIOp::create(e.builder(), e.location(), e.i32(),
                                        e.load(e.i16(), address, bytes).v))};
  Val vector = e.loadVector(bytes / wordBytes, e.i32(), address);
  SmallVector<Val> words;
  for (int64_t i = 0; i < bytes / wordBytes; ++i)
    words.push_back(e.element(vector, i));
  return words;
}

void TileCopy::load(const SharedTile &tile, const HeadMatrix &matrix, Val first,
                    int64_t rows) const {
  int64_t bytes = matrix.pieceBytes, ofRow = layout.units() * TileLayout::unitBytes / bytes;
  forPieces(rows, ofRow, [&](Row row, Val piece) {
    Val exists = e.less(first + row.row, matrix.rows - row.further);
    if (matrix.pieces() < ofRow)
      exists = exists & e.less(piece, matrix.pieces());
    Val to = pieceIn(tile, row, piece, bytes), address = addressOf(matrix, first, row, piece);
    if (bytes >= 4)
      return e.copyAsync(to, address, exists, bytes);
    Val element = e.number(e.i16(), 0);
    e.when(exists, {&element}, [&] { element = e.load(e.i16(), address, bytes); });
    e.store(element, to, bytes);
  });
}

void TileCopy::store(const SharedTile &tile, const HeadMatrix &matrix, Val first,
                     int64_t rows) const {
  int64_t bytes = matrix.pieceBytes;
  forPieces(rows, matrix.pieces(), [&](Row row, Val piece) {
    e.when(e.less(first + row.row, matrix.rows - row.further), {}, [&] {
      Val from = pieceIn(tile, row, piece, bytes);
      Val words = bytes < 4 ? e.load(e.i16(), from, bytes) : e.loadVector(bytes / 4, e.i32(), from);
      e.store(words, addressOf(matrix, first, row, piece), bytes);
    });
  });
}

} // namespace gradc::codegen::gpu
