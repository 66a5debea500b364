// Loops of row programs on the CPU.
//
// Rows are taken one after another, all their loops each; a loop takes `unroll` vectors of columns
// a step, with an accumulator for each vector and reduction, and ends in one cut step. Sums of
// columns are added to the task's row of them in memory, which stays in the nearest cache: half the
// time of strips of columns with the sums in registers, whose rows lie pages apart. A flat program
// is one loop.
#include "codegen/cpu/RowProgram.h"

#include "codegen/cpu/KernelFunction.h"
#include "codegen/kernels/CeilDiv.h"
#include "codegen/kernels/Loops.h"
#include "codegen/kernels/RowNodes.h"

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen {

namespace {

/// Vectors of columns in a step.
constexpr int64_t unroll = 4;

class RowProgramEmitter {
public:
  RowProgramEmitter(OpBuilder &builder, const Program &program, const CpuTarget &target,
                    const KernelArguments &arguments)
      : b(builder), v(builder, builder.getUnknownLoc(), target.vectors()), program(program),
        loops(splitIntoLoops(program)), nodes(v, program, loops), arguments(arguments) {}

  void emit() {
    if (loops.loops.empty() && program.flat)
      return;
    RowState state = nodes.programState(arguments.buffers, arguments.task);
    Value perTask = v.index(program.flat ? flatElementsPerTask : rowsPerTask);
    Value first = v.mulIndex(arguments.task, perTask);
    Value last = arith::MinSIOp::create(b, v.loc, v.addIndex(first, perTask), arguments.extent);
    if (program.flat)
      emitFlat(state, first, last);
    else
      emitRows(state, first, last);
  }

private:
  /// One step of a loop: reductions into `accumulators`, indexed by (reduction, vector), and
  /// effects.
  void emitStep(const RowState &row, const Loop &loop, const Columns &columns,
                MutableArrayRef<Value> accumulators) {
    nodes.computeColumns(row, loop, columns, [&](int64_t u, const ColumnValues &values) {
      Value mask = columns.mask(u);
      for (auto [r, reduction] : llvm::enumerate(loop.reductions)) {
        Value x = nodes.vector(row, values, program.nodes[reduction].operands[0], ValueType::f32);
        if (mask)
          x = arith::SelectOp::create(b, v.loc, mask, x, nodes.identity(reduction));
        Value &accumulator = accumulators[r * unroll + u];
        accumulator = nodes.combine(reduction, accumulator, x);
      }
      for (int32_t index : loop.effects) {
        const Effect &effect = program.effects[index];
        Value x = nodes.vector(row, values, effect.node, nodes.storedType(effect));
        if (effect.kind == EffectKind::accumulateColumn) {
          Value address = nodes.address(row, effect.buffer, columns, u);
          x = v.add(v.loadVector(Dtype::f32, address, mask), x);
        }
        nodes.store(row, effect.buffer, columns, u, x);
      }
    });
  }

  /// One loop over the columns of a row; its reductions become row-level values.
  void emitColumns(RowState &row, const Loop &loop) {
    nodes.splatUses(row, loop);
    SmallVector<Value> accumulators;
    for (NodeId reduction : loop.reductions)
      accumulators.append(unroll, nodes.identity(reduction));
    int64_t step = unroll * v.lanes, full = program.columns / step * step;
    if (full > 0)
      emitLoop(b, v.loc, v.index(0), v.index(full), v.index(step), accumulators,
               [&](Value column, SmallVectorImpl<Value> &current) {
                 emitStep(row, loop, {column, unroll, {}}, current);
               });
    if (full < program.columns)
      emitStep(row, loop, cutStep(full, program.columns - full), accumulators);
    for (auto [r, reduction] : llvm::enumerate(loop.reductions))
      row.scalars[reduction] =
          finish(reduction, ArrayRef<Value>(accumulators).slice(r * unroll, unroll));
  }

  /// The last `count` columns, fewer than a step.
  Columns cutStep(int64_t first, int64_t count) const {
    Columns columns{v.index(first), ceilDiv(count, v.lanes), {}};
    if (count % v.lanes != 0)
      columns.lastMask = v.firstLanes(count % v.lanes);
    return columns;
  }

  /// Accumulators to one number: pairs of vectors, then halves of the last vector.
  Value finish(NodeId reduction, ArrayRef<Value> accumulators) const {
    SmallVector<Value> values(accumulators);
    for (size_t half = values.size() / 2; half >= 1; half /= 2)
      for (size_t i = 0; i < half; ++i)
        values[i] = nodes.combine(reduction, values[i], values[i + half]);
    return v.foldLanes(values[0], [&](Value x, Value y) { return nodes.combine(reduction, x, y); });
  }

  void emitRows(const RowState &shared, Value first, Value last) {
    for (size_t i = 0; i < program.buffers.size(); ++i)
      if (program.buffers[i].kind == BufferKind::columnPartial)
        emitZeros(shared.pointers[i]);
    SmallVector<Value> none;
    emitLoop(b, v.loc, first, last, v.index(1), none, [&](Value index, SmallVectorImpl<Value> &) {
      RowState row = nodes.rowState(shared, index);
      for (size_t i = 0; i < loops.loops.size(); ++i) {
        nodes.computeStage(row, i);
        nodes.storeStage(row, i);
        emitColumns(row, loops.loops[i]);
      }
      nodes.computeStage(row, loops.loops.size());
      nodes.storeStage(row, loops.loops.size());
    });
  }

  void emitZeros(Value sums) {
    Value zero = v.constant(v.vectorOf(v.f32), 0.0);
    int64_t full = program.columns / v.lanes * v.lanes;
    SmallVector<Value> none;
    emitLoop(b, v.loc, v.index(0), v.index(full), v.index(v.lanes), none,
             [&](Value column, SmallVectorImpl<Value> &) {
               v.storeVector(Dtype::f32, zero, v.elementPointer(Dtype::f32, sums, column), {});
             });
    if (full < program.columns)
      v.storeVector(Dtype::f32, zero, v.elementPointer(Dtype::f32, sums, full),
                    v.firstLanes(program.columns - full));
  }

  void emitFlat(const RowState &state, Value first, Value last) {
    const Loop &loop = loops.loops[0];
    int64_t step = unroll * v.lanes;
    Value count = arith::SubIOp::create(b, v.loc, last, first);
    Value whole = arith::DivSIOp::create(b, v.loc, count, v.index(step));
    Value full = v.addIndex(first, v.mulIndex(whole, v.index(step)));
    SmallVector<Value> none;
    emitLoop(b, v.loc, first, full, v.index(step), none,
             [&](Value column, SmallVectorImpl<Value> &) {
               emitStep(state, loop, {column, unroll, {}}, {});
             });
    emitLoop(b, v.loc, full, last, v.index(v.lanes), none,
             [&](Value column, SmallVectorImpl<Value> &) {
               Value left = arith::SubIOp::create(b, v.loc, last, column);
               emitStep(state, loop, {column, 1, v.firstLanes(left)}, {});
             });
  }

  OpBuilder &b;
  Vectors v;
  const Program &program;
  Loops loops;
  RowNodes nodes;
  const KernelArguments &arguments;
};

} // namespace

func::FuncOp emitRowProgram(OpBuilder &builder, ModuleOp module, const Program &program,
                            StringRef name, const CpuTarget &target) {
  SmallVector<bool> noAlias;
  for (const Buffer &buffer : program.buffers)
    noAlias.push_back(buffer.kind != BufferKind::matrix);
  return emitKernelFunction(builder, module, name, noAlias, [&](const KernelArguments &arguments) {
    RowProgramEmitter(builder, program, target, arguments).emit();
  });
}

} // namespace gradc::codegen
