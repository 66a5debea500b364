// See KernelBuilder.h.
#include "codegen/cpu/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace gradc::codegen {

KernelBuilder::KernelBuilder(ModuleOp module, StringRef name, const CpuTarget &target,
                             FunctionType type, bool isPrivate)
    : KernelPrinter(module.getContext(), target.vectors()), mod(module), cpu(target) {
  b.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(b, loc, name, type);
  if (isPrivate) {
    function.setPrivate();
    function->setAttr("llvm.linkage",
                      LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
    function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  }
  b.setInsertionPointToStart(function.addEntryBlock());
}

/// GradcKernelFn: (buffers, extent, task).
static FunctionType kernelType(ModuleOp module) {
  Type i64 = IntegerType::get(module.getContext(), 64);
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  return FunctionType::get(module.getContext(), {pointer, i64, i64}, {});
}

KernelBuilder::KernelBuilder(ModuleOp module, StringRef name, const CpuTarget &target)
    : KernelBuilder(module, name, target, kernelType(module), /*isPrivate=*/false) {}

KernelBuilder::KernelBuilder(ModuleOp module, StringRef name, const CpuTarget &target,
                             FunctionType type)
    : KernelBuilder(module, name, target, type, /*isPrivate=*/true) {}

func::FuncOp KernelBuilder::finish(ValueRange results) {
  func::ReturnOp::create(b, loc, results);
  return function;
}

Value KernelBuilder::buffer(int i) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  Value slot = LLVM::GEPOp::create(b, loc, pointerType(), pointerType(), parameter(0),
                                   ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(i)});
  return LLVM::LoadOp::create(b, loc, pointerType(), slot);
}

Value KernelBuilder::stack(int64_t floats) {
  constexpr unsigned lineBytes = 64;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(b, loc, pointerType(), v.f32, index(floats), lineBytes);
}

} // namespace gradc::codegen
