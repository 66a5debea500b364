// Loops of row programs on a GPU.
#include "codegen/gpu/RowTeams.h"

#include "codegen/gpu/WarpRandom.h"
#include "codegen/kernels/CeilDiv.h"
#include "codegen/kernels/Loops.h"

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen::gpu {

RowTeams::RowTeams(BlockPrinter &printer, const Program &program, const RowSchedule &schedule,
                   const Vectors &one)
    : k(printer), program(program), schedule(schedule), loops(splitIntoLoops(program)), one(one),
      nodes(k.v, program, loops, uniformOfWarp(k)), elements(one, program, loops),
      wholeVectors(program.columns / schedule.lanes * schedule.lanes),
      team(k.divide(k.thread(), schedule.teamThreads())),
      member(k.remainder(k.thread(), schedule.teamThreads())),
      group(k.divide(k.task(), schedule.slices)), slice(k.remainder(k.task(), schedule.slices)),
      shared(nodes.programState(k.buffers(), group)) {
  for (size_t i = 0; i < program.effects.size(); ++i)
    if (program.effects[i].kind == EffectKind::accumulateColumn)
      accumulations.push_back(static_cast<int32_t>(i));
  if (schedule.keptBytes > 0)
    keptRows = k.dynamicShared(schedule.keptBytes);
  for (const Loop &loop : loops.loops) {
    auto count = static_cast<int64_t>(loop.reductions.size()) * schedule.warps;
    bool needed = count > 0 && schedule.warps > 1;
    slots.push_back(needed ? k.at(k.shared(count * schedule.teams), k.mul(team, count)) : Value());
  }
}

void RowTeams::emit() {
  Values sums;
  if (schedule.held)
    sums.assign(accumulations.size() * schedule.vectors, k.reals(0));
  else if (!accumulations.empty())
    zeroSums();
  Value start = k.mul(group, schedule.rows);
  Value first = k.add(start, team);
  Value last = k.minimum(k.add(start, schedule.rows), k.extent());
  if (schedule.rows == schedule.teams)
    k.ifTrue(k.less(first, last), [&] { emitRow(first, sums); });
  else
    emitLoop(k.builder(), k.location(), first, last, k.index(schedule.teams), sums,
             [&](Value row, SmallVectorImpl<Value> &current) { emitRow(row, current); });
  if (!sums.empty())
    storeSums(sums);
}

//===-- rows

void RowTeams::emitRow(Value index, MutableArrayRef<Value> sums) {
  RowState row = nodes.rowState(shared, index);
  HeldVectors held;
  Columns columns = heldColumns(held);
  for (size_t loop = 0; loop < loops.loops.size(); ++loop) {
    emitStage(row, loop);
    if (schedule.held)
      emitHeldLoop(row, loop, columns, sums);
    else
      emitStreamedLoop(row, loop);
  }
  emitStage(row, loops.loops.size());
  // Between two loops' reductions each waits for the other; a single one waits for itself here.
  auto sites = llvm::count_if(slots, [](Value slot) { return slot != nullptr; });
  if (sites == 1 && schedule.rows > schedule.teams)
    teamBarrier();
}

void RowTeams::emitStage(RowState &row, size_t stage) {
  nodes.computeStage(row, stage);
  if (overwritesGathered(stage))
    teamBarrier();
  if (loops.stageStores[stage].empty())
    return;
  Value leads = k.equal(k.add(member, slice), k.index(0));
  k.ifTrue(leads, [&] { nodes.storeStage(row, stage); });
}

/// Every thread reads the element that a stage gathers; none may store to its row before.
bool RowTeams::overwritesGathered(size_t stage) const {
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loops.live[id] && program.nodes[id].kind == NodeKind::gather &&
        loops.loopOf[id] == static_cast<int>(stage))
      for (const Effect &effect : program.effects)
        if (effect.kind == EffectKind::store &&
            mayAlias(program, program.nodes[id].buffer, effect.buffer))
          return true;
  return false;
}

//===-- columns of a row

Columns RowTeams::heldColumns(HeldVectors &held) {
  int64_t sliceColumns = schedule.vectors * schedule.stride();
  Value first = k.add(k.mul(slice, sliceColumns), k.mul(member, schedule.lanes));
  Columns columns{first, schedule.vectors, {}, schedule.stride(), &held};
  if (wholeVectors % sliceColumns != 0)
    columns.lastMask =
        k.less(k.add(first, (schedule.vectors - 1) * schedule.stride()), k.index(wholeVectors));
  return columns;
}

/// What a reduction takes of each vector, by reduction; stores and sums of columns take place.
SmallVector<RowTeams::Values> RowTeams::emitStep(const RowNodes &by, const RowState &row,
                                                 const Loop &loop, const Columns &columns,
                                                 MutableArrayRef<Value> sums) {
  SmallVector<Values> parts(loop.reductions.size());
  by.computeColumns(row, loop, columns, [&](int64_t u, const ColumnValues &values) {
    for (auto [r, reduction] : llvm::enumerate(loop.reductions)) {
      Value x = by.vector(row, values, program.nodes[reduction].operands[0], ValueType::f32);
      if (Value mask = columns.mask(u))
        x = k.select(mask, x, by.identity(reduction));
      parts[r].push_back(x);
    }
    for (int32_t index : loop.effects) {
      const Effect &effect = program.effects[index];
      Value x = by.vector(row, values, effect.node, by.storedType(effect));
      if (effect.kind == EffectKind::store) {
        by.store(row, effect.buffer, columns, u, x);
      } else if (sums.empty()) {
        addToSum(row, index, columns, u, x);
      } else {
        auto place = llvm::find(accumulations, index) - accumulations.begin();
        Value &sum = sums[place * schedule.vectors + u];
        sum = k.v.add(sum, x);
      }
    }
  });
  return parts;
}

void RowTeams::addToSum(const RowState &row, int32_t effect, const Columns &columns, int64_t vector,
                        Value x) {
  Value address = nodes.address(row, program.effects[effect].buffer, columns, vector);
  Value mask = columns.mask(vector);
  Value sum = k.v.add(k.v.loadVector(Dtype::f32, address, mask), x);
  k.v.storeVector(Dtype::f32, sum, address, mask);
}

void RowTeams::emitHeldLoop(RowState &row, size_t index, const Columns &columns,
                            MutableArrayRef<Value> sums) {
  const Loop &loop = loops.loops[index];
  nodes.splatUses(row, loop);
  SmallVector<Values> parts = emitStep(nodes, row, loop, columns, sums);
  if (wholeVectors < program.columns) // of rows that are cut, in which nothing is reduced
    k.ifTrue(k.equal(slice, k.index(schedule.slices - 1)), [&] { emitTail(row, index); });
  finishReductions(row, index, parts, {});
}

/// The columns of a row in vectors, `schedule.vectors` of them a thread at a time.
void RowTeams::forSteps(SmallVectorImpl<Value> &carried, StepBody body) {
  Value offset = k.mul(member, schedule.lanes);
  int64_t step = schedule.step();
  int64_t full = wholeVectors / step * step, rest = wholeVectors - full;
  int64_t kept = std::min(schedule.keptColumns, full);
  for (auto [begin, end] : {std::pair<int64_t, int64_t>(0, kept), {kept, full}})
    if (begin < end)
      emitLoop(k.builder(), k.location(), k.index(begin), k.index(end), k.index(step), carried,
               [&, keeps = end == kept](Value first, SmallVectorImpl<Value> &current) {
                 HeldVectors held; // of this step alone, so that its loads come first
                 body({k.add(first, offset), schedule.vectors, {}, schedule.stride(), &held}, keeps,
                      current);
               });
  if (rest == 0)
    return;
  HeldVectors held;
  int64_t vectors = ceilDiv(rest, schedule.stride());
  Columns columns{k.add(offset, full), vectors, {}, schedule.stride(), &held};
  if (rest % schedule.stride() != 0)
    columns.lastMask =
        k.less(k.add(columns.first, (vectors - 1) * schedule.stride()), k.index(wholeVectors));
  body(columns, keepsAll(), carried);
}

void RowTeams::emitStreamedLoop(RowState &row, size_t index) {
  const Loop &loop = loops.loops[index];
  nodes.splatUses(row, loop);
  Values totals;
  for (NodeId reduction : loop.reductions)
    totals.append(schedule.vectors, nodes.identity(reduction));
  forSteps(totals, [&](const Columns &columns, bool keeps, MutableArrayRef<Value> current) {
    if (keeps)
      takeKept(k.v, index, columns);
    SmallVector<Values> parts = emitStep(nodes, row, loop, columns, {});
    if (keeps)
      keep(k.v, index, columns);
    for (auto [r, reduction] : llvm::enumerate(loop.reductions))
      for (auto [u, part] : llvm::enumerate(parts[r])) {
        Value &total = current[r * schedule.vectors + u];
        total = nodes.combine(reduction, total, part);
      }
  });
  SmallVector<Values> parts;
  for (size_t r = 0; r < loop.reductions.size(); ++r)
    parts.emplace_back(ArrayRef<Value>(totals).slice(r * schedule.vectors, schedule.vectors));
  finishReductions(row, index, parts, emitTail(row, index));
}

/// Columns that are no whole vector, one a thread.
SmallVector<RowTeams::Values> RowTeams::emitTail(const RowState &row, size_t index) {
  int64_t rest = program.columns - wholeVectors;
  if (rest == 0)
    return {};
  const Loop &loop = loops.loops[index];
  RowState state = row;
  state.splats.assign(state.splats.size(), Value()); // the row's are whole vectors
  elements.splatUses(state, loop);
  HeldVectors held;
  Columns columns{k.add(k.index(wholeVectors), member), 1, k.less(member, k.index(rest)),
                  /*stride=*/0, &held};
  if (keepsAll())
    takeKept(one, index, columns);
  SmallVector<Values> parts = emitStep(elements, state, loop, columns, {});
  if (keepsAll())
    keep(one, index, columns);
  return parts;
}

//===-- across threads

void RowTeams::teamBarrier() {
  if (schedule.warps == 1)
    k.warpBarrier();
  else if (schedule.teams == 1)
    k.barrier();
  else
    k.barrier(k.add(team, 1), schedule.teamThreads());
}

/// Pairs, from the outside in.
Value RowTeams::combineAll(NodeId reduction, Values values) const {
  while (values.size() > 1) {
    size_t kept = (values.size() + 1) / 2;
    for (size_t i = 0; i + kept < values.size(); ++i)
      values[i] = nodes.combine(reduction, values[i], values[i + kept]);
    values.resize(kept);
  }
  return values[0];
}

/// The same number in every thread of a warp: both of an exchange combine the same two.
Value RowTeams::combineWarp(NodeId reduction, Value x) {
  for (int64_t distance = warpThreads / 2; distance >= 1; distance /= 2)
    x = nodes.combine(reduction, x, k.exchange(x, distance));
  return x;
}

/// The reductions of a loop, known to all threads of the team as row-level values.
void RowTeams::finishReductions(RowState &row, size_t index, ArrayRef<Values> parts,
                                ArrayRef<Values> tails) {
  ArrayRef<NodeId> reductions = loops.loops[index].reductions;
  Values totals;
  for (auto [r, reduction] : llvm::enumerate(reductions)) {
    auto combine = [&](Value x, Value y) { return nodes.combine(reduction, x, y); };
    Value x = k.v.foldLanes(combineAll(reduction, parts[r]), combine);
    if (!tails.empty())
      x = combine(x, one.foldLanes(tails[r].front(), combine));
    totals.push_back(combineWarp(reduction, x));
  }
  Value slot = slots[index];
  if (slot) {
    Value warp = k.divide(member, warpThreads);
    k.ifTrue(k.equal(k.remainder(member, warpThreads), k.index(0)), [&] {
      for (auto [r, total] : llvm::enumerate(totals))
        k.store(total, k.at(slot, k.add(warp, static_cast<int64_t>(r) * schedule.warps)));
    });
    teamBarrier();
    for (auto [r, reduction] : llvm::enumerate(reductions)) {
      Values ofWarps;
      for (int64_t warp = 0; warp < schedule.warps; ++warp)
        ofWarps.push_back(k.loadFloat(k.at(slot, static_cast<int64_t>(r) * schedule.warps + warp)));
      totals[r] = combineAll(reduction, ofWarps);
    }
  }
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
    row.scalars[reduction] = total;
}

} // namespace gradc::codegen::gpu
