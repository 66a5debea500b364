// KernelEmulation: accesses to memory are announced to the emulator; shared variables become
// offsets in the block's memory.
#include "codegen/gpu/KernelEmulation.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ReplaceConstant.h"

namespace gradc::codegen::gpu {
namespace {

constexpr unsigned globalSpace = 1, sharedSpace = 3; // of NVPTX

/// The object that a pointer points into, where that can be seen.
llvm::Value *objectOf(llvm::Value *pointer) {
  return llvm::getUnderlyingObject(pointer, /*MaxLookup=*/0);
}

bool uses(llvm::Function &kernel, llvm::GlobalVariable &variable) {
  llvm::SmallVector<llvm::User *> users(variable.users());
  while (!users.empty()) {
    llvm::User *user = users.pop_back_val();
    if (auto *instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
      if (instruction->getFunction() == &kernel)
        return true;
    } else {
      llvm::append_range(users, user->users());
    }
  }
  return false;
}

} // namespace

/// Static variables first, the dynamic part (external, without a size) behind them.
void KernelEmulation::placeSharedVariables() {
  const llvm::DataLayout &layout = module.getDataLayout();
  llvm::SmallVector<llvm::GlobalVariable *> dynamic;
  int64_t end = 0;
  auto alignmentOf = [&](llvm::GlobalVariable &variable) {
    return variable.getAlign().value_or(layout.getABITypeAlign(variable.getValueType())).value();
  };
  uint64_t dynamicAlignment = 1;
  for (llvm::GlobalVariable &variable : module.globals()) {
    if (variable.getAddressSpace() != sharedSpace || !uses(kernel, variable))
      continue;
    auto bytes = int64_t(layout.getTypeAllocSize(variable.getValueType()));
    if (bytes == 0) {
      dynamic.push_back(&variable);
      dynamicAlignment = std::max(dynamicAlignment, alignmentOf(variable));
      continue;
    }
    end = int64_t(llvm::alignTo(uint64_t(end), alignmentOf(variable)));
    sharedOffsets[&variable] = end;
    end += bytes;
  }
  staticSharedBytes = end;
  if (!dynamic.empty())
    staticSharedBytes = int64_t(llvm::alignTo(uint64_t(end), dynamicAlignment));
  for (llvm::GlobalVariable *variable : dynamic)
    sharedOffsets[variable] = staticSharedBytes;
}

KernelEmulation::Access KernelEmulation::accessTo(llvm::Value *pointer) const {
  Access access;
  llvm::Value *object = objectOf(pointer);
  unsigned space = pointer->getType()->getPointerAddressSpace();
  if (auto *argument = llvm::dyn_cast<llvm::Argument>(object))
    access.parameter = argument->getArgNo();
  if (auto *variable = llvm::dyn_cast<llvm::GlobalVariable>(object);
      variable && variable->getAddressSpace() == sharedSpace)
    access.variable = variable;
  access.isShared = space == sharedSpace || access.variable;
  access.isGlobal = space == globalSpace || access.parameter >= 0;
  return access;
}

/// Cells must be small enough for the access to consist of whole ones.
void KernelEmulation::takeIntoCells(const Access &access) {
  auto divisor = int64_t(uint64_t(access.bytes) & -uint64_t(access.bytes));
  if (divisor == 0) // a size known when it runs
    divisor = 1;
  divisor = std::min(divisor, access.alignment);
  if (!access.isGlobal)
    sharedCell = std::min(sharedCell, divisor);
  if (!access.isShared)
    globalCell = std::min(globalCell, divisor);
}

llvm::Error KernelEmulation::announceAccess(llvm::Instruction &instruction, llvm::Value *pointer,
                                            llvm::Type *type, llvm::Align alignment, bool isStore) {
  llvm::Value *object = objectOf(pointer);
  if (llvm::isa<llvm::AllocaInst>(object))
    return llvm::Error::success(); // the thread's own
  if (auto *variable = llvm::dyn_cast<llvm::GlobalVariable>(object);
      variable && variable->getAddressSpace() != sharedSpace) {
    if (variable->isConstant() && !isStore)
      return llvm::Error::success(); // a table of the kernel
    return unsupported(instruction, "variables of a module in global memory");
  }
  Access access = accessTo(pointer);
  access.bytes = int64_t(module.getDataLayout().getTypeStoreSize(type));
  access.alignment = int64_t(alignment.value());
  takeIntoCells(access);
  const char *place = access.isShared ? "shared" : access.isGlobal ? "global" : "any";
  std::string symbol = std::string("gradc_emulated_") + (isStore ? "store_" : "load_") + place;
  b.SetInsertPoint(&instruction);
  b.CreateCall(declareEmulated(module, symbol), {generic(pointer), site(instruction, access)});
  return llvm::Error::success();
}

llvm::Error KernelEmulation::announceTransfer(llvm::MemIntrinsic &transfer) {
  b.SetInsertPoint(&transfer);
  auto announce = [&](llvm::Value *pointer, llvm::MaybeAlign alignment, const char *symbol) {
    if (llvm::isa<llvm::AllocaInst>(objectOf(pointer)))
      return;
    Access access = accessTo(pointer);
    access.alignment = int64_t(alignment.valueOrOne().value());
    if (auto *bytes = llvm::dyn_cast<llvm::ConstantInt>(transfer.getLength()))
      access.bytes = bytes->getSExtValue();
    takeIntoCells(access);
    b.CreateCall(declareEmulated(module, symbol), {generic(pointer), site(transfer, access),
                                                   b.CreateZExt(transfer.getLength(), i64)});
  };
  if (auto *copy = llvm::dyn_cast<llvm::MemTransferInst>(&transfer))
    announce(copy->getRawSource(), copy->getSourceAlign(), "gradc_emulated_load_range");
  announce(transfer.getRawDest(), transfer.getDestAlign(), "gradc_emulated_store_range");
  return llvm::Error::success();
}

llvm::Value *KernelEmulation::generic(llvm::Value *pointer) {
  return pointer->getType() == pointerType ? pointer : b.CreateAddrSpaceCast(pointer, pointerType);
}

/// Every use of a shared variable becomes the block's memory plus the variable's offset.
void KernelEmulation::replaceSharedVariables() {
  if (sharedOffsets.empty())
    return;
  llvm::SmallVector<llvm::Constant *> variables;
  for (llvm::GlobalVariable &variable : module.globals())
    if (sharedOffsets.contains(&variable))
      variables.push_back(&variable);
  llvm::convertUsersOfConstantsToInstructions(variables, &kernel, /*RemoveDeadConstants=*/true);
  b.SetInsertPoint(&*kernel.getEntryBlock().getFirstInsertionPt());
  llvm::Value *memory = b.CreateCall(declareEmulated(module, "gradc_emulated_shared"));
  for (llvm::Constant *variable : variables) {
    llvm::Value *address = b.CreateConstInBoundsGEP1_64(
        b.getInt8Ty(), memory, sharedOffsets.lookup(llvm::cast<llvm::GlobalVariable>(variable)));
    if (variable->getType() != pointerType)
      address = b.CreateAddrSpaceCast(address, variable->getType());
    variable->replaceUsesWithIf(address, [&](llvm::Use &use) {
      auto *instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser());
      return instruction && instruction->getFunction() == &kernel;
    });
  }
}

} // namespace gradc::codegen::gpu
