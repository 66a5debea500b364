// Row programs, one row after another in f64.
#include "ir/row/Evaluate.h"

#include "ir/row/Loops.h"
#include "ir/row/Philox.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradc::row {

int64_t elementCount(const Program &program, int32_t buffer, int64_t extent) {
  switch (program.buffers[buffer].kind) {
  case BufferKind::matrix:
    return program.flat ? extent : extent * rowStride(program, buffer);
  case BufferKind::column:
    return program.columns;
  case BufferKind::row:
    return extent;
  case BufferKind::scalar:
    return 1;
  case BufferKind::columnPartial:
    return taskCount(program, extent) * program.columns;
  }
  return 0;
}

/// Rounds to `digits` significant bits with an exponent of at least `lowest`; infinity above
/// `most`.
static double roundToBits(double value, int digits, int lowest, double most) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int unit = std::max(std::ilogb(value), lowest) - (digits - 1);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) > most ? std::copysign(INFINITY, value) : rounded;
}

/// The largest number instead of larger ones; a NaN stays.
static double saturate(double value, double most) {
  return std::fabs(value) > most ? std::copysign(most, value) : value;
}

double roundTo(Dtype dtype, double value) {
  switch (dtype) {
  case Dtype::f32:
    return static_cast<float>(value);
  case Dtype::bf16:
    return roundToBits(value, 8, -126, 0x1.fep127);
  case Dtype::f16:
    return roundToBits(value, 11, -14, 65504);
  case Dtype::f8e4m3:
    return saturate(roundToBits(value, 4, -6, INFINITY), 448);
  case Dtype::f8e5m2:
    return saturate(roundToBits(value, 3, -14, INFINITY), 57344);
  case Dtype::i32:
    return value;
  }
  return value;
}

namespace {

/// NaN when either is: unlike fmax.
double maximumOf(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::max(x, y);
}
double minimumOf(double x, double y) { return -maximumOf(-x, -y); }

/// Two's complement arithmetic on integers held as doubles.
double wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

double exponentPart(double x) {
  if (!std::isfinite(x))
    return INFINITY;
  return std::fabs(x) < 0x1p-126 ? 0 : std::ldexp(1.0, std::ilogb(x));
}

double pointwise(NodeKind kind, double x, double y, double z) {
  auto xi = static_cast<int64_t>(x), yi = static_cast<int64_t>(y);
  switch (kind) {
  case NodeKind::add:
    return x + y;
  case NodeKind::sub:
    return x - y;
  case NodeKind::mul:
    return x * y;
  case NodeKind::div:
    return x / y;
  case NodeKind::maximum:
    return maximumOf(x, y);
  case NodeKind::minimum:
    return minimumOf(x, y);
  case NodeKind::neg:
    return -x;
  case NodeKind::exp:
    return std::exp(x);
  case NodeKind::log:
    return std::log(x);
  case NodeKind::sqrt:
    return std::sqrt(x);
  case NodeKind::rsqrt:
    return 1 / std::sqrt(x);
  case NodeKind::tanh:
    return std::tanh(x);
  case NodeKind::erf:
    return std::erf(x);
  case NodeKind::roundBf16:
    return roundTo(Dtype::bf16, x);
  case NodeKind::roundF16:
    return roundTo(Dtype::f16, x);
  case NodeKind::roundF8E4M3:
    return roundTo(Dtype::f8e4m3, x);
  case NodeKind::roundF8E5M2:
    return roundTo(Dtype::f8e5m2, x);
  case NodeKind::exponentPart:
    return exponentPart(x);
  case NodeKind::lessThan:
    return x < y;
  case NodeKind::lessEqual:
    return x <= y;
  case NodeKind::equal:
    return x == y;
  case NodeKind::logicalAnd:
    return x != 0 && y != 0;
  case NodeKind::select:
    return x != 0 ? y : z;
  default:
    break;
  }
  if (kind == NodeKind::addInt)
    return wrap(xi + yi);
  if (kind == NodeKind::mulInt)
    return wrap(xi * yi);
  return static_cast<double>(xi % std::max<int64_t>(yi, 1));
}

class Evaluation {
public:
  Evaluation(const Program &program, int64_t extent, std::vector<Array> &arrays)
      : program(program), loops(splitIntoLoops(program)), extent(extent), arrays(arrays),
        values(program.nodes.size(), 0.0) {}

  void run() {
    for (size_t i = 0; i < program.buffers.size(); ++i)
      if (program.buffers[i].kind == BufferKind::columnPartial)
        std::fill(arrays[i].begin(), arrays[i].end(), 0.0);
    columns = program.flat ? extent : program.columns;
    for (row = 0; row < (program.flat ? 1 : extent); ++row)
      runRow();
  }

private:
  void runRow() {
    for (size_t stage = 0; stage <= loops.loops.size(); ++stage) {
      for (size_t id = 0; id < program.nodes.size(); ++id)
        if (loops.live[id] && !loops.columnLevel[id] && !isReduction(id) &&
            loops.loopOf[id] == static_cast<int>(stage))
          values[id] = compute(program.nodes[id], 0);
      for (int32_t effect : loops.stageStores[stage])
        write(program.effects[effect], row);
      if (stage < loops.loops.size())
        runLoop(loops.loops[stage]);
    }
  }

  bool isReduction(size_t id) const {
    return program.nodes[id].kind == NodeKind::reduceSum ||
           program.nodes[id].kind == NodeKind::reduceMax;
  }

  void runLoop(const Loop &loop) {
    for (NodeId id : loop.reductions)
      values[id] = program.nodes[id].kind == NodeKind::reduceSum ? 0 : -INFINITY;
    for (int64_t column = 0; column < columns; ++column) {
      for (size_t id = 0; id < program.nodes.size(); ++id)
        if (loop.computes[id])
          values[id] = compute(program.nodes[id], column);
      for (NodeId id : loop.reductions) {
        double x = values[program.nodes[id].operands[0]];
        values[id] = program.nodes[id].kind == NodeKind::reduceSum ? values[id] + x
                                                                   : maximumOf(values[id], x);
      }
      for (int32_t index : loop.effects) {
        const Effect &effect = program.effects[index];
        if (effect.kind == EffectKind::store)
          write(effect, position(effect.buffer, column));
        else
          arrays[effect.buffer][row / rowsPerTask * columns + column] += values[effect.node];
      }
    }
  }

  void write(const Effect &effect, int64_t index) {
    Dtype dtype = program.buffers[effect.buffer].dtype;
    double value = values[effect.node];
    arrays[effect.buffer][index] = dtype == Dtype::f32 ? value : roundTo(dtype, value);
  }

  int64_t position(int32_t buffer, int64_t column) const {
    switch (program.buffers[buffer].kind) {
    case BufferKind::matrix:
      return row * rowStride(program, buffer) + column;
    case BufferKind::column:
      return column;
    case BufferKind::row:
      return row;
    default:
      return 0;
    }
  }

  double compute(const Node &node, int64_t column) const {
    double operands[3] = {0, 0, 0};
    for (int i = 0; i < operandCount(node.kind); ++i)
      operands[i] = values[node.operands[i]];
    switch (node.kind) {
    case NodeKind::constant:
      return node.value;
    case NodeKind::load:
    case NodeKind::reload:
      return arrays[node.buffer][position(node.buffer, column)];
    case NodeKind::columnIndex:
      return static_cast<double>(column);
    case NodeKind::rowIndex:
      return static_cast<double>(row);
    case NodeKind::gather:
      return arrays[node.buffer][position(node.buffer, static_cast<int64_t>(operands[0]))];
    case NodeKind::uniform:
      return philoxUniform(static_cast<uint32_t>(static_cast<int64_t>(operands[0])),
                           static_cast<uint32_t>(static_cast<int64_t>(operands[1])),
                           static_cast<uint32_t>(static_cast<int64_t>(node.value)),
                           (static_cast<int64_t>(operands[2]) + row) * program.columns + column);
    default:
      return pointwise(node.kind, operands[0], operands[1], operands[2]);
    }
  }

  const Program &program;
  Loops loops;
  int64_t extent;
  std::vector<Array> &arrays;
  std::vector<double> values; ///< of each node, at the current row and column
  int64_t row = 0, columns = 0;
};

} // namespace

void evaluate(const Program &program, int64_t extent, std::vector<Array> &arrays) {
  Evaluation(program, extent, arrays).run();
}

} // namespace gradc::row
