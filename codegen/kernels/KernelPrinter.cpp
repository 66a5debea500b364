// See KernelPrinter.h.
#include "codegen/kernels/KernelPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace gradc::codegen {

// --- i64

Value KernelPrinter::index(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}
Value KernelPrinter::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value KernelPrinter::sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value KernelPrinter::mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
Value KernelPrinter::divide(Value x, int64_t y) {
  return arith::DivUIOp::create(b, loc, x, index(y));
}
Value KernelPrinter::remainder(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, index(y));
}
Value KernelPrinter::minimum(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value KernelPrinter::maximum(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value KernelPrinter::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value KernelPrinter::equal(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}
Value KernelPrinter::either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value KernelPrinter::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value KernelPrinter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

// --- memory

Value KernelPrinter::at(Value pointer, Value elements) {
  return v.elementPointer(row::Dtype::f32, pointer, elements);
}
Value KernelPrinter::at(Value pointer, int64_t elements) {
  return v.elementPointer(row::Dtype::f32, pointer, elements);
}

Value KernelPrinter::loadInt(Value pointer) {
  return arith::ExtSIOp::create(b, loc, v.i64, v.loadScalar(row::Dtype::i32, pointer));
}
void KernelPrinter::storeInt(Value value, Value pointer) {
  v.storeScalar(row::Dtype::i32, arith::TruncIOp::create(b, loc, v.i32, value), pointer);
}
void KernelPrinter::store(Value value, Value pointer) {
  if (isa<VectorType>(value.getType()))
    v.storeVector(row::Dtype::f32, value, pointer, {});
  else
    v.storeScalar(row::Dtype::f32, value, pointer);
}

Value KernelPrinter::loadFirst(Value pointer, int64_t count, row::Dtype dtype) {
  return v.loadVector(dtype, pointer, count < lanes() ? v.firstLanes(count) : Value());
}
void KernelPrinter::storeFirst(Value value, Value pointer, int64_t count, row::Dtype dtype) {
  v.storeVector(dtype, value, pointer, count < lanes() ? v.firstLanes(count) : Value());
}

// --- f32

Value KernelPrinter::greater(Value x, Value y) {
  return select(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y), x, y);
}
Value KernelPrinter::equalF(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
}
Value KernelPrinter::isNan(Value x) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
}
Value KernelPrinter::sumLanes(Value vector) {
  return v.foldLanes(vector, [&](Value x, Value y) { return v.add(x, y); });
}
Value KernelPrinter::maxLanes(Value vector) {
  return v.foldLanes(vector, [&](Value x, Value y) { return greater(x, y); });
}

Value KernelPrinter::exp2(Value x) {
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

void KernelPrinter::forRange(Value low, Value high, int64_t step, Body body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
void KernelPrinter::forRange(int64_t low, Value high, int64_t step, Body body) {
  forRange(index(low), high, step, body);
}
void KernelPrinter::forRange(int64_t low, int64_t high, int64_t step, Body body) {
  forRange(index(low), index(high), step, body);
}

SmallVector<Value> KernelPrinter::forRange(Value low, Value high, int64_t step,
                                           ArrayRef<Value> initial, CarryBody body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step), initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried(loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, body(loop.getInductionVar(), carried));
  return SmallVector<Value>(loop.getResults());
}

void KernelPrinter::ifTrue(Value condition, Block then) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
}
void KernelPrinter::ifTrue(Value condition, Block then, Block otherwise) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
  b.setInsertionPointToStart(op.elseBlock());
  otherwise();
}

} // namespace gradc::codegen
