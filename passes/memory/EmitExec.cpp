// From placed programs to the exec dialect.
#include "passes/memory/EmitExec.h"
#include "passes/memory/JoinedLaunches.h"
#include "passes/memory/KernelSignature.h"
#include "passes/memory/Streams.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// A name that says what the kernel does: the mnemonics of the ops in it.
std::string kernelName(Operation *op, size_t number) {
  std::string name;
  auto append = [&](Operation *inner) {
    StringRef mnemonic = inner->getName().stripDialect();
    if (inner->hasTrait<OpTrait::IsTerminator>() || inner->hasTrait<OpTrait::ConstantLike>())
      return;
    if (!StringRef(name).contains(mnemonic) && name.size() < 40)
      name += (name.empty() ? "" : "_") + mnemonic.str();
  };
  if (auto fused = dyn_cast<FusedOp>(op)) {
    for (Operation &inner : fused.getBody().front())
      append(&inner);
    if (name.empty())
      name = fused.getNumOperands() == 0 ? "fill" : "copy";
  } else {
    append(op);
  }
  return name + "_k" + std::to_string(number);
}

exec::Space execSpace(Space space) {
  switch (space) {
  case Space::state:
    return exec::Space::State;
  case Space::arena:
    return exec::Space::Arena;
  case Space::constant:
    return exec::Space::Constant;
  }
  llvm_unreachable("every space is handled");
}

} // namespace

ExecEmitter::ExecEmitter(ModuleOp module, const KernelLibrary &library, StateLayout &state)
    : module(module), library(library), state(state), kernelBuilder(module.getContext()) {}

void ExecEmitter::emit(const ProgramStorage &program) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  func::FuncOp function = program.function;
  auto op = exec::ProgramOp::create(builder, function.getLoc(), function.getSymName());
  builder.createBlock(&op.getBody());
  emitCommands(builder, program, program.before);
  if (program.loopCount > 0) {
    auto loop = exec::RepeatOp::create(builder, op.getLoc(), program.loopCount);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&loop.getBody());
    emitCommands(builder, program, program.body);
  }
  builder.setInsertionPointToEnd(&op.getBody().front());
  emitCommands(builder, program, program.after);
}

void ExecEmitter::emitCommands(OpBuilder &builder, const ProgramStorage &program,
                               ArrayRef<Command> commands) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].isGemm)
      emitGemm(builder, program, commands[i]);
    else if (IntegerAttr group = joinedGroup(commands[i].op))
      i = emitGroup(builder, program, commands, i, group) - 1;
    else
      emitLaunch(builder, program, {&commands[i]});
  }
}

/// The commands of a group from `first` on, in as few launches as their kernels are; what is copied
/// between them for one of them comes before. Returns where the group ends.
size_t ExecEmitter::emitGroup(OpBuilder &builder, const ProgramStorage &program,
                              ArrayRef<Command> commands, size_t first, IntegerAttr group) {
  size_t end = first;
  for (size_t i = first; i < commands.size(); ++i)
    if (joinedGroup(commands[i].op) == group)
      end = i + 1;
  std::map<std::string, SmallVector<const Command *>> launches;
  for (const Command &command : commands.slice(first, end - first)) {
    auto isFixed = [](const Storage &storage) { return storage.loopStride == 0; };
    bool mayJoin = joinedGroup(command.op) && command.workspace < 0 &&
                   llvm::all_of(command.operands, isFixed) &&
                   llvm::all_of(command.results, isFixed);
    if (mayJoin)
      launches[kernelSignature(library, command.op, command.layout())].push_back(&command);
    else if (command.isGemm)
      emitGemm(builder, program, command);
    else
      emitLaunch(builder, program, {&command});
  }
  for (auto &[signature, parts] : launches)
    emitLaunch(builder, program, parts);
  return end;
}

static exec::WorkAttr workOf(ArrayRef<const Command *> parts) {
  int64_t bytes = 0, leastBytes = 0, flops = 0, leastFlops = 0;
  for (const Command *command : parts) {
    if (!command->work)
      return {};
    bytes += command->work->bytes();
    leastBytes += command->work->leastBytes;
    flops += command->work->flops;
    leastFlops += command->work->leastFlops;
  }
  return exec::WorkAttr::get(parts[0]->op->getContext(), bytes, leastBytes, flops, leastFlops);
}

void ExecEmitter::emitLaunch(OpBuilder &builder, const ProgramStorage &program,
                             ArrayRef<const Command *> parts) {
  SmallVector<Attribute> buffers, list;
  int64_t extent = 0, tasks = 0, flops = 0, bytes = 0;
  for (const Command *command : parts) {
    list.push_back(exec::PartAttr::get(module.getContext(), command->geometry.extent, tasks));
    appendBuffers(program, *command, buffers);
    auto cost = cast<CostOpInterface>(command->op);
    extent += command->geometry.extent;
    tasks += command->geometry.tasks;
    flops += cost.getFlops();
    bytes += cost.getBytes();
  }
  const Command &first = *parts[0];
  bool isJoined = parts.size() > 1;
  auto count = static_cast<int64_t>(parts.size());
  int64_t tableBytes =
      isJoined ? library.partTableBytes(count, static_cast<int64_t>(buffers.size()) / count) : 0;
  // What is done for several layers is of none.
  auto isElsewhere = [&](const Command *command) {
    return command->op->getLoc() != first.op->getLoc();
  };
  Location loc = llvm::any_of(parts, isElsewhere) ? module.getLoc() : first.op->getLoc();
  exec::LaunchOp::create(
      builder, loc, kernelFor(first, tableBytes > 0).getValue(), extent, tasks,
      builder.getArrayAttr(buffers), flops, bytes, isa<ProductOpInterface>(first.op), workOf(parts),
      isJoined ? builder.getArrayAttr(list) : ArrayAttr(), partTable(tableBytes), first.stream);
}

void ExecEmitter::appendBuffers(const ProgramStorage &program, const Command &command,
                                SmallVectorImpl<Attribute> &buffers) {
  int64_t accumulator = cast<FusionOpInterface>(command.op).getAccumulatorOperand();
  for (auto [i, storage] : llvm::enumerate(command.operands))
    if (static_cast<int64_t>(i) != accumulator) // it lies where the result does
      buffers.push_back(buffer(program, storage, command.op->getOperand(i).getType()));
  for (auto [storage, type] : llvm::zip_equal(command.results, command.op->getResultTypes()))
    buffers.push_back(buffer(program, storage, type));
  if (command.workspace >= 0)
    buffers.push_back(workspace(program, command));
}

exec::BufferAttr ExecEmitter::partTable(int64_t bytes) {
  if (bytes == 0)
    return {};
  return exec::BufferAttr::get(module.getContext(), exec::Space::State, state.reserve(bytes), bytes,
                               /*loop_stride=*/0);
}

void ExecEmitter::emitGemm(OpBuilder &builder, const ProgramStorage &program,
                           const Command &command) {
  auto op = cast<ProductOpInterface>(command.op);
  auto left = cast<RankedTensorType>(op.getLhs().getType());
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t rank = result.getRank();
  int64_t m = result.getShape()[rank - 2], n = result.getShape()[rank - 1];
  int64_t k = left.getShape()[rank - (op.getTransposeLhs() ? 2 : 1)];
  auto scale = [&](Value value) {
    auto place = llvm::find(op->getOperands(), value) - op->operand_begin();
    return value ? buffer(program, command.operands[place], value.getType()) : exec::BufferAttr();
  };
  exec::GemmOp::create(
      builder, op.getLoc(), m, n, k, result.getNumElements() / std::max<int64_t>(1, m * n),
      matrix(program, command.operands[0], left, op.getTransposeLhs()),
      matrix(program, command.operands[1], op.getRhs().getType(), op.getTransposeRhs()),
      matrix(program, command.results[0], result, false), op.getAccumulator() != nullptr,
      op.getTf32(), scale(op.getLhsScale()), scale(op.getRhsScale()),
      command.workspace >= 0 ? workspace(program, command) : exec::BufferAttr(),
      command.workspaceBytes, epilogue(program, command), command.stream);
}

exec::EpilogueAttr ExecEmitter::epilogue(const ProgramStorage &program, const Command &command) {
  auto op = cast<ProductOpInterface>(command.op);
  Epilogue kind = op.getEpilogue();
  if (kind == Epilogue::None)
    return {};
  auto operand = [&](Value value) {
    auto place = llvm::find(op->getOperands(), value) - op->operand_begin();
    return value ? row(program, command.operands[place], value.getType()) : exec::MatrixAttr();
  };
  exec::MatrixAttr extra;
  if (op.getExtra())
    extra = row(program, command.results[1], op.getExtra().getType());
  bool isBias = givesBiasGradient(kind);
  return exec::EpilogueAttr::get(module.getContext(), kind, isBias ? extra : operand(op.getBias()),
                                 writesAux(kind) ? extra : operand(op.getAux()));
}

/// A matrix, or a vector as a matrix of one row.
exec::MatrixAttr ExecEmitter::row(const ProgramStorage &program, const Storage &storage,
                                  Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  int64_t rows = shape.size() > 1 ? shape.front() : 1;
  int64_t rowStride = storage.rowStride ? storage.rowStride : shape.back();
  return exec::MatrixAttr::get(module.getContext(), buffer(program, storage, type),
                               getElementTypeOrSelf(type), rowStride, 1, rows * rowStride);
}

/// Bytes from the first element to behind the last.
static int64_t spanBytes(Type type, int64_t rowStride) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t rows = rowStride == 0 || tensor.getNumElements() == 0
                     ? 1
                     : tensor.getNumElements() / tensor.getShape().back();
  if (rows == 1)
    return byteSize(type);
  int64_t elements = (rows - 1) * rowStride + tensor.getShape().back();
  return elements * (byteSize(type) / tensor.getNumElements());
}

exec::BufferAttr ExecEmitter::buffer(const ProgramStorage &program, const Storage &storage,
                                     Type type) {
  const MemoryBuffer &buffer = program.buffers[storage.buffer];
  return exec::BufferAttr::get(module.getContext(), execSpace(buffer.space),
                               buffer.offset + storage.offset, spanBytes(type, storage.rowStride),
                               storage.loopStride);
}

exec::BufferAttr ExecEmitter::workspace(const ProgramStorage &program, const Command &command) {
  const MemoryBuffer &buffer = program.buffers[command.workspace];
  return exec::BufferAttr::get(module.getContext(), execSpace(buffer.space), buffer.offset,
                               command.workspaceBytes, /*loop_stride=*/0);
}

exec::MatrixAttr ExecEmitter::matrix(const ProgramStorage &program, const Storage &storage,
                                     Type type, bool transposed) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  int64_t rowStride = storage.rowStride ? storage.rowStride : columns;
  return exec::MatrixAttr::get(module.getContext(), buffer(program, storage, type),
                               getElementTypeOrSelf(type), transposed ? 1 : rowStride,
                               transposed ? rowStride : 1, rows * rowStride);
}

static StringAttr reasonOf(const Command &command) {
  if (!command.work || command.work->reason.empty())
    return {};
  return StringAttr::get(command.op->getContext(), command.work->reason);
}

FlatSymbolRefAttr ExecEmitter::kernelFor(const Command &command, bool takesTable) {
  FlatSymbolRefAttr &symbol =
      kernels[{kernelSignature(library, command.op, command.layout()), takesTable}];
  if (symbol)
    return symbol;
  std::string name = kernelName(command.op, kernels.size() - 1);
  symbol = FlatSymbolRefAttr::get(module.getContext(), name);
  OpBuilder::InsertionGuard guard(kernelBuilder);
  kernelBuilder.setInsertionPointToEnd(module.getBody());
  auto kernel = exec::KernelOp::create(kernelBuilder, command.op->getLoc(), name,
                                       command.rowStrides, command.alignments,
                                       command.workspaceBytes, reasonOf(command), takesTable);
  Block *body = kernelBuilder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value operand : command.op->getOperands())
    mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
  // An operand given twice is two arguments: the clone's operands are set by position.
  Operation *clone = kernelBuilder.clone(*command.op, mapping);
  clone->setOperands(body->getArguments());
  clone->removeAttr(streamAttr); // of one command, not of the kernel
  return symbol;
}
