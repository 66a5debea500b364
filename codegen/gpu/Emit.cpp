// See Emit.h.
#include "codegen/gpu/Emit.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

bool isFloat(Val x) { return isa<FloatType>(getElementTypeOrSelf(x.v)); }

template <typename Op> Val binary(Val x, Val y) {
  return x.e->of(Op::create(x.e->builder(), x.e->location(), x.v, y.v));
}
template <typename FloatOp, typename IntOp> Val arithmetic(Val x, Val y) {
  return isFloat(x) ? binary<FloatOp>(x, y) : binary<IntOp>(x, y);
}
Val likeOf(Val x, int64_t value) { return x.e->number(x.v.getType(), value); }

} // namespace

Val operator+(Val x, Val y) { return arithmetic<arith::AddFOp, arith::AddIOp>(x, y); }
Val operator-(Val x, Val y) { return arithmetic<arith::SubFOp, arith::SubIOp>(x, y); }
Val operator*(Val x, Val y) { return arithmetic<arith::MulFOp, arith::MulIOp>(x, y); }
Val operator/(Val x, Val y) { return arithmetic<arith::DivFOp, arith::DivUIOp>(x, y); }
Val operator%(Val x, Val y) { return binary<arith::RemUIOp>(x, y); }
Val operator&(Val x, Val y) { return binary<arith::AndIOp>(x, y); }
Val operator|(Val x, Val y) { return binary<arith::OrIOp>(x, y); }
Val operator^(Val x, Val y) { return binary<arith::XOrIOp>(x, y); }
Val operator>>(Val x, Val y) { return binary<arith::ShRUIOp>(x, y); }
Val operator<<(Val x, Val y) { return binary<arith::ShLIOp>(x, y); }
Val operator+(Val x, int64_t y) { return y == 0 ? x : x + likeOf(x, y); }
Val operator-(Val x, int64_t y) { return y == 0 ? x : x - likeOf(x, y); }
Val operator*(Val x, int64_t y) { return y == 1 ? x : x * likeOf(x, y); }
Val operator/(Val x, int64_t y) { return y == 1 ? x : x / likeOf(x, y); }
Val operator%(Val x, int64_t y) { return x % likeOf(x, y); }
Val operator&(Val x, int64_t y) { return x & likeOf(x, y); }
Val operator^(Val x, int64_t y) { return y == 0 ? x : x ^ likeOf(x, y); }
Val operator>>(Val x, int64_t y) { return y == 0 ? x : x >> likeOf(x, y); }

Val Emit::number(int64_t value) { return number(i32(), value); }
Val Emit::number(Type type, int64_t value) {
  return of(arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value)));
}
Val Emit::truth(bool value) { return of(arith::ConstantOp::create(b, loc, b.getBoolAttr(value))); }
Val Emit::real(double value) {
  return of(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value))));
}
Val Emit::widen(Val x) { return of(arith::ExtUIOp::create(b, loc, k.v.i64, x.v)); }
Val Emit::narrow(Val x) { return of(arith::TruncIOp::create(b, loc, i32(), x.v)); }

Val Emit::less(Val x, Val y) {
  if (isFloat(x))
    return of(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x.v, y.v));
  return of(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x.v, y.v));
}
Val Emit::lessUnsigned(Val x, Val y) {
  return of(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x.v, y.v));
}
Val Emit::equal(Val x, Val y) {
  if (isFloat(x))
    return of(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x.v, y.v));
  return of(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x.v, y.v));
}
Val Emit::select(Val condition, Val x, Val y) {
  return of(arith::SelectOp::create(b, loc, condition.v, x.v, y.v));
}
Val Emit::minimum(Val x, Val y) { return of(arith::MinSIOp::create(b, loc, x.v, y.v)); }
Val Emit::maximum(Val x, Val y) { return of(arith::MaxSIOp::create(b, loc, x.v, y.v)); }

// --- f32

Val Emit::fma(Val x, Val y, Val z) { return of(k.v.fma(x.v, y.v, z.v)); }
Val Emit::negate(Val x) { return of(arith::NegFOp::create(b, loc, x.v)); }
Val Emit::greater(Val x, Val y) { return of(arith::MaxNumFOp::create(b, loc, x.v, y.v)); }

static Val intrinsic(Emit &e, StringRef name, Val x) {
  return e.of(LLVM::CallIntrinsicOp::create(e.builder(), e.location(), x.v.getType(),
                                            e.builder().getStringAttr(name), ValueRange{x.v})
                  ->getResult(0));
}
Val Emit::exp2(Val x) { return intrinsic(*this, "llvm.nvvm.ex2.approx.ftz.f32", x); }
Val Emit::log2(Val x) { return intrinsic(*this, "llvm.nvvm.lg2.approx.f", x); }

Val Emit::isNan(Val x) {
  return of(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x.v, x.v));
}
Val Emit::notZero(Val x) {
  return of(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x.v, real(0).v));
}
Val Emit::bits(Val x, Type type) { return of(LLVM::BitcastOp::create(b, loc, type, x.v)); }
Val Emit::element(Val vector, int64_t index) {
  return of(LLVM::ExtractElementOp::create(b, loc, vector.v, number(index).v));
}

static VectorType pairOf(Emit &e, Dtype dtype) {
  Type element = dtype == Dtype::bf16 ? Type(e.builder().getBF16Type()) : e.builder().getF16Type();
  return VectorType::get({2}, element);
}
Val Emit::pack(Dtype dtype, Val low, Val high) {
  Value pair = LLVM::PoisonOp::create(b, loc, VectorType::get({2}, f32()));
  pair = LLVM::InsertElementOp::create(b, loc, pair, low.v, number(0).v);
  pair = LLVM::InsertElementOp::create(b, loc, pair, high.v, number(1).v);
  return bits(of(arith::TruncFOp::create(b, loc, pairOf(*this, dtype), pair)), i32());
}
std::pair<Val, Val> Emit::unpack(Dtype dtype, Val pair) {
  Val wide = of(arith::ExtFOp::create(b, loc, VectorType::get({2}, f32()),
                                      bits(pair, pairOf(*this, dtype)).v));
  return {element(wide, 0), element(wide, 1)};
}

// --- memory

Val Emit::at(Val pointer, Val bytes) {
  return of(LLVM::GEPOp::create(b, loc, pointer.v.getType(), b.getI8Type(), pointer.v,
                                ArrayRef<LLVM::GEPArg>{bytes.v}));
}
Val Emit::at(Val pointer, int64_t bytes) {
  return bytes == 0 ? pointer : at(pointer, number(k.v.i64, bytes));
}
Val Emit::load(Type type, Val pointer, int64_t alignment) {
  return of(LLVM::LoadOp::create(b, loc, type, pointer.v, static_cast<unsigned>(alignment)));
}
Val Emit::loadVector(int64_t count, Type element, Val pointer) {
  return load(VectorType::get({count}, element), pointer,
              count * element.getIntOrFloatBitWidth() / 8);
}
void Emit::store(Val value, Val pointer, int64_t alignment) {
  LLVM::StoreOp::create(b, loc, value.v, pointer.v, static_cast<unsigned>(alignment));
}
void Emit::copyAsync(Val to, Val from, Val exists, int64_t bytes) {
  Val count = select(exists, number(bytes), number(0));
  // Past the first-level cache, where the instruction can.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(b, loc, to.v, from.v, static_cast<uint32_t>(bytes), cache, count.v);
}
void Emit::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }
void Emit::waitCopies() { NVVM::CpAsyncWaitGroupOp::create(b, loc, uint32_t{0}); }

// --- warps

static Val shuffle(Emit &e, NVVM::ShflKind kind, Val x, Val operand) {
  return e.of(NVVM::ShflOp::create(e.builder(), e.location(), x.v.getType(), e.number(-1).v, x.v,
                                   operand.v, e.number(warpThreads - 1).v, kind, UnitAttr()));
}
Val Emit::exchange(Val x, int64_t distance) {
  return shuffle(*this, NVVM::ShflKind::bfly, x, number(distance));
}
Val Emit::from(Val x, Val lane) { return shuffle(*this, NVVM::ShflKind::idx, x, lane); }
Val Emit::any(Val condition) {
  return of(NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), number(-1).v, condition.v,
                                     NVVM::VoteSyncKind::any));
}
Val Emit::quadSum(Val x) {
  x = x + exchange(x, 1);
  return x + exchange(x, 2);
}
Val Emit::quadGreatest(Val x) {
  x = greater(x, exchange(x, 1));
  return greater(x, exchange(x, 2));
}
Val Emit::warpMinimum(Val x) {
  for (int64_t distance = warpThreads / 2; distance > 0; distance /= 2)
    x = minimum(x, exchange(x, distance));
  return x;
}
Val Emit::warpMaximum(Val x) {
  for (int64_t distance = warpThreads / 2; distance > 0; distance /= 2)
    x = maximum(x, exchange(x, distance));
  return x;
}

// --- control

static SmallVector<Value> valuesOf(const Variables &variables) {
  SmallVector<Value> values;
  for (Val *x : variables)
    values.push_back(x->v);
  return values;
}
static void assign(const Variables &variables, ValueRange values) {
  for (auto [x, value] : llvm::zip_equal(variables, values))
    x->v = value;
}

void Emit::loop(Val low, Val high, const Variables &carried, function_ref<void(Val)> body) {
  auto loop = scf::ForOp::create(b, loc, low.v, high.v, number(1).v, valuesOf(carried));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  assign(carried, loop.getRegionIterArgs());
  body(of(loop.getInductionVar()));
  if (!carried.empty()) // without, the loop already ends as it must
    scf::YieldOp::create(b, loc, valuesOf(carried));
  assign(carried, loop.getResults());
}

void Emit::when(Val condition, const Variables &assigned, Body body) {
  SmallVector<Value> before = valuesOf(assigned);
  auto op = scf::IfOp::create(b, loc, ValueRange(before).getTypes(), condition.v,
                              /*withElseRegion=*/!assigned.empty());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  body();
  if (assigned.empty())
    return;
  scf::YieldOp::create(b, loc, valuesOf(assigned));
  b.setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(b, loc, before);
  assign(assigned, op.getResults());
}

} // namespace gradc::codegen::gpu
