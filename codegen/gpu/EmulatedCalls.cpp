// KernelEmulation: calls of NVIDIA's intrinsics become calls of the emulator.
#include "codegen/gpu/KernelEmulation.h"

namespace gradc::codegen::gpu {
namespace {

/// The words that a value takes as an operand or result of a warp-wide operation.
int64_t wordsOf(llvm::Type *type) { return type->isPointerTy() || type->isIntegerTy(64) ? 2 : 1; }

llvm::SmallVector<llvm::Type *> resultTypes(llvm::Type *type) {
  if (type->isVoidTy())
    return {};
  if (auto *structure = llvm::dyn_cast<llvm::StructType>(type))
    return llvm::to_vector(structure->elements());
  return {type};
}

constexpr int64_t mostOperandWords = 16, mostResultWords = 4;

} // namespace

llvm::Error KernelEmulation::rewriteCall(llvm::CallInst &call) {
  if (call.isInlineAsm())
    return unsupported(call, "inline assembly");
  llvm::Function *callee = call.getCalledFunction();
  if (!callee)
    return unsupported(call, "calls through pointers");
  if (!callee->isIntrinsic())
    return unsupported(call, "calls of functions that were not inlined");
  if (auto *transfer = llvm::dyn_cast<llvm::MemIntrinsic>(&call))
    return announceTransfer(*transfer);
  llvm::StringRef name = callee->getName();
  if (name.consume_front("llvm.nvvm."))
    return rewriteIntrinsic(call, name);
  bool isMark =
      llvm::isa<llvm::DbgInfoIntrinsic, llvm::LifetimeIntrinsic, llvm::AssumeInst>(call) ||
      callee->getIntrinsicID() == llvm::Intrinsic::experimental_noalias_scope_decl;
  if (!isMark && call.mayReadOrWriteMemory())
    return unsupported(call, name);
  return llvm::Error::success(); // arithmetic that the host has too
}

llvm::Error KernelEmulation::rewriteIntrinsic(llvm::CallInst &call, llvm::StringRef name) {
  for (llvm::StringRef space : {".p0", ".p3"})
    name.consume_back(space);
#define GRADC_SCALAR(intrinsic, symbol)                                                            \
  if (name == intrinsic)                                                                           \
    return rewriteScalar(call, #symbol);
#define GRADC_WARP(intrinsic, symbol, maskOperand)                                                 \
  if (name == intrinsic)                                                                           \
    return rewriteWarp(call, #symbol, maskOperand);
#include "codegen/gpu/EmulatedIntrinsics.def"
#undef GRADC_SCALAR
#undef GRADC_WARP
  if (name.starts_with("barrier.cta.sync."))
    return rewriteBarrier(call);
  if (name.starts_with("cp.async.ca.shared.global.") ||
      name.starts_with("cp.async.cg.shared.global."))
    return rewriteAsyncCopy(call, name);
  if (name.starts_with("membar.")) { // threads run one at a time, and see what was written before
    call.eraseFromParent();
    return llvm::Error::success();
  }
  return unsupported(call, "llvm.nvvm." + name);
}

/// One call for another, but for types of one width that travel as integers.
llvm::Error KernelEmulation::rewriteScalar(llvm::CallInst &call, llvm::StringRef symbol) {
  llvm::FunctionCallee function = declareEmulated(module, symbol);
  llvm::FunctionType *type = function.getFunctionType();
  if (call.arg_size() != type->getNumParams())
    return unsupported(call, "this number of operands");
  b.SetInsertPoint(&call);
  llvm::SmallVector<llvm::Value *> arguments;
  for (auto [argument, wanted] : llvm::zip_equal(call.args(), type->params())) {
    if (argument->getType()->getPrimitiveSizeInBits() != wanted->getPrimitiveSizeInBits())
      return unsupported(call, "these types of operands");
    arguments.push_back(b.CreateBitCast(argument, wanted));
  }
  llvm::Value *result = b.CreateCall(function, arguments);
  if (!call.getType()->isVoidTy()) {
    if (call.getType()->getPrimitiveSizeInBits() != result->getType()->getPrimitiveSizeInBits())
      return unsupported(call, "this type of result");
    result = b.CreateBitCast(result, call.getType());
  }
  replace(call, result);
  return llvm::Error::success();
}

/// Operands are written to memory as words, results are read from it.
llvm::Error KernelEmulation::rewriteWarp(llvm::CallInst &call, llvm::StringRef symbol,
                                         int maskOperand) {
  if (!operands) {
    b.SetInsertPoint(&*kernel.getEntryBlock().getFirstInsertionPt());
    operands = b.CreateAlloca(i32, b.getInt32(mostOperandWords), "operands");
    results = b.CreateAlloca(i32, b.getInt32(mostResultWords), "results");
  }
  llvm::SmallVector<llvm::Type *> types = resultTypes(call.getType());
  b.SetInsertPoint(&call);
  int64_t word = 0;
  for (llvm::Value *operand : call.args()) {
    llvm::Type *type = operand->getType();
    if (word + wordsOf(type) > mostOperandWords)
      return unsupported(call, "so many operands");
    if (type->isPointerTy())
      operand = generic(operand);
    else if (type->isIntegerTy(1))
      operand = b.CreateZExt(operand, i32);
    b.CreateAlignedStore(operand, b.CreateConstInBoundsGEP1_64(i32, operands, word),
                         llvm::Align(4));
    word += wordsOf(type);
  }
  Access access;
  access.alignment = 16; // of ldmatrix's rows, the only addresses among operands
  auto *compute = llvm::cast<llvm::Constant>(declareEmulated(module, symbol).getCallee());
  llvm::Value *mask = maskOperand < 0 ? b.getInt32(~0u) : call.getArgOperand(maskOperand);
  b.CreateCall(declareEmulated(module, "gradc_emulated_collective"),
               {site(call, access, compute), mask, operands, results});
  auto read = [&](llvm::Type *type, int64_t index) -> llvm::Value * {
    llvm::Value *address = b.CreateConstInBoundsGEP1_64(i32, results, index);
    if (type->isIntegerTy(1))
      return b.CreateTrunc(b.CreateAlignedLoad(i32, address, llvm::Align(4)), type);
    return b.CreateAlignedLoad(type, address, llvm::Align(4));
  };
  llvm::Value *result = nullptr;
  if (call.getType()->isStructTy()) {
    result = llvm::PoisonValue::get(call.getType());
    for (auto [i, type] : llvm::enumerate(types))
      result = b.CreateInsertValue(result, read(type, int64_t(i)), unsigned(i));
  } else if (!types.empty()) {
    result = read(types.front(), 0);
  }
  replace(call, result);
  return llvm::Error::success();
}

llvm::Error KernelEmulation::rewriteBarrier(llvm::CallInst &call) {
  b.SetInsertPoint(&call);
  llvm::Value *threads = call.arg_size() > 1 ? call.getArgOperand(1) : b.getInt32(0);
  b.CreateCall(declareEmulated(module, "gradc_emulated_barrier"),
               {call.getArgOperand(0), threads, site(call, Access())});
  replace(call, nullptr);
  return llvm::Error::success();
}

/// (destination, source[, bytes of the source]); the name ends with the bytes, and .s where the
/// source has its own number.
llvm::Error KernelEmulation::rewriteAsyncCopy(llvm::CallInst &call, llvm::StringRef name) {
  bool hasSize = name.consume_back(".s");
  Access destination = accessTo(call.getArgOperand(0));
  if (name.rsplit('.').second.getAsInteger(10, destination.bytes))
    return unsupported(call, "this size of copies");
  destination.alignment = destination.bytes;
  Access source = accessTo(call.getArgOperand(1));
  source.bytes = source.alignment = destination.bytes;
  destination.isShared = source.isGlobal = true;
  takeIntoCells(destination);
  takeIntoCells(source);
  destination.parameter = source.parameter;
  b.SetInsertPoint(&call);
  llvm::Value *bytes = hasSize ? call.getArgOperand(2) : b.getInt32(destination.bytes);
  b.CreateCall(declareEmulated(module, "gradc_emulated_copy_async"),
               {generic(call.getArgOperand(0)), generic(call.getArgOperand(1)), bytes,
                site(call, destination)});
  replace(call, nullptr);
  return llvm::Error::success();
}

void KernelEmulation::replace(llvm::CallInst &call, llvm::Value *result) {
  if (result && !call.getType()->isVoidTy())
    call.replaceAllUsesWith(result);
  call.eraseFromParent();
}

} // namespace gradc::codegen::gpu
