// See KernelBuilder.h.
#include "codegen/cpu/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace gradc::codegen {

KernelBuilder::KernelBuilder(ModuleOp module, StringRef name, const CpuTarget &target,
                             FunctionType type, bool isPrivate)
    : b(module.getContext()), loc(b.getUnknownLoc()), mod(module), cpu(target), v(b, loc, target) {
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

// --- i64

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}
Value KernelBuilder::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value KernelBuilder::sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value KernelBuilder::mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
Value KernelBuilder::divide(Value x, int64_t y) {
  return arith::DivUIOp::create(b, loc, x, index(y));
}
Value KernelBuilder::remainder(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, index(y));
}
Value KernelBuilder::minimum(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value KernelBuilder::maximum(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value KernelBuilder::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value KernelBuilder::equal(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}
Value KernelBuilder::either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value KernelBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

// --- memory

Value KernelBuilder::at(Value pointer, Value elements) {
  return v.elementPointer(row::Dtype::f32, pointer, elements);
}
Value KernelBuilder::at(Value pointer, int64_t elements) {
  return v.elementPointer(row::Dtype::f32, pointer, elements);
}

Value KernelBuilder::stack(int64_t floats) {
  constexpr unsigned lineBytes = 64;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(b, loc, pointerType(), v.f32, index(floats), lineBytes);
}

Value KernelBuilder::loadInt(Value pointer) {
  return arith::ExtSIOp::create(b, loc, v.i64, v.loadScalar(row::Dtype::i32, pointer));
}
void KernelBuilder::storeInt(Value value, Value pointer) {
  v.storeScalar(row::Dtype::i32, arith::TruncIOp::create(b, loc, v.i32, value), pointer);
}
void KernelBuilder::store(Value value, Value pointer) {
  if (isa<VectorType>(value.getType()))
    v.storeVector(row::Dtype::f32, value, pointer, {});
  else
    v.storeScalar(row::Dtype::f32, value, pointer);
}

Value KernelBuilder::loadFirst(Value pointer, int64_t count, row::Dtype dtype) {
  return v.loadVector(dtype, pointer, count < lanes() ? v.firstLanes(count) : Value());
}
void KernelBuilder::storeFirst(Value value, Value pointer, int64_t count, row::Dtype dtype) {
  v.storeVector(dtype, value, pointer, count < lanes() ? v.firstLanes(count) : Value());
}

// --- f32

Value KernelBuilder::greater(Value x, Value y) {
  return select(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y), x, y);
}
Value KernelBuilder::equalF(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
}
Value KernelBuilder::isNan(Value x) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
}
Value KernelBuilder::sumLanes(Value vector) {
  return v.foldLanes(vector, [&](Value x, Value y) { return v.add(x, y); });
}
Value KernelBuilder::maxLanes(Value vector) {
  return v.foldLanes(vector, [&](Value x, Value y) { return greater(x, y); });
}

Value KernelBuilder::exp2(Value x) {
  // Adding 1.5 * 2^23 rounds to an integer n, which then stands in the low bits; with the
  // exponent's bias added as well, those bits moved to the exponent's place are 2^n, and 0 for n =
  // -127.
  x = v.limitBelow(x, -127);
  Value magic = reals(12582912.0 + 127);
  Value shifted = v.add(x, magic);
  Value fraction = v.sub(x, v.sub(shifted, magic));
  // Minimax polynomial of 2^r on [-1/2, 1/2] that is 1 at 0: relative error 3e-9 before rounding.
  Value p = v.polynomial(fraction, {1.0, 0.693147182465, 0.240226477385, 0.0555035956204,
                                    0.00961849931628, 0.00133909704164, 0.000153293105541});
  auto bits = v.vectorOf(v.i32);
  Value power = arith::ShLIOp::create(b, loc, arith::BitcastOp::create(b, loc, bits, shifted),
                                      v.constant(bits, 23));
  return v.mul(p, arith::BitcastOp::create(b, loc, vectorType(), power));
}

// --- control

void KernelBuilder::forRange(Value low, Value high, int64_t step, Body body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
void KernelBuilder::forRange(int64_t low, Value high, int64_t step, Body body) {
  forRange(index(low), high, step, body);
}
void KernelBuilder::forRange(int64_t low, int64_t high, int64_t step, Body body) {
  forRange(index(low), index(high), step, body);
}

SmallVector<Value> KernelBuilder::forRange(Value low, Value high, int64_t step,
                                           ArrayRef<Value> initial, CarryBody body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step), initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried(loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, body(loop.getInductionVar(), carried));
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::ifTrue(Value condition, Block then) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
}
void KernelBuilder::ifTrue(Value condition, Block then, Block otherwise) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
  b.setInsertionPointToStart(op.elseBlock());
  otherwise();
}

} // namespace gradc::codegen
