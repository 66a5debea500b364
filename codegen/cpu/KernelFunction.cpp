// Functions of kernels.
#include "codegen/cpu/KernelFunction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace gradc::codegen {

static func::FuncOp emitInner(OpBuilder &builder, Location loc, const std::string &name,
                              ArrayRef<bool> noAlias,
                              function_ref<void(const KernelArguments &)> emitBody) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> types(noAlias.size(), LLVM::LLVMPointerType::get(context));
  types.append(2, builder.getI64Type());
  auto inner = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  inner.setPrivate();
  inner->setAttr("llvm.linkage", LLVM::LinkageAttr::get(context, LLVM::linkage::Linkage::Internal));
  for (auto [i, alone] : llvm::enumerate(noAlias))
    if (alone)
      inner.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());

  OpBuilder::InsertionGuard guard(builder);
  Block *body = inner.addEntryBlock();
  builder.setInsertionPointToStart(body);
  KernelArguments arguments;
  for (size_t i = 0; i < noAlias.size(); ++i)
    arguments.buffers.push_back(body->getArgument(i));
  arguments.extent = body->getArgument(noAlias.size());
  arguments.task = body->getArgument(noAlias.size() + 1);
  emitBody(arguments);
  func::ReturnOp::create(builder, loc);
  return inner;
}

func::FuncOp emitKernelFunction(OpBuilder &builder, ModuleOp module, StringRef name,
                                ArrayRef<bool> noAlias,
                                function_ref<void(const KernelArguments &)> emitBody) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = builder.getUnknownLoc();
  builder.setInsertionPointToEnd(module.getBody());
  func::FuncOp inner = emitInner(builder, loc, (name + ".body").str(), noAlias, emitBody);

  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  auto kernel =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType({pointer, i64, i64}, {}));
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> operands;
  for (size_t i = 0; i < noAlias.size(); ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    operands.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot, 8));
  }
  operands.push_back(entry->getArgument(1));
  operands.push_back(entry->getArgument(2));
  func::CallOp::create(builder, loc, inner, operands);
  func::ReturnOp::create(builder, loc);
  return kernel;
}

} // namespace gradc::codegen
