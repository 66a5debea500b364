// See Streams.h.
#include "passes/memory/Streams.h"
#include "ir/Nn.h"
#include "passes/memory/JoinedLaunches.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

int64_t assignedStream(Operation *op) {
  auto stream = op->getAttrOfType<IntegerAttr>(streamAttr);
  return stream ? stream.getInt() : 0;
}

bool isCommand(Operation &op) {
  auto fusion = dyn_cast<FusionOpInterface>(op);
  return fusion && fusion.getFusionRole() != FusionRole::view &&
         fusion.getFusionRole() != FusionRole::constant;
}

Operation *lastBeside(Operation *op) {
  int64_t left = streamOverlap;
  IntegerAttr launch;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (isa<MicrobatchesOp>(next) || next->hasTrait<OpTrait::IsTerminator>())
      return next;
    if (!isCommand(*next) || assignedStream(next) != 0)
      continue;
    IntegerAttr group = joinedGroup(next); // one launch is one command
    if (!(group && group == launch) && --left == 0)
      return next;
    launch = group;
  }
  return op;
}

} // namespace gradc
