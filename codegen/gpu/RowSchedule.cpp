// Choices for row programs.
#include "codegen/gpu/RowSchedule.h"

#include "codegen/gpu/Processor.h"
#include "codegen/kernels/CeilDiv.h"
#include "ir/row/Loops.h"

#include <algorithm>
#include <set>

using namespace gradc::row;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t mostTeamWarps = 16;
constexpr int64_t blockWarps = 8; ///< but for longer teams; more would leave 128 registers each
/// f32 registers of a thread for what lives from loop to loop, and the most columns they are for.
/// Blocks that sum over rows are few, so that each may take more.
constexpr int64_t heldRegisters = 64, summingRegisters = 96, mostHeldColumns = 32;
/// Threads of a multiprocessor where registers are 96 each, and where they are 128: random numbers
/// take some of their own.
constexpr int64_t residentThreads = 640, drawingThreads = 512;
/// Columns of a thread whose loads are on their way together, where the row is not held; vectors
/// are at most so many, as each has its own addresses.
constexpr int64_t columnsOnTheWay = 16, mostVectors = 8;

int64_t vectorsOnTheWay(int64_t lanes) { return std::min(mostVectors, columnsOnTheWay / lanes); }

bool stridesDivide(const Program &program, int64_t lanes) {
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::matrix &&
        rowStride(program, static_cast<int32_t>(i)) % lanes != 0)
      return false;
  return true;
}

bool areAligned(const Program &program, const Alignments &alignments, int64_t lanes) {
  for (size_t i = 0; i < alignments.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (isAlongColumns(buffer.kind) &&
        std::min(widestAccess, lanes * byteSize(buffer.dtype)) > alignments[i])
      return false;
  }
  return true;
}

/// The most elements of a vector that divide `columns` and everything else.
int64_t chooseLanes(const Program &program, const Alignments &alignments, int64_t columns) {
  int64_t widest = 1;
  for (const Buffer &buffer : program.buffers)
    if (buffer.kind == BufferKind::matrix)
      widest = std::max(widest, byteSize(buffer.dtype));
  int64_t lanes = std::clamp<int64_t>(widestAccess / widest, 4, 8);
  while (columns % lanes != 0 || !stridesDivide(program, lanes) ||
         !areAligned(program, alignments, lanes))
    lanes /= 2;
  return lanes;
}

struct Demands {
  bool reduces = false, gathers = false, accumulates = false, draws = false;
  std::set<int32_t> known; ///< buffers that several loops read
  int64_t held = 0;        ///< registers a column: those, and sums of columns
  int64_t live = 0;        ///< registers a column at the most
};

/// Matrices that the loop loads, all before its arithmetic.
int64_t loadsOf(const Program &program, const Loop &loop) {
  std::set<int32_t> loaded;
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    int32_t buffer = program.nodes[id].buffer;
    if (loop.computes[id] && buffer >= 0 && program.buffers[buffer].kind == BufferKind::matrix)
      loaded.insert(buffer);
  }
  return static_cast<int64_t>(loaded.size());
}

Demands demandsOf(const Program &program) {
  Demands demands;
  Loops loops = splitIntoLoops(program);
  for (const Loop &loop : loops.loops)
    demands.reduces |= !loop.reductions.empty();
  for (size_t id = 0; id < program.nodes.size(); ++id) {
    const Node &node = program.nodes[id];
    demands.gathers |= loops.live[id] && node.kind == NodeKind::gather;
    demands.draws |= loops.live[id] && node.kind == NodeKind::uniform;
    auto readers =
        std::ranges::count_if(loops.loops, [&](const Loop &l) { return l.computes[id]; });
    if (node.buffer >= 0 && (node.kind == NodeKind::reload ? readers > 0 : readers > 1))
      demands.known.insert(node.buffer);
  }
  demands.held = static_cast<int64_t>(demands.known.size());
  for (const Effect &effect : program.effects)
    if (effect.kind == EffectKind::accumulateColumn) {
      demands.accumulates = true;
      ++demands.held;
    }
  int64_t sums = demands.held - static_cast<int64_t>(demands.known.size());
  demands.live = demands.held + (demands.accumulates ? 2 : 1);
  for (const Loop &loop : loops.loops)
    demands.live = std::max(demands.live, loadsOf(program, loop) + sums);
  return demands;
}

/// Vectors that divide the strides alone, for long rows that are not held. Sums of columns lie one
/// behind the other, so that not all of them would begin at a vector.
void allowTails(RowSchedule &schedule, const Program &program, const Alignments &alignments) {
  int64_t lanes = chooseLanes(program, alignments, /*columns=*/0);
  if (program.columns >= lanes * warpThreads)
    schedule.lanes = lanes;
}

/// Rows that may be cut: a warp a slice, as many vectors a thread as leave no slice part empty.
void cutRows(RowSchedule &schedule, int64_t columns) {
  int64_t steps = columns / schedule.lanes;
  schedule.vectors = vectorsOnTheWay(schedule.lanes);
  while (schedule.vectors > 1 && steps % (schedule.vectors * schedule.teamThreads()) != 0)
    schedule.vectors /= 2;
  schedule.slices = ceilDiv(steps, schedule.vectors * schedule.teamThreads());
  schedule.teams = blockWarps;
}

/// Rows in one piece: the fewest warps whose registers hold one.
void holdRows(RowSchedule &schedule, int64_t columns, const Demands &demands) {
  int64_t registers = demands.accumulates ? summingRegisters : heldRegisters;
  int64_t most = std::min(mostHeldColumns, registers / demands.live);
  while (schedule.warps < mostTeamWarps && columns > most * schedule.teamThreads())
    schedule.warps *= 2;
  schedule.held = columns <= most * schedule.teamThreads();
  schedule.vectors = ceilDiv(columns, schedule.stride());
  if (schedule.held && demands.accumulates)
    schedule.teams = std::max<int64_t>(1, blockWarps / schedule.warps);
  else if (schedule.warps == 1)
    schedule.teams = blockWarps / 2;
  // Told nothing, the assembler spills to reach an occupancy that nobody asked for.
  if (schedule.held && !demands.accumulates)
    schedule.blocks = (demands.draws ? drawingThreads : residentThreads) / schedule.threads();
}

/// Bytes of a row's columns in the matrices that `isMeant` says.
int64_t bytesOf(const Program &program, int64_t columns,
                llvm::function_ref<bool(int32_t)> isMeant) {
  int64_t bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::matrix && isMeant(static_cast<int32_t>(i)))
      bytes += columns * byteSize(program.buffers[i].dtype);
  return bytes;
}

/// Keeps of the rows that several loops read as many columns as fit. Blocks that take all of a
/// processor's shared memory are alone on it: what a loop reads again was read since one row, and
/// what is stored of one, of each processor.
void keepRows(RowSchedule &schedule, const Program &program, const Demands &demands,
              const GpuTarget &target) {
  auto isKept = [&](int32_t buffer) { return demands.known.contains(buffer); };
  auto isStored = [&](int32_t buffer) {
    return llvm::any_of(program.effects, [&](const Effect &e) { return e.buffer == buffer; });
  };
  int64_t room = target.blockSharedBytes() - staticSharedBytes;
  int64_t all = program.columns, ofColumn = bytesOf(program, 1, isKept);
  if (ofColumn == 0)
    return;
  auto rounded = [](int64_t bytes) { return ceilDiv(bytes, widestAccess) * widestAccess; };
  auto kept = static_cast<int64_t>(demands.known.size()); // at most: each is rounded
  bool fits = bytesOf(program, all, isKept) + kept * widestAccess <= room;
  schedule.keptColumns = fits ? all : room / ofColumn / schedule.step() * schedule.step();
  if (schedule.keptColumns == 0)
    return;
  for (int32_t buffer : demands.known)
    if (program.buffers[buffer].kind == BufferKind::matrix) {
      schedule.kept.push_back({buffer, schedule.keptBytes});
      schedule.keptBytes += rounded(schedule.keptColumns * byteSize(program.buffers[buffer].dtype));
    }
  schedule.blocks = 1;
  int64_t since =
      bytesOf(program, all - schedule.keptColumns, isKept) + bytesOf(program, all, isStored);
  schedule.restIsCached = processorsOfGpu * since <= secondLevelCacheBytes;
}

/// Rows that go by a few vectors a thread at a time.
void streamRows(RowSchedule &schedule, const Program &program, const Demands &demands,
                const GpuTarget &target) {
  int64_t columns = std::min(columnsOnTheWay, heldRegisters / demands.live);
  schedule.vectors = std::clamp<int64_t>(columns / schedule.lanes, 1, mostVectors);
  keepRows(schedule, program, demands, target);
}

} // namespace

RowSchedule scheduleRows(const Program &program, const GpuTarget &target,
                         const Alignments &alignments) {
  RowSchedule schedule;
  schedule.lanes = chooseLanes(program, alignments, program.columns);
  if (program.flat) {
    schedule.warps = blockWarps;
    schedule.vectors = vectorsOnTheWay(schedule.lanes);
    return schedule;
  }
  Demands demands = demandsOf(program);
  bool isCut = !demands.reduces && !demands.gathers;
  if (!isCut)
    holdRows(schedule, program.columns, demands);
  if (!demands.accumulates && (isCut || !schedule.held))
    allowTails(schedule, program, alignments);
  if (isCut)
    cutRows(schedule, program.columns);
  else if (!schedule.held)
    streamRows(schedule, program, demands, target);
  schedule.rows = demands.accumulates ? rowsPerTask : schedule.teams;
  return schedule;
}

int64_t taskCount(const Program &program, const RowSchedule &schedule, int64_t extent) {
  if (program.flat)
    return ceilDiv(extent, schedule.step());
  return ceilDiv(extent, schedule.rows) * schedule.slices;
}

} // namespace gradc::codegen::gpu
