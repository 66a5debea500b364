// Where the results of ops live: views, joins, commands and what they may overwrite.
#include "mlir/IR/Matchers.h"
#include "passes/memory/StorageAssigner.h"
#include "passes/memory/Streams.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

LogicalResult StorageAssigner::place(Operation &op) {
  int64_t stream = streams > 1 ? assignedStream(&op) : 0;
  llvm::SaveAndRestore restore(beside,
                               Beside{stream, stream != 0 ? lifetimes.index(lastBeside(&op)) : 0});
  if (auto loop = dyn_cast<MicrobatchesOp>(op))
    return placeLoop(loop);
  auto fusion = dyn_cast<FusionOpInterface>(op);
  if (!fusion)
    return op.emitOpError("expected an op of the nn dialect that takes part in fusion");
  switch (fusion.getFusionRole()) {
  case FusionRole::constant:
    return success(); // placed when a kernel reads it
  case FusionRole::view:
    return placeView(op);
  default:
    return placeCommand(op, fusion);
  }
}

LogicalResult StorageAssigner::placeView(Operation &op) {
  if (auto join = dyn_cast<JoinOpInterface>(op))
    return placeJoin(join);
  auto view = dyn_cast<ViewOpInterface>(op);
  if (!view)
    return op.emitOpError("expected a view that says where its result lies");
  int64_t at = lifetimes.index(&op);
  FailureOr<Storage> source = read(op.getOperand(0), at);
  if (succeeded(source) && source->rowStride &&
      !acceptsStride(cast<FusionOpInterface>(op), 0, false))
    source = contiguousCopy(op.getOperand(0), *source, at);
  if (failed(source))
    return failure();
  FailureOr<Place> place = view.getPlace(source->rowStride);
  if (failed(place))
    return failure();
  bind(op.getResult(0), partOf(*source, *place, op.getResult(0).getType()));
  return success();
}

Storage StorageAssigner::partOf(Storage whole, Place place, Type type) {
  whole.offset += place.offset * getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  whole.rowStride = place.rowStride;
  return whole;
}

LogicalResult StorageAssigner::placeJoin(JoinOpInterface join) {
  int64_t at = lifetimes.index(join);
  Storage whole = joinStorage(join, at);
  for (OpOperand &input : join->getOpOperands()) {
    Type type = input.get().getType();
    Storage part = partOf(whole, join.getPartPlace(input.getOperandNumber()), type);
    auto found = storageOf.find(input.get());
    if (found != storageOf.end() && found->second == part)
      continue;
    if (DenseElementsAttr splat; matchPattern(input.get(), m_Constant(&splat)) && splat.isSplat()) {
      if (failed(fill(splat, type, part, at)))
        return failure();
      continue;
    }
    FailureOr<Storage> source = read(input.get(), at);
    if (failed(source) || failed(copy(type, *source, part, at)))
      return failure();
  }
  bind(join->getResult(0), whole);
  return success();
}

Storage StorageAssigner::joinStorage(JoinOpInterface join, int64_t at) {
  auto [entry, isNew] = joinBuffers.try_emplace(join, Storage());
  if (isNew)
    entry->second = arenaStorage(join->getResult(0).getType(), at);
  return entry->second;
}

LogicalResult StorageAssigner::placeCommand(Operation &op, FusionOpInterface fusion) {
  int64_t at = lifetimes.index(&op);
  Command command;
  command.op = &op;
  command.isGemm = fusion.getFusionRole() == FusionRole::library && !library.emitsProduct(&op);
  for (OpOperand &operand : op.getOpOperands()) {
    FailureOr<Storage> storage = read(operand.get(), at);
    if (failed(storage))
      return failure();
    if (storage->rowStride && !acceptsStride(fusion, operand.getOperandNumber(), false)) {
      storage = contiguousCopy(operand.get(), *storage, at);
      if (failed(storage))
        return failure();
    }
    command.operands.push_back(*storage);
  }
  for (OpResult result : op.getResults()) {
    Storage storage = chooseResult(command, fusion, result, at);
    bind(result, storage);
    command.results.push_back(storage);
  }
  if (failed(seedAccumulator(command, fusion, at)))
    return failure();
  return finish(std::move(command), at);
}

bool StorageAssigner::acceptsStride(FusionOpInterface fusion, unsigned index, bool isResult) {
  auto fused = dyn_cast<FusedOp>(fusion.getOperation());
  if (!fused)
    return fusion.takesRowStride(index, isResult);
  ClusterProgram cluster = buildClusterProgram(fused);
  int32_t buffer = isResult ? cluster.resultBuffers[index] : cluster.operandBuffers[index];
  return cluster.program.buffers[buffer].kind == row::BufferKind::matrix;
}

Storage StorageAssigner::chooseResult(Command &command, FusionOpInterface fusion, OpResult result,
                                      int64_t at) {
  if (auto found = wanted.find(result); found != wanted.end())
    return found->second;
  if (std::optional<Storage> part = partOfJoin(fusion, result, at))
    return *part;
  if (std::optional<Storage> taken = takeOver(command, fusion, result))
    return *taken;
  int64_t stride = paddedStride(result.getType());
  return arenaStorage(result.getType(), at, stride && mayPad(fusion, result) ? stride : 0);
}

bool StorageAssigner::mayPad(FusionOpInterface fusion, OpResult result) {
  // A flat program does not see rows at all, which is better still than rows of whole vectors.
  auto seesRows = [](Operation *op) {
    auto fused = dyn_cast<FusedOp>(op);
    return !fused || !buildClusterProgram(fused).program.flat;
  };
  return seesRows(fusion) && acceptsStride(fusion, result.getResultNumber(), true) &&
         llvm::all_of(result.getUses(), [&](OpOperand &use) {
           auto reader = dyn_cast<FusionOpInterface>(use.getOwner());
           return reader && reader.getFusionRole() != FusionRole::view && seesRows(reader) &&
                  acceptsStride(reader, use.getOperandNumber(), false);
         });
}

std::optional<Storage> StorageAssigner::partOfJoin(FusionOpInterface fusion, OpResult result,
                                                   int64_t at) {
  if (!result.hasOneUse())
    return std::nullopt;
  OpOperand &use = *result.getUses().begin();
  auto join = dyn_cast<JoinOpInterface>(use.getOwner());
  if (!join || join->getBlock() != result.getOwner()->getBlock())
    return std::nullopt;
  Place place = join.getPartPlace(use.getOperandNumber());
  if (place.rowStride && !acceptsStride(fusion, result.getResultNumber(), true))
    return std::nullopt;
  return partOf(joinStorage(join, at), place, result.getType());
}

std::optional<Storage> StorageAssigner::takeOver(Command &command, FusionOpInterface fusion,
                                                 OpResult result) {
  std::optional<Storage> inArena;
  for (unsigned i = 0; i < result.getOwner()->getNumOperands(); ++i) {
    const Storage &storage = command.operands[i];
    if (!isFreeFor(command, fusion, i, result))
      continue;
    // What returns to a slot is written there, or a copy would have to follow.
    if (out.buffers[storage.buffer].space == Space::state)
      return storage;
    if (!inArena)
      inArena = storage;
  }
  return inArena;
}

bool StorageAssigner::isFreeFor(Command &command, FusionOpInterface fusion, unsigned index,
                                OpResult result) {
  const Storage &storage = command.operands[index];
  Value operand = result.getOwner()->getOperand(index);
  // Another operand may be a part of this one's memory, which rows yet to come read.
  auto isThere = [&](const Storage &other) { return other.buffer == storage.buffer; };
  bool isPadded = storage.rowStride != 0;
  if (byteSize(operand.getType()) != byteSize(result.getType()) ||
      (isPadded &&
       (storage.rowStride != paddedStride(result.getType()) || !mayPad(fusion, result))) ||
      storage.offset || storage.loopStride || llvm::any_of(command.results, isThere) ||
      llvm::count_if(command.operands, isThere) != 1 ||
      !mayOverwrite(command, fusion, index, result))
    return false;
  const MemoryBuffer &buffer = out.buffers[storage.buffer];
  bool ownSlot = buffer.space == Space::state && returnsTo(result, storage.buffer);
  return (buffer.space == Space::arena || ownSlot) &&
         buffer.size == paddedBytes(result.getType(), storage.rowStride) &&
         allDeadAfter(storage.buffer, result.getOwner());
}

bool StorageAssigner::mayOverwrite(Command &command, FusionOpInterface fusion, unsigned operand,
                                   OpResult result) {
  auto fused = dyn_cast<FusedOp>(result.getOwner());
  if (!fused)
    return fusion.getInPlaceOperand(result.getResultNumber()) == static_cast<int64_t>(operand);
  SmallVector<int64_t> taken = strides(command);
  taken[fused->getNumOperands() + result.getResultNumber()] = taken[operand];
  ClusterProgram cluster = buildClusterProgram(fused, taken);
  return cluster.operandBuffers[operand] >= 0 &&
         row::mayAlias(cluster.program, cluster.operandBuffers[operand],
                       cluster.resultBuffers[result.getResultNumber()]);
}

bool StorageAssigner::returnsTo(OpResult result, int32_t buffer) {
  for (OpOperand &use : result.getUses())
    if (isa<func::ReturnOp>(use.getOwner())) {
      auto slot = function.getResultAttrOfType<DictionaryAttr>(use.getOperandNumber(), "nn.slot");
      auto found = slotBuffers.find(slot);
      if (found != slotBuffers.end() && found->second == buffer)
        return true;
    }
  return false;
}

bool StorageAssigner::allDeadAfter(int32_t buffer, Operation *op) {
  int64_t at = lifetimes.index(op);
  // Of the state no place is kept for it: what is overwritten there waits.
  const MemoryBuffer &memory = out.buffers[buffer];
  if (beside.stream == 0 && memory.space == Space::arena && memory.besideUntil >= at)
    return false;
  // Ops of one launch run at the same time: another of them must not read it either.
  auto isAnotherThen = [&](Operation *user) { return user != op && lifetimes.index(user) == at; };
  return llvm::all_of(occupants[buffer], [&](Value value) {
    return lifetimes.lastUse(value) <= at && llvm::none_of(value.getUsers(), isAnotherThen);
  });
}

LogicalResult StorageAssigner::seedAccumulator(Command &command, FusionOpInterface fusion,
                                               int64_t at) {
  int64_t accumulator = fusion.getAccumulatorOperand();
  if (accumulator < 0 || command.operands[accumulator] == command.results[0])
    return success();
  return copy(command.op->getOperand(accumulator).getType(), command.operands[accumulator],
              command.results[0], at);
}

} // namespace gradc
