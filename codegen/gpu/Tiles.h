// Tiles of matrices in shared memory, and how a block copies them.
#pragma once

#include "codegen/gpu/Fragments.h"

namespace gradc::codegen::gpu {

/// How the rows of a tile lie: in units of 16 bytes, an even number a row, whose place in a row of
/// 128 bytes is exchanged by the row's number (swizzled). Other rows are shifted by a unit of
/// padding each. Either way eight neighbouring rows' units at one column are in different banks;
/// where rows are longer, exchanged addresses would take a register for each unit of eight.
struct TileLayout {
  int64_t columns;
  row::Dtype dtype;

  static constexpr int64_t unitBytes = 16;
  int64_t elementBytes() const { return row::byteSize(dtype); }
  int64_t units() const { return columns * elementBytes() / unitBytes; }
  int64_t unitElements() const { return unitBytes / elementBytes(); }
  bool swizzled() const { return units() == 8; }
  int64_t pitch() const { return (units() + (swizzled() ? 0 : 1)) * unitBytes; } ///< bytes
  int64_t bytes(int64_t rows) const { return rows * pitch(); }
};

/// A tile at an address. Row numbers that are given apart from constants are multiples of 8 unless
/// stated.
class SharedTile {
public:
  SharedTile(Emit &e, const Place &place, const TileLayout &layout, Val base);

  /// The tile from `rows` (a multiple of 8) on.
  SharedTile from(Val rows) const;
  /// The columns from `bytes` on, of a tile that is not swizzled or from 0.
  SharedTile columnsFrom(Val bytes) const;

  /// Address of the unit `unit` of any row.
  Val unit(Val row, Val unit) const;
  /// Address of a constant column of row 8 * (any) + `low`; `row` is that row.
  Val element(Val row, Val low, int64_t column) const;

  /// f32: address of this thread's two of the eight columns from `column` (a multiple of 8) on, as
  /// fragments have them, in any row.
  Val pairOf(Val row, int64_t column) const;

  // 16-bit elements, 16 x 16 of them by ldmatrix.
  FragmentA loadA(int64_t row, int64_t column) const;
  /// Rows are the columns of the operand: two of eight columns each.
  std::array<FragmentB, 2> loadB(int64_t row, int64_t column) const;
  /// Rows are the rows of the operand.
  std::array<FragmentB, 2> loadTransposedB(int64_t row, int64_t column) const;

  /// Rows row .. row + 16 from a band, rounded to the tile's dtype; a `row` counts from the tile.
  void storeBand(Val row, const std::vector<FragmentC> &band) const;

  const TileLayout layout;

private:
  Val laneAddress(Val laneOffset, int64_t row, int64_t column) const;
  std::array<Val, 4> loadMatrices(Val address, bool transposed) const;

  Emit *e;
  const Place *place;
  Val base;
  Val alongRows, alongColumns; ///< bytes: a lane's place in the two patterns of ldmatrix
};

/// Rows of one head of a buffer in global memory.
struct HeadMatrix {
  Val base;           ///< of token 0
  int64_t rowBytes;   ///< from token to token
  int64_t rows;       ///< tokens
  int64_t bytes;      ///< of a head's row
  int64_t pieceBytes; ///< that are accessed at a time, aligned to as many: 2, 4, 8 or 16

  int64_t pieces() const { return bytes / pieceBytes; } ///< of a row
};

/// A piece in words; one of 2 bytes is the lower half of a word.
llvm::SmallVector<Val> loadPiece(Emit &e, Val address, int64_t bytes);

/// Copies between global memory and tiles by all `threads` of the block.
class TileCopy {
public:
  TileCopy(Emit &e, const Place &place, const TileLayout &layout, int64_t threads)
      : e(e), place(place), layout(layout), threads(threads) {}

  /// Rows first .. first + rows, asynchronously where pieces have 4 bytes or more; rows and columns
  /// beyond the matrix are zeros.
  void load(const SharedTile &tile, const HeadMatrix &matrix, Val first, int64_t rows) const;
  /// The rows that the matrix has.
  void store(const SharedTile &tile, const HeadMatrix &matrix, Val first, int64_t rows) const;

private:
  /// A row that is `further` rows behind `row`: a constant, so that a thread's pieces share the
  /// arithmetic of their addresses.
  struct Row {
    Val row;
    int64_t further;
  };
  void forPieces(int64_t rows, int64_t ofRow,
                 llvm::function_ref<void(Row row, Val piece)> body) const;
  Val pieceIn(const SharedTile &tile, Row row, Val piece, int64_t bytes) const;
  Val addressOf(const HeadMatrix &matrix, Val first, Row row, Val piece) const;

  Emit &e;
  const Place &place;
  TileLayout layout;
  int64_t threads;
};

} // namespace gradc::codegen::gpu
