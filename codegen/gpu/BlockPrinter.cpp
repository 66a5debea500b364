// See BlockPrinter.h.
#include "codegen/gpu/BlockPrinter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

constexpr unsigned globalSpace = 1, sharedSpace = 3; ///< address spaces of NVPTX
constexpr int64_t allThreads = -1;                   ///< of a warp, a bit each
constexpr StringLiteral dynamicName = "gradc_dynamic_shared", bytesName = "gradc.shared_bytes";

} // namespace

BlockPrinter::BlockPrinter(ModuleOp module, StringRef name, ArrayRef<bool> noAlias, int64_t threads,
                           const VectorTarget &vectors, const RegisterRequest &request)
    : KernelPrinter(module.getContext(), vectors), module(module), threadCount(threads) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> types(noAlias.size(), LLVM::LLVMPointerType::get(context, globalSpace));
  types.push_back(v.i64);
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({static_cast<int32_t>(threads)}));
  for (auto [attribute, number] :
       {std::pair(NVVM::NVVMDialect::getMinctasmAttrName(), request.blocks),
        {NVVM::NVVMDialect::getMaxnregAttrName(), request.registers}})
    if (number > 0)
      function->setAttr(attribute, b.getI32IntegerAttr(static_cast<int32_t>(number)));
  for (auto [i, alone] : llvm::enumerate(noAlias))
    if (alone)
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  mlir::Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  addresses.assign(entry->args_begin(), std::prev(entry->args_end()));
  block = arith::ExtUIOp::create(b, loc, v.i64, NVVM::BlockIdXOp::create(b, loc, v.i32));
  auto range = LLVM::ConstantRangeAttr::get(context, 32, 0, threads);
  member = arith::ExtUIOp::create(b, loc, v.i64, NVVM::ThreadIdXOp::create(b, loc, v.i32, range));
}

LLVM::LLVMFuncOp BlockPrinter::finish() {
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return function;
}

Value BlockPrinter::shared(int64_t floats) {
  std::string name = (function.getSymName() + "_shared" + Twine(sharedCount++)).str();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  auto global = LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(v.f32, floats),
                                       /*isConstant=*/false, LLVM::Linkage::Internal, name,
                                       Attribute(), /*alignment=*/16, sharedSpace);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AddressOfOp::create(b, loc, global);
}

Value BlockPrinter::dynamicShared(int64_t bytes) {
  function->setAttr(bytesName, b.getI64IntegerAttr(bytes));
  auto global = module.lookupSymbol<LLVM::GlobalOp>(dynamicName); // one for all kernels
  OpBuilder::InsertionGuard guard(b);
  if (!global) {
    b.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                                    /*isConstant=*/false, LLVM::Linkage::External, dynamicName,
                                    Attribute(), /*alignment=*/128, sharedSpace);
  }
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AddressOfOp::create(b, loc, global);
}

int64_t sharedBytesOf(LLVM::LLVMFuncOp kernel) {
  auto bytes = kernel->getAttrOfType<IntegerAttr>(bytesName);
  return bytes ? bytes.getInt() : 0;
}

void BlockPrinter::barrier() { NVVM::BarrierOp::create(b, loc); }

void BlockPrinter::barrier(Value id, int64_t threads) {
  Value number = arith::TruncIOp::create(b, loc, v.i32, id);
  NVVM::BarrierOp::create(b, loc, TypeRange(), number,
                          v.constant(v.i32, static_cast<double>(threads)), {}, Value());
}

void BlockPrinter::warpBarrier() {
  NVVM::SyncWarpOp::create(b, loc, v.constant(v.i32, allThreads));
}

Value BlockPrinter::exchange(Value x, int64_t distance) {
  auto number = [&](int64_t value) { return v.constant(v.i32, static_cast<double>(value)); };
  return NVVM::ShflOp::create(b, loc, v.f32, number(allThreads), x, number(distance),
                              number(warpThreads - 1), NVVM::ShflKind::bfly, UnitAttr());
}

Value BlockPrinter::ofThread(Value x, Value thread) {
  auto number = [&](int64_t value) { return v.constant(v.i32, static_cast<double>(value)); };
  return NVVM::ShflOp::create(b, loc, v.i32, number(allThreads), x, thread, number(warpThreads - 1),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value BlockPrinter::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(b, loc, v.i32, v.constant(v.i32, allThreads), condition,
                                  NVVM::VoteSyncKind::ballot);
}

} // namespace gradc::codegen::gpu
