// Where operands live: constants, copies and fills; and what a loop over microbatches carries.
#include "mlir/IR/Matchers.h"
#include "passes/memory/StorageAssigner.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

namespace {
/// Constants up to this size are data of the executable; larger splats are filled where needed.
constexpr int64_t largestSplatConstant = 4096;
} // namespace

FailureOr<Storage> StorageAssigner::read(Value value, int64_t at) {
  if (auto found = storageOf.find(value); found != storageOf.end())
    return found->second;
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return emitError(value.getLoc(), "expected a value with storage");
  if (elements.isSplat() && byteSize(value.getType()) > largestSplatConstant) {
    Storage storage = arenaStorage(value.getType(), at);
    bind(value, storage);
    if (failed(fill(elements, value.getType(), storage, at)))
      return failure();
    return storage;
  }
  Storage storage{newBuffer(Space::constant, byteSize(value.getType()),
                            constants.add(cast<ElementsAttr>(elements)), at),
                  0, 0, 0};
  bind(value, storage);
  return storage;
}

FailureOr<Storage> StorageAssigner::contiguousCopy(Value value, Storage source, int64_t at) {
  Storage packed = arenaStorage(value.getType(), at);
  if (failed(copy(value.getType(), source, packed, at)))
    return failure();
  return packed;
}

LogicalResult StorageAssigner::copy(Type type, Storage source, Storage target, int64_t at) {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToEnd(out.scratch.get());
  Value input = out.scratch->addArgument(type, function.getLoc());
  auto fused = FusedOp::create(builder, function.getLoc(), TypeRange{type}, ValueRange{input});
  Block *body = builder.createBlock(&fused.getBody());
  Value inner = body->addArgument(type, function.getLoc());
  YieldOp::create(builder, function.getLoc(), inner);
  return launchScratch(fused, {source}, target, at);
}

LogicalResult StorageAssigner::fill(DenseElementsAttr value, Type type, Storage target,
                                    int64_t at) {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToEnd(out.scratch.get());
  auto fused = FusedOp::create(builder, function.getLoc(), TypeRange{type}, ValueRange{});
  builder.createBlock(&fused.getBody());
  Value constant = ConstantOp::create(builder, function.getLoc(), cast<ElementsAttr>(value));
  YieldOp::create(builder, function.getLoc(), constant);
  return launchScratch(fused, {}, target, at);
}

LogicalResult StorageAssigner::launchScratch(FusedOp fused, ArrayRef<Storage> operands,
                                             Storage target, int64_t at) {
  Command command;
  command.op = fused;
  command.operands.assign(operands.begin(), operands.end());
  command.results.push_back(target);
  for (const Storage &storage : command.operands)
    extend(storage.buffer, at);
  extend(target.buffer, at);
  return finish(std::move(command), at);
}

LogicalResult StorageAssigner::placeLoop(MicrobatchesOp loop) {
  int64_t begin = lifetimes.index(loop), end = lifetimes.loopEnd(loop);
  Block &body = loop.getBody().front();
  unsigned sliced = loop.getSliced().size();
  for (auto [i, value] : llvm::enumerate(loop.getSliced())) {
    FailureOr<Storage> storage = read(value, begin);
    if (failed(storage))
      return failure();
    storage->loopStride = byteSize(body.getArgument(i).getType());
    out.loopCount = cast<RankedTensorType>(value.getType()).getShape().front();
    bind(body.getArgument(i), *storage);
  }
  SmallVector<Storage> carried;
  for (auto [i, initial] : llvm::enumerate(loop.getInitial())) {
    Storage storage = arenaStorage(initial.getType(), begin);
    extend(storage.buffer, end);
    carried.push_back(storage);
    DenseElementsAttr splat;
    bool isSplat = matchPattern(initial, m_Constant(&splat)) && splat.isSplat();
    FailureOr<Storage> source = isSplat ? FailureOr<Storage>(storage) : read(initial, begin);
    if (failed(source) || failed(isSplat ? fill(splat, initial.getType(), storage, begin)
                                         : copy(initial.getType(), *source, storage, begin)))
      return failure();
    bind(body.getArgument(sliced + i), storage);
  }
  commands = &out.body;
  for (Operation &op : body.without_terminator())
    if (failed(place(op)))
      return failure();
  for (auto [value, storage] : llvm::zip(body.getTerminator()->getOperands(), carried)) {
    FailureOr<Storage> source = read(value, end);
    if (failed(source) ||
        (!(*source == storage) && failed(copy(value.getType(), *source, storage, end))))
      return failure();
  }
  // Only now: a result that is read later would keep the body from writing in place.
  for (auto [result, storage] : llvm::zip(loop.getResults(), carried))
    bind(result, storage);
  commands = &out.after;
  return success();
}

} // namespace gradc
