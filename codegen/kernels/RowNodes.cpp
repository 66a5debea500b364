// Values of row programs' nodes.
#include "codegen/kernels/RowNodes.h"

#include "codegen/kernels/VectorMath.h"
#include "ir/row/Philox.h"

#include <limits>

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen {

namespace {

std::vector<bool> findProgramLevel(const Program &program, const std::vector<bool> &isColumn) {
  std::vector<bool> result;
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    const Node &node = program.nodes[id];
    bool same = !isColumn[id];
    switch (node.kind) {
    case NodeKind::rowIndex:
    case NodeKind::gather:
    case NodeKind::reduceSum:
    case NodeKind::reduceMax:
      same = false;
      break;
    case NodeKind::load:
      same = program.buffers[node.buffer].kind == BufferKind::scalar;
      break;
    default:
      break;
    }
    for (int i = 0; i < operandCount(node.kind); ++i)
      same = same && result[node.operands[i]];
    result.push_back(same);
  }
  return result;
}

} // namespace

RowNodes::RowNodes(const Vectors &vectors, const Program &program, const Loops &loops,
                   UniformVector uniformVector)
    : v(vectors), program(program), loops(loops), uniformVector(std::move(uniformVector)),
      types(valueTypes(program)), programLevel(findProgramLevel(program, loops.columnLevel)) {}

Value RowNodes::constant(NodeId id, ValueType type, bool vector) const {
  Type element = type == ValueType::i32 ? v.i32 : v.f32;
  return v.constant(vector ? v.vectorOf(element) : element, program.nodes[id].value);
}

Value RowNodes::scalar(const RowState &row, NodeId id, ValueType type) const {
  if (program.nodes[id].kind == NodeKind::constant)
    return constant(id, type, /*vector=*/false);
  return row.scalars[id];
}

void RowNodes::computeScalar(RowState &row, NodeId id) const {
  const Node &node = program.nodes[id];
  Dtype dtype = node.buffer >= 0 ? program.buffers[node.buffer].dtype : Dtype::f32;
  auto operand = [&](int i) { return scalar(row, node.operands[i], operandType(types, node, i)); };
  Value &result = row.scalars[id];
  switch (node.kind) {
  case NodeKind::load: {
    Value address = row.pointers[node.buffer];
    if (program.buffers[node.buffer].kind == BufferKind::row)
      address = v.elementPointer(dtype, address, row.index);
    result = v.loadScalar(dtype, address);
    return;
  }
  case NodeKind::rowIndex:
    result = arith::TruncIOp::create(v.builder, v.loc, v.i32, row.index);
    return;
  case NodeKind::gather: {
    Value column = arith::ExtSIOp::create(v.builder, v.loc, v.i64, operand(0));
    result = v.loadScalar(dtype, v.elementPointer(dtype, row.pointers[node.buffer], column));
    return;
  }
  default: {
    SmallVector<Value> operands;
    for (int i = 0; i < operandCount(node.kind); ++i)
      operands.push_back(operand(i));
    result = emitPointwise(v, node.kind, operands);
  }
  }
}

RowState RowNodes::programState(ArrayRef<Value> buffers, Value partialRow) const {
  RowState state;
  state.pointers.assign(buffers.begin(), buffers.end());
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::columnPartial)
      state.pointers[i] = v.elementPointer(Dtype::f32, state.pointers[i],
                                           v.mulIndex(partialRow, v.index(program.columns)));
  state.scalars.resize(program.nodes.size());
  state.splats.resize(program.nodes.size());
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loops.live[id] && programLevel[id] && program.nodes[id].kind != NodeKind::constant)
      computeScalar(state, static_cast<NodeId>(id));
  for (const Loop &loop : loops.loops)
    splatUses(state, loop);
  return state;
}

RowState RowNodes::rowState(const RowState &shared, Value index) const {
  RowState state = shared;
  state.index = index;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::matrix) {
      Value offset = v.mulIndex(index, v.index(rowStride(program, static_cast<int32_t>(i))));
      state.pointers[i] = v.elementPointer(program.buffers[i].dtype, state.pointers[i], offset);
    }
  return state;
}

void RowNodes::computeStage(RowState &row, size_t stage) const {
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loops.live[id] && !loops.columnLevel[id] && loops.loopOf[id] == static_cast<int>(stage) &&
        !row.scalars[id] && program.nodes[id].kind != NodeKind::constant)
      computeScalar(row, static_cast<NodeId>(id));
}

void RowNodes::storeStage(const RowState &row, size_t stage) const {
  for (int32_t index : loops.stageStores[stage]) {
    const Effect &effect = program.effects[index];
    Dtype dtype = program.buffers[effect.buffer].dtype;
    Value address = v.elementPointer(dtype, row.pointers[effect.buffer], row.index);
    v.storeScalar(dtype, scalar(row, effect.node, storedType(effect)), address);
  }
}

ValueType RowNodes::storedType(const Effect &effect) const {
  return program.buffers[effect.buffer].dtype == Dtype::i32 ? ValueType::i32 : ValueType::f32;
}

Value RowNodes::combine(NodeId reduction, Value x, Value y) const {
  return program.nodes[reduction].kind == NodeKind::reduceSum ? v.add(x, y) : v.maximum(x, y);
}

Value RowNodes::identity(NodeId reduction) const {
  bool sum = program.nodes[reduction].kind == NodeKind::reduceSum;
  return v.constant(v.vectorOf(v.f32), sum ? 0.0 : -std::numeric_limits<double>::infinity());
}

void RowNodes::splatUses(RowState &row, const Loop &loop) const {
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loop.uses[id] && row.scalars[id] && !row.splats[id])
      row.splats[id] = v.splat(row.scalars[id]);
}

Value RowNodes::vector(const RowState &row, const ColumnValues &values, NodeId id,
                       ValueType type) const {
  if (program.nodes[id].kind == NodeKind::constant)
    return constant(id, type, /*vector=*/true);
  return loops.columnLevel[id] ? values[id] : row.splats[id];
}

Value RowNodes::address(const RowState &row, int32_t buffer, const Columns &columns,
                        int64_t vector) const {
  Dtype dtype = program.buffers[buffer].dtype;
  Value start = v.elementPointer(dtype, row.pointers[buffer], columns.first);
  return v.elementPointer(dtype, start, offset(columns, vector));
}

Value RowNodes::load(const RowState &row, int32_t buffer, const Columns &columns,
                     int64_t vector) const {
  if (columns.held)
    if (auto known = columns.held->find({buffer, vector}); known != columns.held->end())
      return known->second;
  Value loaded = v.loadVector(program.buffers[buffer].dtype, address(row, buffer, columns, vector),
                              columns.mask(vector));
  if (columns.held)
    (*columns.held)[{buffer, vector}] = loaded;
  return loaded;
}

void RowNodes::store(const RowState &row, int32_t buffer, const Columns &columns, int64_t vector,
                     Value value) const {
  Dtype dtype = program.buffers[buffer].dtype;
  v.storeVector(dtype, value, address(row, buffer, columns, vector), columns.mask(vector));
  if (columns.held)
    (*columns.held)[{buffer, vector}] = v.round(dtype, value);
}

Value RowNodes::compute(const RowState &row, const ColumnValues &values, NodeId id,
                        const Columns &columns, int64_t vectorIndex) const {
  const Node &node = program.nodes[id];
  switch (node.kind) {
  case NodeKind::load:
  case NodeKind::reload:
    return load(row, node.buffer, columns, vectorIndex);
  case NodeKind::columnIndex: {
    Value first = v.addIndex(columns.first, v.index(offset(columns, vectorIndex)));
    Value start = v.splat(arith::TruncIOp::create(v.builder, v.loc, v.i32, first));
    return arith::AddIOp::create(v.builder, v.loc, start, v.iota());
  }
  default: {
    SmallVector<Value> operands;
    for (int i = 0; i < operandCount(node.kind); ++i)
      operands.push_back(vector(row, values, node.operands[i], operandType(types, node, i)));
    return emitPointwise(v, node.kind, operands);
  }
  }
}

SmallVector<Value> RowNodes::uniforms(const RowState &row, const Node &node,
                                      const Columns &columns) const {
  RandomStream stream{scalar(row, node.operands[0], ValueType::i32),
                      scalar(row, node.operands[1], ValueType::i32),
                      static_cast<int32_t>(node.value)};
  Value first = columns.first;
  if (row.index) {
    Value firstRow = arith::ExtSIOp::create(v.builder, v.loc, v.i64,
                                            scalar(row, node.operands[2], ValueType::i32));
    Value before = v.addIndex(firstRow, row.index);
    first = v.addIndex(first, v.mulIndex(before, v.index(program.columns)));
  }
  // A group's elements must begin at a multiple of its size, in every row.
  bool aligned = program.columns % (columns.vectors * v.lanes) == 0;
  if (aligned && columns.stride == 0 && canEmitUniformGroup(v, columns.vectors))
    return emitUniformGroup(v, stream, first, columns.vectors);
  SmallVector<Value> result;
  bool wholeGroups = uniformVector && program.columns % philoxGroup == 0;
  for (int64_t u = 0; u < columns.vectors; ++u) {
    Value start = v.addIndex(first, v.index(offset(columns, u)));
    result.push_back(wholeGroups ? uniformVector(stream, start) : emitUniform(v, stream, start));
  }
  return result;
}

void RowNodes::computeColumns(const RowState &row, const Loop &loop, const Columns &columns,
                              function_ref<void(int64_t, const ColumnValues &)> use) const {
  SmallVector<ColumnValues> values(columns.vectors, ColumnValues(program.nodes.size()));
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    if (!loop.computes[id] || program.nodes[id].kind != NodeKind::uniform)
      continue;
    SmallVector<Value> numbers = uniforms(row, program.nodes[id], columns);
    for (int64_t u = 0; u < columns.vectors; ++u)
      values[u][id] = numbers[u];
  }
  for (int64_t u = 0; columns.held && u < columns.vectors; ++u)
    for (size_t id = 0; id < program.nodes.size(); ++id)
      if (loop.computes[id] && program.nodes[id].buffer >= 0)
        values[u][id] = load(row, program.nodes[id].buffer, columns, u);
  // Vector after vector rather than node after node: few values are then alive at once.
  for (int64_t u = 0; u < columns.vectors; ++u) {
    for (size_t id = 0; id < program.nodes.size(); ++id)
      if (loop.computes[id] && !values[u][id])
        values[u][id] = compute(row, values[u], static_cast<NodeId>(id), columns, u);
    use(u, values[u]);
  }
}

} // namespace gradc::codegen
