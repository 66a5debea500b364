// RowTeams: rows that are kept in shared memory from loop to loop. A thread finds there what it put
// there itself, as each loop gives it the same columns: no barrier is needed.
#include "codegen/gpu/RowTeams.h"
#include "ir/row/Cost.h"

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen::gpu {

/// Whether a loop loads or stores the buffer's row.
bool RowTeams::touches(size_t loop, int32_t buffer) const {
  const Loop &of = loops.loops[loop];
  bool stores = llvm::any_of(of.effects, [&](int32_t effect) {
    return program.effects[effect].kind == EffectKind::store &&
           program.effects[effect].buffer == buffer;
  });
  return stores || loads(program, of, buffer) || reloads(program, of, buffer);
}

Value RowTeams::keptAddress(const KeptRow &row, const Columns &columns, int64_t vector) {
  Dtype dtype = program.buffers[row.buffer].dtype;
  Value start =
      LLVM::GEPOp::create(k.builder(), k.location(), keptRows.getType(), k.builder().getI8Type(),
                          keptRows, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(row.offset)});
  Value first = k.v.elementPointer(dtype, start, columns.first);
  return k.v.elementPointer(dtype, first, vector * columns.stride);
}

void RowTeams::takeKept(const Vectors &by, size_t loop, const Columns &columns) {
  for (const KeptRow &row : schedule.kept) {
    auto known = [&](size_t earlier) { return touches(earlier, row.buffer); };
    bool isRead = loads(program, loops.loops[loop], row.buffer) ||
                  reloads(program, loops.loops[loop], row.buffer);
    if (!isRead || !llvm::any_of(llvm::seq<size_t>(0, loop), known))
      continue;
    Dtype dtype = program.buffers[row.buffer].dtype;
    for (int64_t u = 0; u < columns.vectors; ++u)
      (*columns.held)[{row.buffer, u}] =
          by.loadVector(dtype, keptAddress(row, columns, u), columns.mask(u));
  }
}

void RowTeams::keep(const Vectors &by, size_t loop, const Columns &columns) {
  for (const KeptRow &row : schedule.kept) {
    auto reads = [&](size_t later) {
      return loads(program, loops.loops[later], row.buffer) ||
             reloads(program, loops.loops[later], row.buffer);
    };
    bool isNeeded = llvm::any_of(llvm::seq<size_t>(loop + 1, loops.loops.size()), reads);
    if (!isNeeded || !touches(loop, row.buffer))
      continue;
    Dtype dtype = program.buffers[row.buffer].dtype;
    for (int64_t u = 0; u < columns.vectors; ++u)
      by.storeVector(dtype, columns.held->at({row.buffer, u}), keptAddress(row, columns, u),
                     columns.mask(u));
  }
}

} // namespace gradc::codegen::gpu
