// What makes a row program well-formed.
#include "ir/row/Loops.h"
#include "ir/row/RowProgram.h"

#include <algorithm>
#include <optional>

namespace gradc::row {

namespace {

class Verifier {
public:
  explicit Verifier(const Program &program) : program(program) {}

  std::string run() {
    if (std::string error = checkShape(); !error.empty())
      return error;
    if (std::string error = checkReferences(); !error.empty())
      return error;
    types = valueTypes(program);
    isColumn = columnLevel(program);
    for (size_t id = 0; id < program.nodes.size(); ++id)
      if (std::string error = checkNode(program.nodes[id]); !error.empty())
        return "node %" + std::to_string(id) + " (" + name(program.nodes[id].kind) + "): " + error;
    for (size_t i = 0; i < program.effects.size(); ++i)
      if (std::string error = checkEffect(program.effects[i]); !error.empty())
        return "effect " + std::to_string(i) + ": " + error;
    return checkOrder();
  }

private:
  std::string checkShape() const {
    if (program.flat != (program.columns == 0))
      return program.flat ? "expected no columns in a flat program" : "expected columns, got: 0";
    if (program.columns < 0)
      return "expected columns, got: " + std::to_string(program.columns);
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer &buffer = program.buffers[i];
      std::string where = "buffer @" + std::to_string(i) + ": ";
      bool matrix = buffer.kind == BufferKind::matrix;
      if (program.flat && !matrix && buffer.kind != BufferKind::scalar)
        return where + "expected matrices and scalars only in a flat program";
      if (buffer.rowStride != 0 && (program.flat || !matrix))
        return where + "unexpected row stride";
      if (buffer.rowStride != 0 && buffer.rowStride < program.columns)
        return where + "expected a row stride of at least the columns, got: " +
               std::to_string(buffer.rowStride);
      if (buffer.kind == BufferKind::columnPartial && buffer.dtype != Dtype::f32)
        return where + "expected column sums in f32";
    }
    return "";
  }

  bool isBuffer(int32_t buffer) const {
    return buffer >= 0 && buffer < static_cast<int32_t>(program.buffers.size());
  }

  /// Every index refers to something, operands to earlier nodes.
  std::string checkReferences() const {
    for (size_t id = 0; id < program.nodes.size(); ++id) {
      const Node &node = program.nodes[id];
      std::string where = "node %" + std::to_string(id) + ": ";
      for (int i = 0; i < 3; ++i) {
        NodeId operand = node.operands[i];
        if (i >= operandCount(node.kind) && operand != noNode)
          return where + "too many operands";
        if (i < operandCount(node.kind) && (operand < 0 || operand >= static_cast<NodeId>(id)))
          return where + "expected an operand that precedes it, got: %" + std::to_string(operand);
      }
      bool takesBuffer = node.kind == NodeKind::load || node.kind == NodeKind::reload ||
                         node.kind == NodeKind::gather;
      if (takesBuffer ? !isBuffer(node.buffer) : node.buffer != -1)
        return where + "unexpected buffer: @" + std::to_string(node.buffer);
    }
    for (const Effect &effect : program.effects) {
      if (!isBuffer(effect.buffer))
        return "effect on a buffer that is not there: @" + std::to_string(effect.buffer);
      if (effect.node < 0 || effect.node >= static_cast<NodeId>(program.nodes.size()))
        return "effect of a node that is not there: %" + std::to_string(effect.node);
    }
    return "";
  }

  bool isConstant(NodeId id) const { return program.nodes[id].kind == NodeKind::constant; }

  /// Can the node serve as a value of this type? Constants are f32 or i32 as needed.
  bool fits(NodeId id, ValueType type) const {
    return types[id] == type || (isConstant(id) && type == ValueType::i32);
  }

  std::string checkOperandTypes(const Node &node) const {
    for (int i = 0; i < operandCount(node.kind); ++i) {
      ValueType type = operandType(types, node, i);
      const char *wanted = type == ValueType::f32   ? "f32"
                           : type == ValueType::i32 ? "i32"
                                                    : "a condition";
      if (!fits(node.operands[i], type))
        return std::string("expected ") + wanted + " as operand " + std::to_string(i);
    }
    return "";
  }

  std::string checkNode(const Node &node) const {
    if (std::string error = checkOperandTypes(node); !error.empty())
      return error;
    switch (node.kind) {
    case NodeKind::rowIndex:
      return program.flat ? "a flat program has no rows" : "";
    case NodeKind::load:
      return program.buffers[node.buffer].kind == BufferKind::columnPartial
                 ? "column sums are only written"
                 : "";
    case NodeKind::reload:
      return checkReload(node);
    case NodeKind::gather:
      return checkGather(node);
    case NodeKind::reduceSum:
    case NodeKind::reduceMax:
      if (program.flat)
        return "a flat program cannot reduce";
      return isColumn[node.operands[0]] ? "" : "expected an operand with one value a column";
    case NodeKind::uniform:
      return std::ranges::any_of(node.operands, [&](NodeId id) { return isColumn[id]; })
                 ? "expected a seed, a step and a first row without columns"
                 : "";
    default:
      return "";
    }
  }

  std::string checkReload(const Node &node) const {
    if (program.buffers[node.buffer].kind != BufferKind::matrix)
      return "expected a matrix";
    for (const Effect &effect : program.effects)
      if (effect.kind == EffectKind::store && effect.buffer == node.buffer)
        return effect.node < &node - program.nodes.data()
                   ? ""
                   : "expected the stored node to precede its reload";
    return "expected a buffer that the program stores";
  }

  std::string checkGather(const Node &node) const {
    if (program.flat || program.buffers[node.buffer].kind != BufferKind::matrix)
      return "expected a matrix with rows";
    return isColumn[node.operands[0]] ? "expected an index with one value a row" : "";
  }

  std::string checkEffect(const Effect &effect) const {
    const Buffer &buffer = program.buffers[effect.buffer];
    if (!fits(effect.node, buffer.dtype == Dtype::i32 ? ValueType::i32 : ValueType::f32))
      return "expected a node of the buffer's type";
    switch (effect.kind) {
    case EffectKind::store:
      return buffer.kind == BufferKind::matrix ? "" : "expected a matrix to store to";
    case EffectKind::storeRow:
      if (isColumn[effect.node])
        return "expected a node with one value a row";
      // Emitters may pass a row several times, strip by strip: it must read the same each time.
      for (const Node &node : program.nodes)
        if (node.buffer == effect.buffer)
          return "expected a row buffer that the program does not load";
      return buffer.kind == BufferKind::row ? "" : "expected a row buffer";
    case EffectKind::accumulateColumn:
      return buffer.kind == BufferKind::columnPartial ? "" : "expected a column sum buffer";
    }
    return "";
  }

  /// A load never sees what its own program stored, a reload only what the first store wrote.
  std::string checkOrder() const {
    Loops loops = splitIntoLoops(program);
    for (size_t id = 0; id < program.nodes.size(); ++id) {
      const Node &node = program.nodes[id];
      if (node.buffer < 0)
        continue;
      int allowed = node.kind == NodeKind::reload ? 1 : 0;
      std::optional<int> last = lastLoopBefore(node.buffer, allowed, loops);
      if (!last)
        continue;
      bool late = node.kind == NodeKind::gather && loops.live[id] && loops.loopOf[id] > *last;
      for (size_t loop = *last + 1; loop < loops.loops.size(); ++loop)
        late = late || loops.loops[loop].computes[id];
      if (late)
        return "node %" + std::to_string(id) + " (" + name(node.kind) +
               "): needed after a later store to its buffer";
    }
    return "";
  }

  /// Loop of the first store to a buffer after skipping `skipped` of them.
  std::optional<int> lastLoopBefore(int32_t buffer, int skipped, const Loops &loops) const {
    for (const Effect &effect : program.effects)
      if (effect.kind == EffectKind::store && effect.buffer == buffer && skipped-- == 0)
        return loops.loopOf[effect.node];
    return std::nullopt;
  }

  const Program &program;
  std::vector<ValueType> types;
  std::vector<bool> isColumn;
};

} // namespace

std::string verify(const Program &program) { return Verifier(program).run(); }

} // namespace gradc::row
