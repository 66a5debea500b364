// Kernels of row programs.
#include "codegen/gpu/RowProgram.h"

#include "codegen/gpu/RowTeams.h"
#include "codegen/gpu/WarpRandom.h"

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen::gpu {

namespace {

/// The long row of a flat program: a task is `vectors` vectors of each thread. What is left of the
/// extent goes vector by vector in the last block, and then element by element.
class FlatEmitter {
public:
  FlatEmitter(BlockPrinter &printer, const Program &program, const RowSchedule &schedule,
              const Vectors &one)
      : k(printer), program(program), schedule(schedule), loops(splitIntoLoops(program)),
        vectors(k.v, program, loops, uniformOfWarp(k)), rest(k.v, program, loops),
        elements(one, program, loops) {}

  void emit() {
    if (loops.loops.empty())
      return;
    int64_t perTask = schedule.vectors * schedule.stride();
    Value first = k.mul(k.task(), perTask), last = k.add(first, perTask);
    Value start = k.add(first, k.mul(k.thread(), schedule.lanes));
    k.ifTrue(
        k.less(k.extent(), last), [&] { emitRest(start); },
        [&] {
          HeldVectors held;
          emitStep(vectors, {start, schedule.vectors, {}, schedule.stride(), &held});
        });
  }

private:
  void emitRest(Value start) {
    Value whole = k.roundDown(k.extent(), schedule.lanes);
    k.forRange(start, whole, schedule.stride(),
               [&](Value column) { emitStep(rest, {column, 1, {}}); });
    Value element = k.add(whole, k.thread());
    k.ifTrue(k.less(element, k.extent()), [&] { emitStep(elements, {element, 1, {}}); });
  }

  void emitStep(const RowNodes &nodes, const Columns &columns) {
    const Loop &loop = loops.loops[0];
    RowState state = nodes.programState(k.buffers(), k.task());
    nodes.computeColumns(state, loop, columns, [&](int64_t u, const ColumnValues &values) {
      for (int32_t index : loop.effects) {
        const Effect &effect = program.effects[index];
        Value x = nodes.vector(state, values, effect.node, nodes.storedType(effect));
        nodes.store(state, effect.buffer, columns, u, x);
      }
    });
  }

  BlockPrinter &k;
  const Program &program;
  const RowSchedule &schedule;
  Loops loops;
  /// For whole blocks, for vectors that not all threads have, for single elements.
  RowNodes vectors, rest, elements;
};

} // namespace

RowReuse reuseOf(const Program &program, const RowSchedule &schedule) {
  int64_t again = program.flat || schedule.held ? 0 : program.columns - schedule.keptColumns;
  return {.columnsAgain = again,
          .againFromCache = schedule.restIsCached,
          .computes = schedule.held,
          .sums = schedule.held};
}

LLVM::LLVMFuncOp emitRowProgram(ModuleOp module, StringRef name, const Program &program,
                                const GpuTarget &target, const Alignments &alignments) {
  RowSchedule schedule = scheduleRows(program, target, alignments);
  SmallVector<bool> noAlias;
  for (const Buffer &buffer : program.buffers)
    noAlias.push_back(buffer.kind != BufferKind::matrix);
  BlockPrinter k(module, name, noAlias, schedule.threads(), target.vectors(schedule.lanes),
                 {.blocks = schedule.blocks});
  Vectors one(k.builder(), k.location(), target.vectors(1));
  if (program.flat)
    FlatEmitter(k, program, schedule, one).emit();
  else
    RowTeams(k, program, schedule, one).emit();
  return k.finish();
}

} // namespace gradc::codegen::gpu
