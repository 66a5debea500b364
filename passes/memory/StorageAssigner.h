// The class behind assignStorage (Storage.h): walks a program once, in order, and gives every value
// its storage. Its methods are in Storage.cpp (buffers, slots, the end), StorageOps.cpp (ops and
// their results) and StorageOperands.cpp (operands, copies, the loop).
#pragma once

#include "ir/Cluster.h"
#include "passes/memory/Storage.h"

namespace gradc {

class StorageAssigner {
public:
  StorageAssigner(mlir::func::FuncOp function, StateLayout &state, ConstantLayout &constants,
                  const KernelLibrary &library, int64_t streams)
      : function(function), state(state), constants(constants), library(library), streams(streams),
        lifetimes(function) {
    out.function = function;
  }

  llvm::FailureOr<ProgramStorage> run();

private:
  // --- buffers, slots, and the end
  int32_t newBuffer(Space space, int64_t size, int64_t offset, int64_t at);
  Storage arenaStorage(mlir::Type type, int64_t at, int64_t rowStride = 0);
  /// The row stride with which long rows begin at multiples of the target's widest access; 0 where
  /// they do anyway, or where rows are short.
  int64_t paddedStride(mlir::Type type) const;
  Storage slotStorage(mlir::DictionaryAttr slot, mlir::DictionaryAttr parameter, mlir::Type type);
  void bind(mlir::Value value, Storage storage);
  void bindArguments(mlir::Block &body);
  /// Outputs are written straight to their slots where an op of this function makes them; so are
  /// low copies of parameters, which nothing reads once the optimizer runs.
  void bindReturned(mlir::Operation *terminator);
  /// Whether the slot's old value is read for the last time before `value` is made.
  bool isReadBefore(mlir::DictionaryAttr slot, mlir::Value value);
  llvm::LogicalResult storeReturned(mlir::Operation *terminator);
  llvm::LogicalResult finish(Command command, int64_t at);
  int64_t gemmWorkspace(nn::ProductOpInterface product);
  static llvm::SmallVector<int64_t> strides(const Command &command);
  /// For the target, as far as is known before buffers are placed: each begins at a multiple of 64
  /// bytes.
  llvm::SmallVector<int64_t> alignments(const Command &command) const;
  void extend(int32_t buffer, int64_t at);
  int32_t workspace(int64_t bytes, int64_t at);
  /// What a command of stream 1 uses stays for as long as it may run.
  void keepBeside(const Command &command);
  /// A buffer lives until the last use of whatever was in it.
  void closeLifespans();

  // --- ops and their results
  llvm::LogicalResult place(mlir::Operation &op);
  llvm::LogicalResult placeView(mlir::Operation &op);
  /// What lies at a place of `whole`, whose elements are those of `type`.
  static Storage partOf(Storage whole, nn::Place place, mlir::Type type);
  /// The joined buffer is made by the first operand that is written into it.
  llvm::LogicalResult placeJoin(nn::JoinOpInterface join);
  Storage joinStorage(nn::JoinOpInterface join, int64_t at);
  llvm::LogicalResult placeCommand(mlir::Operation &op, nn::FusionOpInterface fusion);
  bool acceptsStride(nn::FusionOpInterface fusion, unsigned index, bool isResult);
  /// Whether a result may have a row stride: its op writes it and all its readers take it.
  bool mayPad(nn::FusionOpInterface fusion, mlir::OpResult result);
  Storage chooseResult(Command &command, nn::FusionOpInterface fusion, mlir::OpResult result,
                       int64_t at);
  /// A result that only a join of this block uses is written into the joined buffer.
  std::optional<Storage> partOfJoin(nn::FusionOpInterface fusion, mlir::OpResult result,
                                    int64_t at);
  /// The storage of an operand that dies here and that the op may overwrite: the slot that the
  /// result returns to, where there is one.
  std::optional<Storage> takeOver(Command &command, nn::FusionOpInterface fusion,
                                  mlir::OpResult result);
  bool isFreeFor(Command &command, nn::FusionOpInterface fusion, unsigned operand,
                 mlir::OpResult result);
  bool mayOverwrite(Command &command, nn::FusionOpInterface fusion, unsigned operand,
                    mlir::OpResult result);
  bool returnsTo(mlir::OpResult result, int32_t buffer);
  /// Whether nothing but `op` needs what is in the buffer from the time on that it runs.
  bool allDeadAfter(int32_t buffer, mlir::Operation *op);
  /// An op that adds to its accumulator finds it in its result's memory.
  llvm::LogicalResult seedAccumulator(Command &command, nn::FusionOpInterface fusion, int64_t at);

  // --- operands and the loop
  /// Storage of a value that a command reads; constants are placed now. Immediates of row programs
  /// never come here: fusion moved them into the clusters.
  llvm::FailureOr<Storage> read(mlir::Value value, int64_t at);
  llvm::FailureOr<Storage> contiguousCopy(mlir::Value value, Storage source, int64_t at);
  llvm::LogicalResult copy(mlir::Type type, Storage source, Storage target, int64_t at);
  llvm::LogicalResult fill(mlir::DenseElementsAttr value, mlir::Type type, Storage target,
                           int64_t at);
  llvm::LogicalResult launchScratch(nn::FusedOp fused, llvm::ArrayRef<Storage> operands,
                                    Storage target, int64_t at);
  llvm::LogicalResult placeLoop(nn::MicrobatchesOp loop);

  mlir::func::FuncOp function;
  StateLayout &state;
  ConstantLayout &constants;
  const KernelLibrary &library;
  int64_t streams;
  Lifetimes lifetimes;
  ProgramStorage out;
  std::vector<Command> *commands = nullptr; ///< of the part that is placed now
  /// The stream of the op that is placed now, and the index up to which it may run.
  struct Beside {
    int64_t stream = 0, until = 0;
  } beside;
  llvm::DenseMap<mlir::Value, Storage> storageOf;
  llvm::DenseMap<mlir::Value, Storage> wanted;
  llvm::DenseMap<mlir::Attribute, int32_t> slotBuffers;
  llvm::DenseMap<mlir::Operation *, Storage> joinBuffers;
  std::vector<llvm::SmallVector<mlir::Value>> occupants; ///< values in each buffer
};

} // namespace gradc
