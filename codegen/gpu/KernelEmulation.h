// One kernel on its way from NVPTX to the host: what the parts of the rewriting share.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gradc::codegen::gpu {

/// A function of the emulator as a module declares it. No address means that there is none of the
/// name.
llvm::FunctionCallee declareEmulated(llvm::Module &module, llvm::StringRef symbol);

class KernelEmulation {
public:
  explicit KernelEmulation(llvm::Function &kernel);

  /// Rewrites the kernel's body.
  llvm::Error run();
  /// Replaces the kernel by its descriptor. Call once, last.
  void describe();

private:
  /// What a GradcSite says beyond its text.
  struct Access {
    int64_t bytes = 0;
    int64_t alignment = 1;
    int64_t parameter = -1;
    llvm::GlobalVariable *variable = nullptr; ///< in shared memory
    bool isShared = false, isGlobal = false;  ///< neither: the address will tell
  };

  llvm::Error unsupported(const llvm::Instruction &instruction, const llvm::Twine &what);
  void placeSharedVariables();
  void takeDownTexts();
  llvm::Error rewrite(llvm::Instruction &instruction);

  // Memory (EmulatedMemory.cpp)
  llvm::Error announceAccess(llvm::Instruction &instruction, llvm::Value *pointer, llvm::Type *type,
                             llvm::Align alignment, bool isStore);
  llvm::Error announceTransfer(llvm::MemIntrinsic &transfer);
  Access accessTo(llvm::Value *pointer) const;
  void takeIntoCells(const Access &access);
  void replaceSharedVariables();

  // Calls (EmulatedCalls.cpp)
  llvm::Error rewriteCall(llvm::CallInst &call);
  llvm::Error rewriteIntrinsic(llvm::CallInst &call, llvm::StringRef name);
  llvm::Error rewriteScalar(llvm::CallInst &call, llvm::StringRef symbol);
  llvm::Error rewriteWarp(llvm::CallInst &call, llvm::StringRef symbol, int maskOperand);
  llvm::Error rewriteBarrier(llvm::CallInst &call);
  llvm::Error rewriteAsyncCopy(llvm::CallInst &call, llvm::StringRef name);
  void replace(llvm::CallInst &call, llvm::Value *result);

  llvm::Constant *site(const llvm::Instruction &instruction, const Access &access,
                       llvm::Constant *collective = nullptr);
  llvm::Constant *text(llvm::StringRef string);
  llvm::Constant *number(int64_t value);
  llvm::Value *generic(llvm::Value *pointer);

  llvm::Function &kernel;
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> b;
  llvm::IntegerType *i32, *i64;
  llvm::PointerType *pointerType;
  llvm::StructType *siteType;
  llvm::DenseMap<const llvm::Instruction *, std::string> texts; ///< as the kernel was given
  llvm::DenseMap<llvm::GlobalVariable *, int64_t> sharedOffsets;
  llvm::AllocaInst *operands = nullptr, *results = nullptr; ///< of warp-wide operations, in words
  int64_t staticSharedBytes = 0;
  int64_t sharedCell = 16, globalCell = 16;
};

} // namespace gradc::codegen::gpu
