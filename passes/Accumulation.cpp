// See Accumulation.h.
#include "passes/Accumulation.h"

#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

/// One microbatch of what is stacked.
static RankedTensorType sliceOf(Type stacked) {
  auto type = cast<RankedTensorType>(stacked);
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

RankedTensorType Accumulation::stacked(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape{microbatches};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

SmallVector<Value> Accumulation::run(ProgramBuilder &program, ValueRange values,
                                     const StepInputs &inputs, Value scale, Value &valid) const {
  OpBuilder &b = program.builder;
  Location loc = program.location();
  valid = CountValidOp::create(b, loc, inputs.batch[1]);
  Value one = splat(b, loc, valid.getType(), 1);
  Value share = DivOp::create(b, loc, one, valid);
  Value seed = scale ? MulOp::create(b, loc, share, scale).getResult() : share;
  SmallVector<Value> sums =
      microbatches == 1 ? runOnce(b, values, inputs, seed) : runAll(b, loc, values, inputs, seed);
  sums[0] = MulOp::create(b, loc, sums[0], share);
  return sums;
}

/// Forward and backward of one microbatch; `seed` is the loss's gradient.
SmallVector<Value> Accumulation::call(OpBuilder &b, ValueRange values, ArrayRef<Value> batch,
                                      ArrayRef<Value> shared, Value seed) const {
  SmallVector<Value> arguments(values);
  llvm::append_range(arguments, batch.take_front(2));
  llvm::append_range(arguments, shared);
  llvm::append_range(arguments, batch.drop_front(2));
  arguments.push_back(seed);
  return inlineCall(b, lossAndGradients, arguments);
}

SmallVector<Value> Accumulation::runOnce(OpBuilder &b, ValueRange values, const StepInputs &inputs,
                                         Value seed) const {
  SmallVector<Value> flat = llvm::map_to_vector(inputs.batch, [&](Value stacked) -> Value {
    return ReshapeOp::create(b, stacked.getLoc(), sliceOf(stacked.getType()), stacked);
  });
  return call(b, values, flat, inputs.shared, seed);
}

SmallVector<Value> Accumulation::runAll(OpBuilder &b, Location loc, ValueRange values,
                                        const StepInputs &inputs, Value seed) const {
  func::FuncOp function = lossAndGradients;
  SmallVector<Type> types(function.getResultTypes());
  SmallVector<Value> initial =
      llvm::map_to_vector(types, [&](Type type) -> Value { return splat(b, loc, type, 0); });
  auto loop = MicrobatchesOp::create(b, loc, types, inputs.batch, initial);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&loop.getBody());
  SmallVector<Value> slices, carried;
  for (Value stacked : inputs.batch)
    slices.push_back(body->addArgument(sliceOf(stacked.getType()), loc));
  for (Type type : types)
    carried.push_back(body->addArgument(type, loc));
  SmallVector<Value> fresh = call(b, values, slices, inputs.shared, seed);
  for (auto [i, value] : llvm::enumerate(fresh))
    carried[i] = i <= gradients ? AddOp::create(b, loc, carried[i], value).getResult()
                                : MaximumOp::create(b, loc, carried[i], value).getResult();
  YieldOp::create(b, loc, carried);
  return llvm::to_vector_of<Value>(loop.getResults());
}
