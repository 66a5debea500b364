// Text of row programs.
#include "ir/row/RowProgram.h"

#include <cstdio>

namespace gradc::row {

const char *name(Dtype dtype) {
  switch (dtype) {
  case Dtype::f32:
    return "f32";
  case Dtype::bf16:
    return "bf16";
  case Dtype::f16:
    return "f16";
  case Dtype::i32:
    return "i32";
  case Dtype::f8e4m3:
    return "f8e4m3";
  case Dtype::f8e5m2:
    return "f8e5m2";
  }
  return "?";
}

const char *name(NodeKind kind) {
  switch (kind) {
  case NodeKind::constant:
    return "constant";
  case NodeKind::load:
    return "load";
  case NodeKind::reload:
    return "reload";
  case NodeKind::columnIndex:
    return "column_index";
  case NodeKind::rowIndex:
    return "row_index";
  case NodeKind::gather:
    return "gather";
  case NodeKind::reduceSum:
    return "reduce_sum";
  case NodeKind::reduceMax:
    return "reduce_max";
  case NodeKind::add:
    return "add";
  case NodeKind::sub:
    return "sub";
  case NodeKind::mul:
    return "mul";
  case NodeKind::div:
    return "div";
  case NodeKind::maximum:
    return "maximum";
  case NodeKind::minimum:
    return "minimum";
  case NodeKind::neg:
    return "neg";
  case NodeKind::exp:
    return "exp";
  case NodeKind::log:
    return "log";
  case NodeKind::sqrt:
    return "sqrt";
  case NodeKind::rsqrt:
    return "rsqrt";
  case NodeKind::tanh:
    return "tanh";
  case NodeKind::erf:
    return "erf";
  case NodeKind::roundBf16:
    return "round_bf16";
  case NodeKind::roundF16:
    return "round_f16";
  case NodeKind::roundF8E4M3:
    return "round_f8e4m3";
  case NodeKind::roundF8E5M2:
    return "round_f8e5m2";
  case NodeKind::exponentPart:
    return "exponent_part";
  case NodeKind::lessThan:
    return "less_than";
  case NodeKind::lessEqual:
    return "less_equal";
  case NodeKind::equal:
    return "equal";
  case NodeKind::logicalAnd:
    return "logical_and";
  case NodeKind::select:
    return "select";
  case NodeKind::addInt:
    return "add_int";
  case NodeKind::mulInt:
    return "mul_int";
  case NodeKind::remainderInt:
    return "remainder_int";
  case NodeKind::uniform:
    return "uniform";
  }
  return "?";
}

namespace {

const char *name(BufferKind kind) {
  switch (kind) {
  case BufferKind::matrix:
    return "matrix";
  case BufferKind::column:
    return "column";
  case BufferKind::row:
    return "row";
  case BufferKind::scalar:
    return "scalar";
  case BufferKind::columnPartial:
    return "column_partial";
  }
  return "?";
}

const char *name(EffectKind kind) {
  switch (kind) {
  case EffectKind::store:
    return "store";
  case EffectKind::storeRow:
    return "store_row";
  case EffectKind::accumulateColumn:
    return "accumulate_column";
  }
  return "?";
}

/// Shortest decimal that reads back as the same number is not needed: 17 digits always do.
std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string printNode(const Node &node) {
  std::string text = gradc::row::name(node.kind);
  if (node.kind == NodeKind::constant || node.kind == NodeKind::uniform)
    text += " " + number(node.value);
  if (node.buffer >= 0)
    text += " @" + std::to_string(node.buffer);
  for (NodeId operand : node.operands)
    if (operand != noNode)
      text += " %" + std::to_string(operand);
  return text;
}

} // namespace

std::string print(const Program &program) {
  std::string text = program.flat ? "flat" : "columns " + std::to_string(program.columns);
  text += '\n';
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    text += "@" + std::to_string(i) + " = " + name(buffer.kind) + " " + name(buffer.dtype);
    if (buffer.rowStride != 0)
      text += " stride " + std::to_string(buffer.rowStride);
    text += '\n';
  }
  for (size_t i = 0; i < program.nodes.size(); ++i)
    text += "%" + std::to_string(i) + " = " + printNode(program.nodes[i]) + '\n';
  for (const Effect &effect : program.effects)
    text += std::string(name(effect.kind)) + " @" + std::to_string(effect.buffer) + " %" +
            std::to_string(effect.node) + '\n';
  return text;
}

} // namespace gradc::row
