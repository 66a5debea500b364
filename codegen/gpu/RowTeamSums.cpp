// RowTeams: sums of columns over a block's rows.
#include "codegen/gpu/RowTeams.h"

using namespace mlir;
using namespace gradc::row;

namespace gradc::codegen::gpu {

void RowTeams::zeroSums() {
  Values none;
  forSteps(none, [&](const Columns &columns, bool, MutableArrayRef<Value>) {
    for (int32_t effect : accumulations)
      for (int64_t u = 0; u < columns.vectors; ++u)
        k.v.storeVector(Dtype::f32, k.reals(0),
                        nodes.address(shared, program.effects[effect].buffer, columns, u),
                        columns.mask(u));
  });
}

/// Sums of a team's rows to those of the block's: vector after vector through shared memory, of
/// which two parts take turns, so that one barrier a vector is enough.
void RowTeams::storeSums(ArrayRef<Value> sums) {
  HeldVectors unused;
  Columns columns = heldColumns(unused);
  int64_t exchanged = k.threads() * schedule.lanes;
  Value parts = schedule.teams > 1 ? k.shared(2 * exchanged) : Value();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    auto index = static_cast<int64_t>(i);
    int64_t u = index % schedule.vectors;
    int32_t buffer = program.effects[accumulations[index / schedule.vectors]].buffer;
    auto store = [&](Value total) {
      k.v.storeVector(Dtype::f32, total, nodes.address(shared, buffer, columns, u),
                      columns.mask(u));
    };
    if (!parts) {
      store(sum);
      continue;
    }
    Value part = k.at(parts, index % 2 * exchanged);
    k.store(sum, k.at(part, k.mul(k.thread(), schedule.lanes)));
    k.barrier();
    k.ifTrue(k.equal(team, k.index(0)), [&] { store(addTeams(part)); });
  }
}

Value RowTeams::addTeams(Value part) {
  Value total;
  for (int64_t other = 0; other < schedule.teams; ++other) {
    Value place = k.at(k.at(part, other * schedule.stride()), k.mul(member, schedule.lanes));
    Value x = k.load(place);
    total = total ? k.v.add(total, x) : x;
  }
  return total;
}

} // namespace gradc::codegen::gpu
