// Counts operations and loads of row programs.
#include "ir/row/Cost.h"

#include <algorithm>

namespace gradc::row {

namespace {

bool isArithmetic(NodeKind kind) {
  switch (kind) {
  case NodeKind::reduceSum:
  case NodeKind::reduceMax:
  case NodeKind::add:
  case NodeKind::sub:
  case NodeKind::mul:
  case NodeKind::div:
  case NodeKind::maximum:
  case NodeKind::minimum:
  case NodeKind::neg:
  case NodeKind::exp:
  case NodeKind::log:
  case NodeKind::sqrt:
  case NodeKind::rsqrt:
  case NodeKind::tanh:
  case NodeKind::erf:
    return true;
  default:
    return false;
  }
}

bool reads(const Program &program, const Loop &loop, int32_t buffer, NodeKind kind) {
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loop.computes[id] && program.nodes[id].kind == kind && program.nodes[id].buffer == buffer)
      return true;
  return false;
}

} // namespace

int64_t flops(const Program &program, const Loops &loops, int64_t extent, bool again) {
  int64_t ofColumns = 0, ofRows = 0;
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    NodeKind kind = program.nodes[id].kind;
    if (!loops.live[id] || !isArithmetic(kind))
      continue;
    if (kind == NodeKind::reduceSum || kind == NodeKind::reduceMax) {
      ++ofColumns;
    } else if (loops.columnLevel[id]) {
      auto times =
          std::ranges::count_if(loops.loops, [&](const Loop &l) { return l.computes[id]; });
      ofColumns += again ? times : std::min<int64_t>(times, 1);
    } else {
      ++ofRows;
    }
  }
  for (const Effect &effect : program.effects)
    ofColumns += effect.kind == EffectKind::accumulateColumn;
  // A flat program's values of rows are a few for the whole launch.
  return program.flat ? ofColumns * extent : (ofColumns * program.columns + ofRows) * extent;
}

bool loads(const Program &program, const Loop &loop, int32_t buffer) {
  return reads(program, loop, buffer, NodeKind::load);
}
bool reloads(const Program &program, const Loop &loop, int32_t buffer) {
  return reads(program, loop, buffer, NodeKind::reload);
}

} // namespace gradc::row
