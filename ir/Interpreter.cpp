// The interpreter's walk over blocks: environments, last uses, microbatches and calls.
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace gradc::nn;

using Tensors = SmallVector<HostTensor>;

namespace {

class Interpreter {
public:
  FailureOr<Tensors> run(func::FuncOp function, ArrayRef<HostTensor> arguments);
  FailureOr<Tensors> run(Region &region, ArrayRef<HostTensor> arguments);

private:
  LogicalResult runOp(Operation *op);
  LogicalResult runCall(func::CallOp call);
  LogicalResult runMicrobatches(MicrobatchesOp op);
  LogicalResult evaluate(Operation *op);

  HostTensor &tensorOf(Value value) { return environment.find(value)->second; }

  DenseMap<Value, HostTensor> environment;
  SmallVector<Operation *> activeFunctions;
};

/// For each op of the block, the block's values whose last use it (or an op nested in it) is. A
/// value without uses dies where it is defined.
DenseMap<Operation *, SmallVector<Value>> lastUses(Block &block) {
  DenseMap<Operation *, SmallVector<Value>> dying;
  auto record = [&](Value value, Operation *last) {
    for (Operation *user : value.getUsers())
      if (Operation *ancestor = block.findAncestorOpInBlock(*user))
        if (last->isBeforeInBlock(ancestor))
          last = ancestor;
    dying[last].push_back(value);
  };
  for (BlockArgument argument : block.getArguments())
    record(argument, &block.front());
  for (Operation &op : block)
    for (Value result : op.getResults())
      record(result, &op);
  return dying;
}

/// One entry of the leading dimension.
HostTensor entryOf(const HostTensor &tensor, int64_t entry) {
  HostTensor result(ArrayRef(tensor.shape).drop_front());
  auto begin = tensor.values.begin() + entry * result.size();
  result.values.assign(begin, begin + result.size());
  return result;
}

bool isStaticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

} // namespace

FailureOr<Tensors> Interpreter::run(func::FuncOp function, ArrayRef<HostTensor> arguments) {
  if (function.isExternal())
    return function.emitOpError("has no body to interpret");
  if (arguments.size() != function.getNumArguments())
    return function.emitOpError("expected ")
           << function.getNumArguments() << " arguments, got: " << arguments.size();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isStaticTensor(type) || zerosOf(type).shape != arguments[i].shape)
      return function.emitOpError("expected argument ")
             << i << " of type " << type << ", got one of another shape";
  if (llvm::is_contained(activeFunctions, function.getOperation()))
    return function.emitOpError("calls itself, which can not be interpreted");
  activeFunctions.push_back(function);
  FailureOr<Tensors> results = run(function.getBody(), arguments);
  activeFunctions.pop_back();
  return results;
}

FailureOr<Tensors> Interpreter::run(Region &region, ArrayRef<HostTensor> arguments) {
  if (!region.hasOneBlock())
    return region.getParentOp()->emitOpError("expected one block to interpret, got: ")
           << std::distance(region.begin(), region.end());
  Block &block = region.front();
  DenseMap<Operation *, SmallVector<Value>> dying = lastUses(block);
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    environment[argument] = tensor;
  for (Operation &op : block.without_terminator()) {
    if (failed(runOp(&op)))
      return failure();
    for (Value value : dying[&op])
      environment.erase(value);
  }
  Operation *terminator = block.getTerminator();
  Tensors results;
  for (Value value : terminator->getOperands())
    results.push_back(tensorOf(value));
  for (Value value : dying[terminator])
    environment.erase(value);
  return results;
}

LogicalResult Interpreter::runOp(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isStaticTensor(type))
      return op->emitOpError("can not be evaluated: it gives a ") << type;
  if (auto microbatches = dyn_cast<MicrobatchesOp>(op))
    return runMicrobatches(microbatches);
  if (auto call = dyn_cast<func::CallOp>(op))
    return runCall(call);
  return evaluate(op);
}

LogicalResult Interpreter::evaluate(Operation *op) {
  auto evaluates = dyn_cast<EvaluateOpInterface>(op);
  if (!evaluates)
    return op->emitOpError("can not be evaluated: it has no reference evaluation");
  // Operands are moved out of the environment and back, not copied; a value read twice is copied.
  Tensors operands, results;
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    auto first = llvm::find(op->getOperands().take_front(i), value);
    size_t at = std::distance(op->getOperands().begin(), first);
    operands.push_back(at < i ? HostTensor(operands[at]) : std::move(tensorOf(value)));
  }
  for (Type type : op->getResultTypes())
    results.push_back(zerosOf(type));
  LogicalResult status = evaluates.evaluate(operands, results);
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
    environment[value] = std::move(tensor);
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
    environment[value] = std::move(tensor);
  return status;
}

LogicalResult Interpreter::runCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return call.emitOpError("calls a function that is not there");
  Tensors arguments;
  for (Value value : call.getOperands())
    arguments.push_back(tensorOf(value));
  FailureOr<Tensors> results = run(callee, arguments);
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(call.getResults(), *results))
    environment[value] = std::move(tensor);
  return success();
}

LogicalResult Interpreter::runMicrobatches(MicrobatchesOp op) {
  Tensors carried;
  for (Value value : op.getInitial())
    carried.push_back(tensorOf(value));
  int64_t count = cast<RankedTensorType>(op.getSliced().front().getType()).getDimSize(0);
  for (int64_t entry = 0; entry < count; ++entry) {
    Tensors arguments;
    for (Value value : op.getSliced())
      arguments.push_back(entryOf(tensorOf(value), entry));
    llvm::append_range(arguments, std::move(carried));
    FailureOr<Tensors> next = run(op.getBody(), arguments);
    if (failed(next))
      return failure();
    carried = std::move(*next);
  }
  for (auto [value, tensor] : llvm::zip_equal(op.getResults(), carried))
    environment[value] = std::move(tensor);
  return success();
}

FailureOr<Tensors> gradc::nn::interpret(func::FuncOp function, ArrayRef<HostTensor> arguments) {
  return Interpreter().run(function, arguments);
}

FailureOr<Tensors> gradc::nn::interpretRegion(Region &region, ArrayRef<HostTensor> arguments) {
  return Interpreter().run(region, arguments);
}

HostTensor gradc::nn::zerosOf(Type type) {
  return HostTensor(cast<RankedTensorType>(type).getShape());
}
