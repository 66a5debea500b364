// Where every value of a program lives: buffers, slots, and what the program returns.
#include "ir/row/Loops.h"
#include "mlir/IR/Matchers.h"
#include "passes/memory/StorageAssigner.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

FailureOr<ProgramStorage> StorageAssigner::run() {
  Block &body = function.getBody().front();
  bindArguments(body);
  bindReturned(body.getTerminator());
  commands = &out.before;
  for (Operation &op : body.without_terminator())
    if (failed(place(op)))
      return failure();
  if (failed(storeReturned(body.getTerminator())))
    return failure();
  closeLifespans();
  return std::move(out);
}

int32_t StorageAssigner::newBuffer(Space space, int64_t size, int64_t offset, int64_t at) {
  out.buffers.push_back({space, size, at, at + 1, offset});
  occupants.emplace_back();
  return static_cast<int32_t>(out.buffers.size()) - 1;
}

Storage StorageAssigner::arenaStorage(Type type, int64_t at, int64_t rowStride) {
  return {newBuffer(Space::arena, paddedBytes(type, rowStride), 0, at), 0, rowStride, 0};
}

int64_t StorageAssigner::paddedStride(Type type) const {
  constexpr int64_t longRow = 1024; // accesses, so that padding is less than a thousandth
  auto tensor = cast<RankedTensorType>(type);
  int64_t access = library.accessBytes();
  if (tensor.getRank() != 2 || tensor.getEncoding() || access == 1)
    return 0;
  int64_t elementBytes = tensor.getElementTypeBitWidth() / 8;
  int64_t rowBytes = tensor.getShape().back() * elementBytes;
  if (rowBytes < longRow * access || rowBytes % access == 0)
    return 0;
  return llvm::alignTo(rowBytes, access) / elementBytes;
}

Storage StorageAssigner::slotStorage(DictionaryAttr slot, DictionaryAttr parameter, Type type) {
  const StateSlot &placed = state.add(slot, parameter, cast<RankedTensorType>(type));
  auto [entry, isNew] = slotBuffers.try_emplace(slot, -1);
  if (isNew)
    entry->second = newBuffer(Space::state, byteSize(type), placed.offset, 0);
  return {entry->second, 0, 0, 0};
}

void StorageAssigner::bind(Value value, Storage storage) {
  storageOf[value] = storage;
  occupants[storage.buffer].push_back(value);
}

void StorageAssigner::bindArguments(Block &body) {
  for (unsigned i = 0; i < body.getNumArguments(); ++i) {
    auto slot = function.getArgAttrOfType<DictionaryAttr>(i, "nn.slot");
    auto parameter = function.getArgAttrOfType<DictionaryAttr>(i, "nn.param");
    bind(body.getArgument(i), slotStorage(slot, parameter, body.getArgument(i).getType()));
  }
}

void StorageAssigner::bindReturned(Operation *terminator) {
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto slot = function.getResultAttrOfType<DictionaryAttr>(operand.getOperandNumber(), "nn.slot");
    StringRef role = slot.getAs<StringAttr>("role").getValue();
    if ((role == "output" && operand.get().hasOneUse()) ||
        (role == "low_parameter" && isReadBefore(slot, operand.get())))
      wanted.try_emplace(operand.get(), slotStorage(slot, {}, operand.get().getType()));
  }
}

bool StorageAssigner::isReadBefore(DictionaryAttr slot, Value value) {
  if (!value.getDefiningOp())
    return false;
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), "nn.slot") == slot)
      return lifetimes.lastUse(argument) < lifetimes.index(value.getDefiningOp());
  return true;
}

LogicalResult StorageAssigner::storeReturned(Operation *terminator) {
  int64_t at = lifetimes.end();
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = operand.get();
    auto slot = function.getResultAttrOfType<DictionaryAttr>(operand.getOperandNumber(), "nn.slot");
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

LogicalResult StorageAssigner::finish(Command command, int64_t at) {
  if (command.isGemm) {
    command.workspaceBytes = gemmWorkspace(cast<ProductOpInterface>(command.op));
  } else {
    command.rowStrides = strides(command);
    command.alignments = alignments(command);
    FailureOr<KernelGeometry> geometry = library.geometry(command.op, command.layout());
    if (failed(geometry))
      return failure();
    command.geometry = *geometry;
    command.work = library.work(command.op, command.layout());
    command.workspaceBytes = geometry->workspaceBytes;
  }
  if (command.workspaceBytes > 0)
    command.workspace = workspace(command.workspaceBytes, at);
  command.stream = beside.stream;
  if (beside.stream != 0)
    keepBeside(command);
  commands->push_back(std::move(command));
  return success();
}

int32_t StorageAssigner::workspace(int64_t bytes, int64_t at) {
  if (beside.stream == 0)
    return newBuffer(Space::arena, bytes, 0, at);
  if (out.besideWorkspace < 0)
    out.besideWorkspace = newBuffer(Space::arena, 0, 0, at);
  int64_t &size = out.buffers[out.besideWorkspace].size;
  size = std::max(size, bytes);
  extend(out.besideWorkspace, beside.until);
  return out.besideWorkspace;
}

void StorageAssigner::keepBeside(const Command &command) {
  for (const Storage &storage : llvm::concat<const Storage>(command.operands, command.results)) {
    extend(storage.buffer, beside.until);
    MemoryBuffer &buffer = out.buffers[storage.buffer];
    buffer.besideUntil = std::max(buffer.besideUntil, beside.until);
  }
}

int64_t StorageAssigner::gemmWorkspace(ProductOpInterface product) {
  auto left = cast<RankedTensorType>(product.getLhs().getType());
  auto result = cast<RankedTensorType>(product->getResult(0).getType());
  if (result.getRank() > 2)
    return 0;
  int64_t k = left.getShape()[product.getTransposeLhs() ? 0 : 1];
  return library.gemmWorkspaceBytes(result.getShape()[0], result.getShape()[1], k);
}

SmallVector<int64_t> StorageAssigner::strides(const Command &command) {
  SmallVector<int64_t> list;
  for (const Storage &storage : command.operands)
    list.push_back(storage.rowStride);
  for (const Storage &storage : command.results)
    list.push_back(storage.rowStride);
  list.resize(command.op->getNumOperands() + command.op->getNumResults(), 0);
  return list;
}

SmallVector<int64_t> StorageAssigner::alignments(const Command &command) const {
  int64_t access = library.accessBytes();
  if (access == 1)
    return {};
  SmallVector<int64_t> list;
  for (const Storage &storage : llvm::concat<const Storage>(command.operands, command.results))
    list.push_back(std::gcd(access, std::gcd(storage.offset, storage.loopStride)));
  // What is read an element at a time may lie anywhere, and is no reason for a kernel of its own.
  if (auto fused = dyn_cast<FusedOp>(command.op)) {
    ClusterProgram cluster = buildClusterProgram(fused, command.rowStrides);
    for (auto [alignment, buffer] : llvm::zip_equal(
             list, llvm::concat<int32_t>(cluster.operandBuffers, cluster.resultBuffers)))
      if (buffer >= 0 && !row::isAlongColumns(cluster.program.buffers[buffer].kind))
        alignment = access;
  }
  bool isFull = llvm::all_of(list, [&](int64_t bytes) { return bytes == access; });
  return isFull ? SmallVector<int64_t>() : list;
}

void StorageAssigner::extend(int32_t buffer, int64_t at) {
  out.buffers[buffer].upper = std::max(out.buffers[buffer].upper, at + 1);
}

void StorageAssigner::closeLifespans() {
  for (auto [i, values] : llvm::enumerate(occupants))
    for (Value value : values)
      extend(static_cast<int32_t>(i), lifetimes.lastUse(value));
}

FailureOr<ProgramStorage> assignStorage(func::FuncOp function, StateLayout &state,
                                        ConstantLayout &constants, const KernelLibrary &library,
                                        int64_t streams) {
  return StorageAssigner(function, state, constants, library, streams).run();
}

} // namespace gradc
