// A row program: the one form in which everything but matrix products and attention reaches the
// machine. Nearly all of a training step's remaining work has the same shape: the rows of a matrix
// are independent, and within a row there are a few loops over its columns, each of which loads,
// maps, perhaps reduces, and stores. A layer norm, rows of C columns:
//
//     x    = load(matrix 0)                      column-level: one value a (row, column)
//     mean = reduce_sum(x) * (1/C)               row-level: one value a row; ends loop 0
//     d    = x - mean
//     rstd = 1 / sqrt(reduce_sum(d*d) * (1/C) + eps)            ends loop 1
//     store(matrix 3, d * rstd * load(column 1) + load(column 2))      in loop 2
//
// The program is a flat DAG of nodes. Nothing says which loop a node is computed in: a reduction
// ends the loop in which its operand is known, and whatever uses it belongs to a later one
// (`loopOf`). A node needed in several loops is computed again in each, its loads coming from
// cache. Where recomputing costs more than a reload (exp of softmax), a program stores the value to
// an output and reads it back with `reload`, so that rounding to a narrower type stays visible.
//
// Plain data: no MLIR, so that emitters for any target, cost models and tests share it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradc::row {

/// The two of 8 bits are the fp8 formats that machines multiply: f8e4m3, finite numbers up to 448
/// and one NaN of either sign; f8e5m2, numbers up to 57344, infinities and NaNs as IEEE has them.
enum class Dtype : uint8_t { f32, bf16, f16, i32, f8e4m3, f8e5m2 };

/// Bytes of one element.
int64_t byteSize(Dtype dtype);
/// "f32", "bf16", "f16", "i32", "f8e4m3" or "f8e5m2".
const char *name(Dtype dtype);

/// How a buffer is indexed by (row, column).
enum class BufferKind : uint8_t {
  matrix,        ///< [rows, columns], rowStride elements from row to row
  column,        ///< [columns]: one value a column, the same for every row (a bias)
  row,           ///< [rows]: one value a row (a mean)
  scalar,        ///< one value
  columnPartial, ///< [chunks, columns]: sums over the rows of each chunk, written only
};

struct Buffer {
  Dtype dtype = Dtype::f32;
  BufferKind kind = BufferKind::matrix;
  int64_t rowStride = 0; ///< elements; matrix only; 0 stands for `columns` (contiguous)
  bool operator==(const Buffer &) const = default;
};

enum class NodeKind : uint8_t {
  // Leaves.
  constant,    ///< `value`
  load,        ///< element of `buffer` at this (row, column), as its kind indexes it; f32 or i32
  reload,      ///< as load, of a matrix buffer that an earlier loop of this program stored
  columnIndex, ///< i32
  rowIndex,    ///< i32, within the whole matrix
  gather,      ///< row-level: element of matrix `buffer` in this row at column operand 0 (i32)
  // Row reductions over all columns.
  reduceSum,
  reduceMax,
  // Pointwise f32.
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  erf,
  roundBf16, ///< to the nearest number of the narrower type, ties to even
  roundF16,
  roundF8E4M3, ///< the same, but what is too large, infinities too, becomes the largest number
  roundF8E5M2,
  exponentPart, ///< 2^k of |x| = m·2^k, 1 <= m < 2; 0 where |x| < 2^-126; infinite for a NaN, too
  // Comparisons give a condition; select takes (condition, then, else). Operands f32 or both i32.
  lessThan,
  lessEqual,
  equal,
  logicalAnd,
  select,
  // Pointwise i32.
  addInt,
  mulInt,
  remainderInt, ///< remainder of non-negative numbers
  // f32 in [0, 1) from scalar i32s (seed, step, first row) and the stream, an i32 in `value`, keyed
  // by the global element index (first row + row) * columns + column: Philox4x32-10, so that a mask
  // does not depend on how the work is split (ir/row/Philox.h). Column-level.
  uniform,
};

/// Index of a node in its program.
using NodeId = int32_t;
inline constexpr NodeId noNode = -1;

struct Node {
  NodeKind kind = NodeKind::constant;
  NodeId operands[3] = {noNode, noNode, noNode};
  double value = 0;
  int32_t buffer = -1;
  bool operator==(const Node &) const = default;
};

/// What a program writes. Effects of one loop run in the order in which they are listed.
enum class EffectKind : uint8_t {
  store,            ///< matrix buffer at (row, column)
  storeRow,         ///< row buffer, after the loop in which the node is known
  accumulateColumn, ///< columnPartial buffer: adds to this chunk's sum of the column
};

struct Effect {
  EffectKind kind = EffectKind::store;
  int32_t buffer = -1;
  NodeId node = noNode;
  bool operator==(const Effect &) const = default;
};

/// Rows that one task handles; also the rows summed into one columnPartial entry. Fixed, so that
/// results do not depend on the number of threads.
inline constexpr int64_t rowsPerTask = 64;
/// Elements that one task of a flat program handles.
inline constexpr int64_t flatElementsPerTask = 16384;

/// A program and what it computes on. The number of rows (or elements, where flat) is a run-time
/// argument, so that equal programs on different extents are one kernel.
struct Program {
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;
  std::vector<Effect> effects;
  int64_t columns = 0;
  /// Every buffer is a contiguous matrix or a scalar and there are no reductions: the matrix is one
  /// long row of `extent` elements; `columns` is 0.
  bool flat = false;
  bool operator==(const Program &) const = default;

  NodeId addNode(Node node); ///< value-numbered: an equal node is returned, not repeated
  int32_t addBuffer(Buffer buffer);
};

/// Number of tasks for `extent` rows (elements, where flat).
int64_t taskCount(const Program &program, int64_t extent);

/// What a node's value is. A constant is listed as f32 but stands for an i32 where its user takes
/// one: in i32 arithmetic, as a gather's column, beside an i32 in a comparison or select.
enum class ValueType : uint8_t { f32, i32, condition };
std::vector<ValueType> valueTypes(const Program &program);
/// What operand `index` of a node is taken as, given `valueTypes` of at least the nodes before it.
ValueType operandType(const std::vector<ValueType> &types, const Node &node, int index);

/// Number of operands of a kind, and its name as printed.
int operandCount(NodeKind kind);
const char *name(NodeKind kind);

/// Elements from row to row of a matrix buffer.
int64_t rowStride(const Program &program, int32_t buffer);

/// True when the node has one value a column (false: a row, or the whole program).
std::vector<bool> columnLevel(const Program &program);

/// Loop in which a node is first known: 0 for loads; for a row-level node that uses a reduction
/// ending loop k, k + 1 (it is computed between the loops, before loop k + 1). A reload is known in
/// the loop after that of the first listed store to its buffer.
std::vector<int> loopOf(const Program &program);

/// Number of loops over the columns.
int loopCount(const Program &program);

/// May output buffer `output` (of a store) lie in the same memory as input buffer `input`? Legal
/// when both are matrices of equal element size and stride and no load of `input` happens in a
/// later loop than the store, nor by gather after it.
bool mayAlias(const Program &program, int32_t input, int32_t output);

/// Empty when well-formed; else what is wrong: an operand that does not precede its user, a kind
/// of buffer its node cannot take, a flat program with reductions, a load of what the program has
/// stored already (a reload says that this is meant), a row buffer both loaded and stored.
std::string verify(const Program &program);

/// Readable text, one node a line; two programs are equal exactly when their text is.
std::string print(const Program &program);

} // namespace gradc::row
