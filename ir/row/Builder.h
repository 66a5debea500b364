// Writes row programs as readable expressions:
//
//     row::Builder b(/*columns=*/768);
//     int32_t in = b.matrix(), out = b.matrix();
//     NodeId x = b.load(in);
//     NodeId mean = b.mul(b.reduceSum(x), b.constant(1.0 / 768));
//     b.store(out, b.sub(x, mean));
//     row::Program program = b.take();
//
// Nothing is checked while building; `verify` says what is wrong with the result.
#pragma once

#include "ir/row/RowProgram.h"

#include <utility>

namespace gradc::row {

class Builder {
public:
  /// A program on rows of `columns` columns.
  explicit Builder(int64_t columns) { result.columns = columns; }

  /// A program on one long row of elements: contiguous matrices and scalars, no reductions.
  static Builder flat() {
    Builder builder(0);
    builder.result.flat = true;
    return builder;
  }

  /// Continues an existing program.
  explicit Builder(Program program) : result(std::move(program)) {}

  const Program &program() const { return result; }
  Program take() { return std::move(result); }

  // Buffers, in the order in which the kernel receives them.
  int32_t matrix(Dtype dtype = Dtype::f32, int64_t rowStride = 0) {
    return result.addBuffer({dtype, BufferKind::matrix, rowStride});
  }
  int32_t column(Dtype dtype = Dtype::f32) { return result.addBuffer({dtype, BufferKind::column}); }
  int32_t row(Dtype dtype = Dtype::f32) { return result.addBuffer({dtype, BufferKind::row}); }
  int32_t scalar(Dtype dtype = Dtype::f32) { return result.addBuffer({dtype, BufferKind::scalar}); }
  int32_t columnPartial() { return result.addBuffer({Dtype::f32, BufferKind::columnPartial}); }

  // Leaves. A constant is an i32 where its user takes an i32.
  NodeId constant(double value) {
    return result.addNode({NodeKind::constant, {noNode, noNode, noNode}, value, -1});
  }
  NodeId load(int32_t buffer) { return onBuffer(NodeKind::load, buffer); }
  NodeId reload(int32_t buffer) { return onBuffer(NodeKind::reload, buffer); }
  NodeId columnIndex() { return op(NodeKind::columnIndex); }
  NodeId rowIndex() { return op(NodeKind::rowIndex); }
  NodeId gather(int32_t buffer, NodeId column) {
    return result.addNode({NodeKind::gather, {column, noNode, noNode}, 0, buffer});
  }
  NodeId uniform(NodeId seed, NodeId step, NodeId firstRow, int32_t stream) {
    return result.addNode(
        {NodeKind::uniform, {seed, step, firstRow}, static_cast<double>(stream), -1});
  }

  // Reductions over the columns of a row.
  NodeId reduceSum(NodeId x) { return op(NodeKind::reduceSum, x); }
  NodeId reduceMax(NodeId x) { return op(NodeKind::reduceMax, x); }

  // Pointwise f32.
  NodeId add(NodeId x, NodeId y) { return op(NodeKind::add, x, y); }
  NodeId sub(NodeId x, NodeId y) { return op(NodeKind::sub, x, y); }
  NodeId mul(NodeId x, NodeId y) { return op(NodeKind::mul, x, y); }
  NodeId div(NodeId x, NodeId y) { return op(NodeKind::div, x, y); }
  NodeId maximum(NodeId x, NodeId y) { return op(NodeKind::maximum, x, y); }
  NodeId minimum(NodeId x, NodeId y) { return op(NodeKind::minimum, x, y); }
  NodeId neg(NodeId x) { return op(NodeKind::neg, x); }
  NodeId exp(NodeId x) { return op(NodeKind::exp, x); }
  NodeId log(NodeId x) { return op(NodeKind::log, x); }
  NodeId sqrt(NodeId x) { return op(NodeKind::sqrt, x); }
  NodeId rsqrt(NodeId x) { return op(NodeKind::rsqrt, x); }
  NodeId tanh(NodeId x) { return op(NodeKind::tanh, x); }
  NodeId erf(NodeId x) { return op(NodeKind::erf, x); }
  NodeId exponentPart(NodeId x) { return op(NodeKind::exponentPart, x); }

  /// To the nearest number of a type; the same node for f32 and i32.
  NodeId round(Dtype dtype, NodeId x) {
    switch (dtype) {
    case Dtype::f32:
    case Dtype::i32:
      return x;
    case Dtype::bf16:
      return op(NodeKind::roundBf16, x);
    case Dtype::f16:
      return op(NodeKind::roundF16, x);
    case Dtype::f8e4m3:
      return op(NodeKind::roundF8E4M3, x);
    case Dtype::f8e5m2:
      return op(NodeKind::roundF8E5M2, x);
    }
    return x;
  }

  // Conditions.
  NodeId lessThan(NodeId x, NodeId y) { return op(NodeKind::lessThan, x, y); }
  NodeId lessEqual(NodeId x, NodeId y) { return op(NodeKind::lessEqual, x, y); }
  NodeId equal(NodeId x, NodeId y) { return op(NodeKind::equal, x, y); }
  NodeId logicalAnd(NodeId x, NodeId y) { return op(NodeKind::logicalAnd, x, y); }
  NodeId select(NodeId condition, NodeId whenTrue, NodeId whenFalse) {
    return op(NodeKind::select, condition, whenTrue, whenFalse);
  }

  // Pointwise i32.
  NodeId addInt(NodeId x, NodeId y) { return op(NodeKind::addInt, x, y); }
  NodeId mulInt(NodeId x, NodeId y) { return op(NodeKind::mulInt, x, y); }
  NodeId remainderInt(NodeId x, NodeId y) { return op(NodeKind::remainderInt, x, y); }

  // Effects, in the order in which they take place within a loop.
  void store(int32_t buffer, NodeId x) { effect(EffectKind::store, buffer, x); }
  void storeRow(int32_t buffer, NodeId x) { effect(EffectKind::storeRow, buffer, x); }
  void accumulateColumn(int32_t buffer, NodeId x) {
    effect(EffectKind::accumulateColumn, buffer, x);
  }

private:
  NodeId op(NodeKind kind, NodeId x = noNode, NodeId y = noNode, NodeId z = noNode) {
    return result.addNode({kind, {x, y, z}, 0, -1});
  }
  NodeId onBuffer(NodeKind kind, int32_t buffer) {
    return result.addNode({kind, {noNode, noNode, noNode}, 0, buffer});
  }
  void effect(EffectKind kind, int32_t buffer, NodeId x) {
    result.effects.push_back({kind, buffer, x});
  }

  Program result;
};

} // namespace gradc::row
