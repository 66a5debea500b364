// Where every value of a program lives, and the commands that result.
#include "passes/memory/Storage.h"
#include "ir/Cluster.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// Constants up to this size are data of the executable; larger splats are filled where needed.
constexpr int64_t largestSplatConstant = 4096;

class StorageAssigner {
public:
  StorageAssigner(func::FuncOp function, StateLayout &state, ConstantLayout &constants,
                  const KernelLibrary &library)
      : function(function), state(state), constants(constants), library(library),
        lifetimes(function) {
    out.function = function;
  }

  FailureOr<ProgramStorage> run() {
    Block &body = function.getBody().front();
    bindArguments(body);
    bindReturned(body.getTerminator());
    stream = &out.before;
    for (Operation &op : body.without_terminator())
      if (failed(place(op)))
        return failure();
    if (failed(storeReturned(body.getTerminator())))
      return failure();
    closeLifespans();
    return std::move(out);
  }

private:
  //===-- buffers
  //--------------------------------------------------------------------------------===//

  int32_t newBuffer(Space space, int64_t size, int64_t offset, int64_t at) {
    out.buffers.push_back({space, size, at, at + 1, offset});
    occupants.emplace_back();
    return static_cast<int32_t>(out.buffers.size()) - 1;
  }
  Storage arenaStorage(Type type, int64_t at) {
    return {newBuffer(Space::arena, byteSize(type), 0, at), 0, 0, 0};
  }
  Storage slotStorage(DictionaryAttr slot, DictionaryAttr parameter, Type type) {
    const StateSlot &placed = state.add(slot, parameter, cast<RankedTensorType>(type));
    auto [entry, isNew] = slotBuffers.try_emplace(slot, -1);
    if (isNew)
      entry->second = newBuffer(Space::state, byteSize(type), placed.offset, 0);
    return {entry->second, 0, 0, 0};
  }
  void bind(Value value, Storage storage) {
    storageOf[value] = storage;
    occupants[storage.buffer].push_back(value);
  }

  void bindArguments(Block &body) {
    for (unsigned i = 0; i < body.getNumArguments(); ++i) {
      auto slot = function.getArgAttrOfType<DictionaryAttr>(i, "nn.slot");
      auto parameter = function.getArgAttrOfType<DictionaryAttr>(i, "nn.param");
      bind(body.getArgument(i), slotStorage(slot, parameter, body.getArgument(i).getType()));
    }
  }

  /// Outputs are written straight to their slots where an op of this function makes them; so are
  /// low copies of parameters, which nothing reads once the optimizer runs.
  void bindReturned(Operation *terminator) {
    for (OpOperand &operand : terminator->getOpOperands()) {
      auto slot =
          function.getResultAttrOfType<DictionaryAttr>(operand.getOperandNumber(), "nn.slot");
      StringRef role = slot.getAs<StringAttr>("role").getValue();
      if ((role == "output" || (role == "low_parameter" && isReadBefore(slot, operand.get()))) &&
          operand.get().hasOneUse())
        wanted.try_emplace(operand.get(), slotStorage(slot, {}, operand.get().getType()));
    }
  }

  /// Whether the slot's old value is read for the last time before `value` is made.
  bool isReadBefore(DictionaryAttr slot, Value value) {
    if (!value.getDefiningOp())
      return false;
    for (BlockArgument argument : function.getArguments())
      if (function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), "nn.slot") == slot)
        return lifetimes.lastUse(argument) < lifetimes.index(value.getDefiningOp());
    return true;
  }

  //===-- ops
  //------------------------------------------------------------------------------------===//

  LogicalResult place(Operation &op) {
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

  LogicalResult placeView(Operation &op) {
    if (auto concat = dyn_cast<ConcatOp>(op))
      return placeConcat(concat);
    FailureOr<Storage> source = read(op.getOperand(0), lifetimes.index(&op));
    if (failed(source))
      return failure();
    if (auto slice = dyn_cast<SliceOp>(op)) {
      auto wide = cast<RankedTensorType>(slice.getInput().getType());
      source->offset += slice.getOffset() * wide.getElementTypeBitWidth() / 8;
      source->rowStride = source->rowStride ? source->rowStride : wide.getShape().back();
    } else if (isa<TransposeOp>(op)) {
      return op.emitOpError("expected a matrix product to absorb this transpose; give the product "
                            "that reads it transpose_lhs or transpose_rhs");
    } else if (source->rowStride) { // a reshape of a slice: only rows may be regrouped
      if (rowSpaceOf(op.getOperand(0).getType()).columns !=
          rowSpaceOf(op.getResult(0).getType()).columns) {
        FailureOr<Storage> packed = contiguousCopy(op.getOperand(0), *source, lifetimes.index(&op));
        if (failed(packed))
          return failure();
        source = packed;
      }
    }
    bind(op.getResult(0), *source);
    return success();
  }

  /// The concat's buffer is made by the first operand that is written into it.
  LogicalResult placeConcat(ConcatOp op) {
    int64_t at = lifetimes.index(op);
    Storage whole = concatStorage(op, at);
    for (auto [i, input] : llvm::enumerate(op.getInputs())) {
      Storage part = concatPart(op, i, whole);
      auto found = storageOf.find(input);
      if (found != storageOf.end() && found->second == part)
        continue;
      if (DenseElementsAttr splat; matchPattern(input, m_Constant(&splat)) && splat.isSplat()) {
        if (failed(fill(splat, input.getType(), part, at)))
          return failure();
        continue;
      }
      FailureOr<Storage> source = read(input, at);
      if (failed(source) || failed(copy(input.getType(), *source, part, at)))
        return failure();
    }
    bind(op.getResult(), whole);
    return success();
  }

  Storage concatStorage(ConcatOp op, int64_t at) {
    auto [entry, isNew] = concatBuffers.try_emplace(op, Storage());
    if (isNew)
      entry->second = arenaStorage(op.getType(), at);
    return entry->second;
  }

  static Storage concatPart(ConcatOp op, size_t part, Storage whole) {
    auto type = cast<RankedTensorType>(op.getType());
    for (Value input : op.getInputs().take_front(part))
      whole.offset += rowSpaceOf(input.getType()).columns * type.getElementTypeBitWidth() / 8;
    whole.rowStride = type.getShape().back();
    return whole;
  }

  LogicalResult placeCommand(Operation &op, FusionOpInterface fusion) {
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

  bool acceptsStride(FusionOpInterface fusion, unsigned index, bool isResult) {
    auto fused = dyn_cast<FusedOp>(fusion.getOperation());
    if (!fused)
      return fusion.takesRowStride(index, isResult);
    ClusterProgram cluster = buildClusterProgram(fused);
    int32_t buffer = isResult ? cluster.resultBuffers[index] : cluster.operandBuffers[index];
    return cluster.program.buffers[buffer].kind == row::BufferKind::matrix;
  }

  //===-- results
  //--------------------------------------------------------------------------------===//

  Storage chooseResult(Command &command, FusionOpInterface fusion, OpResult result, int64_t at) {
    if (auto found = wanted.find(result); found != wanted.end())
      return found->second;
    if (std::optional<Storage> part = partOfConcat(fusion, result, at))
      return *part;
    if (std::optional<Storage> taken = takeOver(command, fusion, result, at))
      return *taken;
    return arenaStorage(result.getType(), at);
  }

  /// A result that only a concat of this block uses is written into the concat's buffer.
  std::optional<Storage> partOfConcat(FusionOpInterface fusion, OpResult result, int64_t at) {
    if (!result.hasOneUse() || !acceptsStride(fusion, result.getResultNumber(), true))
      return std::nullopt;
    OpOperand &use = *result.getUses().begin();
    auto concat = dyn_cast<ConcatOp>(use.getOwner());
    if (!concat || concat->getBlock() != result.getOwner()->getBlock())
      return std::nullopt;
    return concatPart(concat, use.getOperandNumber(), concatStorage(concat, at));
  }

  /// The storage of an operand that dies here and that the op may overwrite.
  std::optional<Storage> takeOver(Command &command, FusionOpInterface fusion, OpResult result,
                                  int64_t at) {
    for (unsigned i = 0; i < result.getOwner()->getNumOperands(); ++i) {
      const Storage &storage = command.operands[i];
      Value operand = result.getOwner()->getOperand(i);
      if (storage.buffer < 0 || byteSize(operand.getType()) != byteSize(result.getType()) ||
          storage.rowStride || storage.offset || storage.loopStride ||
          llvm::is_contained(command.results, storage) ||
          llvm::count(command.operands, storage) != 1 || !mayOverwrite(command, fusion, i, result))
        continue;
      const MemoryBuffer &buffer = out.buffers[storage.buffer];
      bool ownSlot = buffer.space == Space::state && returnsTo(result, storage.buffer);
      if ((buffer.space != Space::arena && !ownSlot) || buffer.size != byteSize(result.getType()) ||
          !allDeadAfter(storage.buffer, at))
        continue;
      return storage;
    }
    return std::nullopt;
  }

  bool mayOverwrite(Command &command, FusionOpInterface fusion, unsigned operand, OpResult result) {
    auto fused = dyn_cast<FusedOp>(result.getOwner());
    if (!fused)
      return fusion.getInPlaceOperand(result.getResultNumber()) == static_cast<int64_t>(operand);
    ClusterProgram cluster = buildClusterProgram(fused, strides(command));
    return cluster.operandBuffers[operand] >= 0 &&
           row::mayAlias(cluster.program, cluster.operandBuffers[operand],
                         cluster.resultBuffers[result.getResultNumber()]);
  }

  bool returnsTo(OpResult result, int32_t buffer) {
    for (OpOperand &use : result.getUses())
      if (isa<func::ReturnOp>(use.getOwner())) {
        auto slot = function.getResultAttrOfType<DictionaryAttr>(use.getOperandNumber(), "nn.slot");
        auto found = slotBuffers.find(slot);
        if (found != slotBuffers.end() && found->second == buffer)
          return true;
      }
    return false;
  }

  bool allDeadAfter(int32_t buffer, int64_t at) {
    return llvm::all_of(occupants[buffer],
                        [&](Value value) { return lifetimes.lastUse(value) <= at; });
  }

  /// An op that adds to its accumulator finds it in its result's memory.
  LogicalResult seedAccumulator(Command &command, FusionOpInterface fusion, int64_t at) {
    int64_t accumulator = fusion.getAccumulatorOperand();
    if (accumulator < 0 || command.operands[accumulator] == command.results[0])
      return success();
    return copy(command.op->getOperand(accumulator).getType(), command.operands[accumulator],
                command.results[0], at);
  }

  //===-- operands
  //-------------------------------------------------------------------------------===//

  /// Storage of a value that a command reads; constants are placed now. Immediates of row programs
  /// never come here: fusion moved them into the clusters.
  FailureOr<Storage> read(Value value, int64_t at) {
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

  FailureOr<Storage> contiguousCopy(Value value, Storage source, int64_t at) {
    Storage packed = arenaStorage(value.getType(), at);
    if (failed(copy(value.getType(), source, packed, at)))
      return failure();
    return packed;
  }

  LogicalResult copy(Type type, Storage source, Storage target, int64_t at) {
    OpBuilder builder(function.getContext());
    builder.setInsertionPointToEnd(out.scratch.get());
    Value input = out.scratch->addArgument(type, function.getLoc());
    auto fused = FusedOp::create(builder, function.getLoc(), TypeRange{type}, ValueRange{input});
    Block *body = builder.createBlock(&fused.getBody());
    Value inner = body->addArgument(type, function.getLoc());
    YieldOp::create(builder, function.getLoc(), inner);
    return launchScratch(fused, {source}, target, at);
  }

  LogicalResult fill(DenseElementsAttr value, Type type, Storage target, int64_t at) {
    OpBuilder builder(function.getContext());
    builder.setInsertionPointToEnd(out.scratch.get());
    auto fused = FusedOp::create(builder, function.getLoc(), TypeRange{type}, ValueRange{});
    builder.createBlock(&fused.getBody());
    Value constant = ConstantOp::create(builder, function.getLoc(), cast<ElementsAttr>(value));
    YieldOp::create(builder, function.getLoc(), constant);
    return launchScratch(fused, {}, target, at);
  }

  LogicalResult launchScratch(FusedOp fused, ArrayRef<Storage> operands, Storage target,
                              int64_t at) {
    Command command;
    command.op = fused;
    command.operands.assign(operands.begin(), operands.end());
    command.results.push_back(target);
    for (const Storage &storage : command.operands)
      extend(storage.buffer, at);
    extend(target.buffer, at);
    return finish(std::move(command), at);
  }

  //===-- the loop
  //-------------------------------------------------------------------------------===//

  LogicalResult placeLoop(MicrobatchesOp loop) {
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
    stream = &out.body;
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
    stream = &out.after;
    return success();
  }

  //===-- the end
  //--------------------------------------------------------------------------------===//

  LogicalResult storeReturned(Operation *terminator) {
    int64_t at = lifetimes.end();
    for (OpOperand &operand : terminator->getOpOperands()) {
      Value value = operand.get();
      auto slot =
          function.getResultAttrOfType<DictionaryAttr>(operand.getOperandNumber(), "nn.slot");
      FailureOr<Storage> source = read(value, at);
      if (failed(source))
        return failure();
      // Gradients stay where they are, to the end of the program.
      bool stays = slot.getAs<StringAttr>("role").getValue() == "gradient";
      Storage target = stays ? *source : slotStorage(slot, {}, value.getType());
      if (stays && (source->rowStride || out.buffers[source->buffer].space != Space::arena)) {
        FailureOr<Storage> packed = contiguousCopy(value, *source, at);
        if (failed(packed))
          return failure();
        target = *packed;
      } else if (!(target == *source) && failed(copy(value.getType(), *source, target, at))) {
        return failure();
      }
      extend(target.buffer, at);
      out.returned.push_back(target);
    }
    return success();
  }

  LogicalResult finish(Command command, int64_t at) {
    if (command.isGemm) {
      command.workspaceBytes = gemmWorkspace(cast<MatmulOp>(command.op));
    } else {
      FailureOr<KernelGeometry> geometry = library.geometry(command.op, strides(command));
      if (failed(geometry))
        return failure();
      command.geometry = *geometry;
      command.workspaceBytes = geometry->workspaceBytes;
    }
    if (command.workspaceBytes > 0)
      command.workspace = newBuffer(Space::arena, command.workspaceBytes, 0, at);
    stream->push_back(std::move(command));
    return success();
  }

  int64_t gemmWorkspace(MatmulOp op) {
    auto left = cast<RankedTensorType>(op.getLhs().getType());
    auto result = cast<RankedTensorType>(op.getType());
    if (result.getRank() > 2)
      return 0;
    int64_t k = left.getShape()[op.getTransposeLhs() ? 0 : 1];
    return library.gemmWorkspaceBytes(result.getShape()[0], result.getShape()[1], k);
  }

  static SmallVector<int64_t> strides(const Command &command) {
    SmallVector<int64_t> list;
    for (const Storage &storage : command.operands)
      list.push_back(storage.rowStride);
    for (const Storage &storage : command.results)
      list.push_back(storage.rowStride);
    list.resize(command.op->getNumOperands() + command.op->getNumResults(), 0);
    return list;
  }

  void extend(int32_t buffer, int64_t at) {
    out.buffers[buffer].upper = std::max(out.buffers[buffer].upper, at + 1);
  }

  /// A buffer lives until the last use of whatever was in it.
  void closeLifespans() {
    for (auto [i, values] : llvm::enumerate(occupants))
      for (Value value : values)
        extend(static_cast<int32_t>(i), lifetimes.lastUse(value));
  }

  func::FuncOp function;
  StateLayout &state;
  ConstantLayout &constants;
  const KernelLibrary &library;
  Lifetimes lifetimes;
  ProgramStorage out;
  SmallVector<Command> *stream = nullptr;
  DenseMap<Value, Storage> storageOf;
  DenseMap<Value, Storage> wanted;
  DenseMap<Attribute, int32_t> slotBuffers;
  DenseMap<Operation *, Storage> concatBuffers;
  std::vector<SmallVector<Value>> occupants; ///< values in each buffer
};

} // namespace

FailureOr<ProgramStorage> gradc::assignStorage(func::FuncOp function, StateLayout &state,
                                               ConstantLayout &constants,
                                               const KernelLibrary &library) {
  return StorageAssigner(function, state, constants, library).run();
}
