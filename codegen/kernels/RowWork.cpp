// Traffic of row programs, buffer by buffer.
#include "codegen/kernels/RowWork.h"

#include "ir/row/Cost.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <utility>

using namespace gradc::row;

namespace gradc::codegen {

namespace {

/// How often the kernel loads each element of a matrix.
int64_t timesLoaded(const Program &program, const Loops &loops, bool held, int32_t buffer) {
  auto loadsIt = [&](const Loop &loop) { return loads(program, loop, buffer); };
  auto readsIt = [&](const Loop &loop) { return loadsIt(loop) || reloads(program, loop, buffer); };
  // Held vectors are known once they are loaded, or stored.
  if (held)
    return std::ranges::any_of(loops.loops, loadsIt) ? 1 : 0;
  return std::ranges::count_if(loops.loops, readsIt);
}

bool isRead(const Program &program, const Loops &loops, int32_t buffer, NodeKind kind) {
  for (size_t id = 0; id < program.nodes.size(); ++id)
    if (loops.live[id] && program.nodes[id].kind == kind && program.nodes[id].buffer == buffer)
      return true;
  return false;
}

int64_t stores(const Program &program, int32_t buffer, EffectKind kind) {
  return std::ranges::count_if(program.effects, [&](const Effect &effect) {
    return effect.buffer == buffer && effect.kind == kind;
  });
}

BufferTraffic matrixTraffic(const Program &program, const Loops &loops, const RowReuse &reuse,
                            int64_t extent, int32_t buffer) {
  int64_t size = byteSize(program.buffers[buffer].dtype);
  int64_t bytes = extent * (program.flat ? 1 : program.columns) * size;
  int64_t once = timesLoaded(program, loops, /*held=*/true, buffer);
  int64_t again = timesLoaded(program, loops, /*held=*/false, buffer) - once;
  BufferTraffic traffic;
  traffic.read = once * bytes;
  if (reuse.againFromCache)
    traffic.cached = reuse.columnsAgain > 0 && again > 0;
  else
    traffic.read += again * reuse.columnsAgain * extent * size;
  int64_t times = stores(program, buffer, EffectKind::store);
  traffic.written = times * bytes;
  // The compiler leaves out a store where it sees that a later one is to the same place.
  traffic.atMost = times > 1;
  if (isRead(program, loops, buffer,
             NodeKind::gather)) { // one element a row, which all its threads read
    traffic.cached = true;
    if (traffic.read == 0)
      traffic.read = extent * size;
  }
  return traffic;
}

/// Sums of columns: held ones are stored once a task, others are added to in memory row by row.
BufferTraffic partialTraffic(const Program &program, bool held, int64_t extent) {
  int64_t row = program.columns * byteSize(Dtype::f32);
  int64_t chunks = (extent + rowsPerTask - 1) / rowsPerTask * row;
  if (held)
    return {0, chunks};
  // At most: the compiler may hold some of them from row to row.
  return {extent * row, extent * row + chunks, /*cached=*/false, /*atMost=*/true};
}

BufferTraffic trafficOf(const Program &program, const Loops &loops, const RowReuse &reuse,
                        int64_t extent, int32_t index) {
  const Buffer &buffer = program.buffers[index];
  int64_t size = byteSize(buffer.dtype);
  auto shared = [&](int64_t elements) -> BufferTraffic {
    return {isRead(program, loops, index, NodeKind::load) ? elements * size : 0, 0, true};
  };
  switch (buffer.kind) {
  case BufferKind::matrix:
    return matrixTraffic(program, loops, reuse, extent, index);
  case BufferKind::column:
    return shared(program.columns);
  case BufferKind::scalar:
    return shared(1);
  case BufferKind::columnPartial:
    return partialTraffic(program, reuse.sums, extent);
  case BufferKind::row:
    if (int64_t times = stores(program, index, EffectKind::storeRow))
      return {0, times * extent * size};
    return shared(extent);
  }
  __builtin_unreachable();
}

} // namespace

KernelWork rowWork(const Program &program, int64_t extent, const RowReuse &reuse) {
  Loops loops = splitIntoLoops(program);
  KernelWork work;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    BufferTraffic least = trafficOf(program, loops, {}, extent, static_cast<int32_t>(i));
    work.leastBytes += least.read + least.written;
    work.buffers.push_back(trafficOf(program, loops, reuse, extent, static_cast<int32_t>(i)));
  }
  work.leastFlops = flops(program, loops, extent, /*again=*/false);
  work.flops = flops(program, loops, extent, /*again=*/!reuse.computes);
  if (reuse.columnsAgain > 0)
    work.reason =
        llvm::formatv("{0} of a row's {1} columns fit neither registers nor shared memory, and are "
                      "read again by each loop{2}",
                      reuse.columnsAgain, program.columns,
                      reuse.againFromCache ? ", from the second-level cache" : "");
  else if (!reuse.computes)
    work.reason = "what several loops of a row need is computed by each";
  return work;
}

KernelWork rowWork(const nn::ClusterProgram &cluster, const RowReuse &reuse) {
  KernelWork work = rowWork(cluster.program, cluster.extent, reuse);
  std::vector<BufferTraffic> ofProgram = std::exchange(work.buffers, {});
  auto add = [&](int32_t buffer) {
    work.buffers.push_back(buffer < 0 ? BufferTraffic() : ofProgram[buffer]);
  };
  llvm::for_each(cluster.operandBuffers, add);
  llvm::for_each(cluster.resultBuffers, add);
  return work;
}

} // namespace gradc::codegen
