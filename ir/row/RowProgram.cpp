// Structure of row programs: value numbering, levels, loops, aliasing.
#include "ir/row/RowProgram.h"

#include "ir/row/Loops.h"

#include <algorithm>
#include <bit>

namespace gradc::row {

int64_t byteSize(Dtype dtype) {
  switch (dtype) {
  case Dtype::f32:
  case Dtype::i32:
    return 4;
  case Dtype::bf16:
  case Dtype::f16:
    return 2;
  case Dtype::f8e4m3:
  case Dtype::f8e5m2:
    return 1;
  }
  return 0;
}

int operandCount(NodeKind kind) {
  switch (kind) {
  case NodeKind::constant:
  case NodeKind::load:
  case NodeKind::reload:
  case NodeKind::columnIndex:
  case NodeKind::rowIndex:
    return 0;
  case NodeKind::gather:
  case NodeKind::reduceSum:
  case NodeKind::reduceMax:
  case NodeKind::neg:
  case NodeKind::exp:
  case NodeKind::log:
  case NodeKind::sqrt:
  case NodeKind::rsqrt:
  case NodeKind::tanh:
  case NodeKind::erf:
  case NodeKind::roundBf16:
  case NodeKind::roundF16:
  case NodeKind::roundF8E4M3:
  case NodeKind::roundF8E5M2:
  case NodeKind::exponentPart:
    return 1;
  case NodeKind::add:
  case NodeKind::sub:
  case NodeKind::mul:
  case NodeKind::div:
  case NodeKind::maximum:
  case NodeKind::minimum:
  case NodeKind::lessThan:
  case NodeKind::lessEqual:
  case NodeKind::equal:
  case NodeKind::logicalAnd:
  case NodeKind::addInt:
  case NodeKind::mulInt:
  case NodeKind::remainderInt:
    return 2;
  case NodeKind::select:
  case NodeKind::uniform:
    return 3;
  }
  return 0;
}

NodeId Program::addNode(Node node) {
  // Constants are compared by their bits: 0 and -0 differ, a NaN equals itself.
  auto equal = [&](const Node &other) {
    return other.kind == node.kind && std::ranges::equal(other.operands, node.operands) &&
           std::bit_cast<uint64_t>(other.value) == std::bit_cast<uint64_t>(node.value) &&
           other.buffer == node.buffer;
  };
  auto found = std::find_if(nodes.begin(), nodes.end(), equal);
  if (found != nodes.end())
    return static_cast<NodeId>(found - nodes.begin());
  nodes.push_back(node);
  return static_cast<NodeId>(nodes.size() - 1);
}

int32_t Program::addBuffer(Buffer buffer) {
  buffers.push_back(buffer);
  return static_cast<int32_t>(buffers.size() - 1);
}

int64_t taskCount(const Program &program, int64_t extent) {
  int64_t perTask = program.flat ? flatElementsPerTask : rowsPerTask;
  return (extent + perTask - 1) / perTask;
}

int64_t rowStride(const Program &program, int32_t buffer) {
  int64_t stride = program.buffers[buffer].rowStride;
  return stride == 0 ? program.columns : stride;
}

std::vector<ValueType> valueTypes(const Program &program) {
  std::vector<ValueType> types;
  for (const Node &node : program.nodes) {
    ValueType type = ValueType::f32;
    switch (node.kind) {
    case NodeKind::load:
    case NodeKind::reload:
    case NodeKind::gather:
      if (program.buffers[node.buffer].dtype == Dtype::i32)
        type = ValueType::i32;
      break;
    case NodeKind::columnIndex:
    case NodeKind::rowIndex:
    case NodeKind::addInt:
    case NodeKind::mulInt:
    case NodeKind::remainderInt:
      type = ValueType::i32;
      break;
    case NodeKind::lessThan:
    case NodeKind::lessEqual:
    case NodeKind::equal:
    case NodeKind::logicalAnd:
      type = ValueType::condition;
      break;
    case NodeKind::select:
      if (types[node.operands[1]] == ValueType::i32 || types[node.operands[2]] == ValueType::i32)
        type = ValueType::i32;
      break;
    default:
      break;
    }
    types.push_back(type);
  }
  return types;
}

ValueType operandType(const std::vector<ValueType> &types, const Node &node, int index) {
  auto eitherIsInteger = [&](int first) {
    bool integer = types[node.operands[first]] == ValueType::i32 ||
                   types[node.operands[first + 1]] == ValueType::i32;
    return integer ? ValueType::i32 : ValueType::f32;
  };
  switch (node.kind) {
  case NodeKind::gather:
  case NodeKind::addInt:
  case NodeKind::mulInt:
  case NodeKind::remainderInt:
  case NodeKind::uniform:
    return ValueType::i32;
  case NodeKind::lessThan:
  case NodeKind::lessEqual:
  case NodeKind::equal:
    return eitherIsInteger(0);
  case NodeKind::logicalAnd:
    return ValueType::condition;
  case NodeKind::select:
    return index == 0 ? ValueType::condition : eitherIsInteger(1);
  default:
    return ValueType::f32;
  }
}

std::vector<bool> columnLevel(const Program &program) {
  std::vector<bool> level;
  for (const Node &node : program.nodes) {
    bool value = node.kind == NodeKind::columnIndex || node.kind == NodeKind::uniform;
    if (node.kind == NodeKind::load || node.kind == NodeKind::reload) {
      BufferKind kind = program.buffers[node.buffer].kind;
      value = kind == BufferKind::matrix || kind == BufferKind::column;
    }
    bool endsLevel = node.kind == NodeKind::reduceSum || node.kind == NodeKind::reduceMax ||
                     node.kind == NodeKind::gather;
    for (int i = 0; !endsLevel && i < operandCount(node.kind); ++i)
      value = value || level[node.operands[i]];
    level.push_back(value);
  }
  return level;
}

std::vector<int> loopOf(const Program &program) {
  std::vector<int> loops;
  for (const Node &node : program.nodes) {
    int loop = 0;
    for (int i = 0; i < operandCount(node.kind); ++i)
      loop = std::max(loop, loops[node.operands[i]]);
    if (node.kind == NodeKind::reduceSum || node.kind == NodeKind::reduceMax)
      ++loop;
    if (node.kind == NodeKind::reload)
      for (const Effect &effect : program.effects)
        if (effect.kind == EffectKind::store && effect.buffer == node.buffer) {
          if (effect.node < static_cast<NodeId>(loops.size()))
            loop = loops[effect.node] + 1;
          break;
        }
    loops.push_back(loop);
  }
  return loops;
}

int loopCount(const Program &program) {
  return static_cast<int>(splitIntoLoops(program).loops.size());
}

namespace {

bool isReduction(const Node &node) {
  return node.kind == NodeKind::reduceSum || node.kind == NodeKind::reduceMax;
}

/// Nodes that some effect depends on; a reload also keeps the store that it reads, which is an
/// effect and so is kept anyway.
std::vector<bool> liveNodes(const Program &program) {
  std::vector<bool> live(program.nodes.size(), false);
  for (const Effect &effect : program.effects)
    live[effect.node] = true;
  for (size_t id = program.nodes.size(); id-- > 0;)
    for (int i = 0; live[id] && i < operandCount(program.nodes[id].kind); ++i)
      live[program.nodes[id].operands[i]] = true;
  return live;
}

/// Fills `computes` and `uses` of a loop from its reductions and effects.
void closeOverOperands(const Program &program, const std::vector<bool> &isColumn, Loop &loop) {
  loop.computes.assign(program.nodes.size(), false);
  loop.uses.assign(program.nodes.size(), false);
  auto need = [&](NodeId id) { (isColumn[id] ? loop.computes : loop.uses)[id] = true; };
  for (NodeId reduction : loop.reductions)
    need(program.nodes[reduction].operands[0]);
  for (int32_t effect : loop.effects)
    need(program.effects[effect].node);
  for (size_t id = program.nodes.size(); id-- > 0;)
    for (int i = 0; loop.computes[id] && i < operandCount(program.nodes[id].kind); ++i)
      need(program.nodes[id].operands[i]);
}

} // namespace

Loops splitIntoLoops(const Program &program) {
  Loops result;
  result.columnLevel = columnLevel(program);
  result.loopOf = loopOf(program);
  result.live = liveNodes(program);
  auto loopAt = [&](int index) -> Loop & {
    if (static_cast<int>(result.loops.size()) <= index)
      result.loops.resize(index + 1);
    return result.loops[index];
  };
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (result.live[id] && isReduction(program.nodes[id]))
      loopAt(result.loopOf[id] - 1).reductions.push_back(static_cast<NodeId>(id));
  for (size_t i = 0; i < program.effects.size(); ++i)
    if (program.effects[i].kind != EffectKind::storeRow)
      loopAt(result.loopOf[program.effects[i].node]).effects.push_back(static_cast<int32_t>(i));
  for (Loop &loop : result.loops)
    closeOverOperands(program, result.columnLevel, loop);
  result.stageStores.resize(result.loops.size() + 1);
  for (size_t i = 0; i < program.effects.size(); ++i)
    if (program.effects[i].kind == EffectKind::storeRow)
      result.stageStores[result.loopOf[program.effects[i].node]].push_back(static_cast<int32_t>(i));
  return result;
}

bool mayAlias(const Program &program, int32_t input, int32_t output) {
  if (input == output)
    return true;
  const Buffer &in = program.buffers[input], &out = program.buffers[output];
  if (in.kind != BufferKind::matrix || out.kind != BufferKind::matrix ||
      byteSize(in.dtype) != byteSize(out.dtype) ||
      rowStride(program, input) != rowStride(program, output))
    return false;

  Loops loops = splitIntoLoops(program);
  int firstStore = static_cast<int>(loops.loops.size());
  for (const Effect &effect : program.effects) {
    if (effect.kind != EffectKind::store)
      continue;
    if (effect.buffer == input)
      return false; // both would be written
    if (effect.buffer == output)
      firstStore = std::min(firstStore, loops.loopOf[effect.node]);
  }
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    const Node &node = program.nodes[id];
    // Before the store `output` holds something of its own only if it is an input too.
    if (node.buffer == output && (node.kind == NodeKind::load || node.kind == NodeKind::gather))
      return false;
    if (node.buffer != input)
      continue;
    if (node.kind == NodeKind::gather && loops.live[id] && loops.loopOf[id] > firstStore)
      return false;
    for (size_t loop = firstStore + 1; loop < loops.loops.size(); ++loop)
      if (node.kind == NodeKind::load && loops.loops[loop].computes[id])
        return false;
  }
  return true;
}

} // namespace gradc::row
