// Counted loops.
#include "codegen/kernels/Loops.h"

using namespace mlir;

namespace gradc::codegen {

void emitLoop(OpBuilder &builder, Location loc, Value first, Value last, Value step,
              SmallVectorImpl<Value> &carried,
              function_ref<void(Value, SmallVectorImpl<Value> &)> body) {
  auto loop = scf::ForOp::create(builder, loc, first, last, step, carried,
                                 [&](OpBuilder &, Location, Value index, ValueRange current) {
                                   // `builder` must stand inside the loop for the body, which
                                   // prints through it.
                                   SmallVector<Value> values(current);
                                   OpBuilder::InsertionGuard guard(builder);
                                   builder.setInsertionPointToStart(index.getParentBlock());
                                   body(index, values);
                                   scf::YieldOp::create(builder, loc, values);
                                 });
  carried.assign(loop.getResults().begin(), loop.getResults().end());
}

} // namespace gradc::codegen
