// Scalars and vectors of kernels.
#include "codegen/kernels/Vectors.h"

#include "codegen/kernels/Float8.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen {

Vectors::Vectors(OpBuilder &builder, Location loc, const VectorTarget &target)
    : builder(builder), loc(loc), lanes(target.lanes), f32(builder.getF32Type()),
      i32(builder.getI32Type()), i64(builder.getI64Type()),
      pointer(LLVM::LLVMPointerType::get(builder.getContext())), hasFma(target.hasFma),
      hasBf16(target.hasBf16), aligned(target.aligned) {}

VectorType Vectors::vectorOf(Type element) const { return VectorType::get({lanes}, element); }

Type Vectors::shapedAs(Type element, Value like) const {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Vectors::constant(Type type, double value) const {
  Type element = getElementTypeOrSelf(type);
  TypedAttr number = isa<FloatType>(element)
                         ? TypedAttr(builder.getFloatAttr(element, value))
                         : builder.getIntegerAttr(element, static_cast<int64_t>(value));
  if (auto vector = dyn_cast<VectorType>(type))
    number = DenseElementsAttr::get(vector, static_cast<Attribute>(number));
  return arith::ConstantOp::create(builder, loc, number);
}

Value Vectors::index(int64_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

Value Vectors::splat(Value scalar) const {
  return vector::BroadcastOp::create(builder, loc, vectorOf(scalar.getType()), scalar);
}

Value Vectors::iota() const {
  SmallVector<int32_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(static_cast<int32_t>(lane));
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(vectorOf(i32), ArrayRef<int32_t>(numbers)));
}

Value Vectors::add(Value x, Value y) const { return arith::AddFOp::create(builder, loc, x, y); }
Value Vectors::sub(Value x, Value y) const { return arith::SubFOp::create(builder, loc, x, y); }
Value Vectors::mul(Value x, Value y) const { return arith::MulFOp::create(builder, loc, x, y); }
Value Vectors::div(Value x, Value y) const { return arith::DivFOp::create(builder, loc, x, y); }

Value Vectors::fma(Value x, Value y, Value z) const {
  if (!hasFma)
    return LLVM::FMulAddOp::create(builder, loc, x.getType(), ValueRange{x, y, z});
  return LLVM::FMAOp::create(builder, loc, x.getType(), ValueRange{x, y, z});
}

static Value bitsOf(const Vectors &v, Value x) {
  return arith::BitcastOp::create(v.builder, v.loc, v.shapedAs(v.i32, x), x);
}
static Value floatOf(const Vectors &v, Value bits) {
  return arith::BitcastOp::create(v.builder, v.loc, v.shapedAs(v.f32, bits), bits);
}

Value Vectors::pairBf16(Value first, Value second) const {
  Value low = bitsOf(*this, first);
  low = arith::ShRUIOp::create(builder, loc, low, constant(low.getType(), 16));
  return floatOf(*this, arith::OrIOp::create(builder, loc, low, bitsOf(*this, second)));
}

Value Vectors::dotBf16(Value x, Value y, Value sum) const {
  if (hasBf16 && lanes == 16) {
    auto pairs = [&](Value words) -> Value {
      Type type = VectorType::get({2 * lanes}, builder.getBF16Type());
      return LLVM::BitcastOp::create(builder, loc, type, words);
    };
    return LLVM::CallIntrinsicOp::create(builder, loc, sum.getType(),
                                         builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                         ValueRange{sum, pairs(x), pairs(y)})
        .getResults();
  }
  auto second = [&](Value words) {
    Value bits = bitsOf(*this, words);
    Value mask = constant(bits.getType(), -65536.0);
    return floatOf(*this, arith::AndIOp::create(builder, loc, bits, mask));
  };
  auto first = [&](Value words) {
    Value bits = bitsOf(*this, words);
    Value sixteen = constant(bits.getType(), 16);
    return floatOf(*this, arith::ShLIOp::create(builder, loc, bits, sixteen));
  };
  return fma(first(x), first(y), fma(second(x), second(y), sum));
}

Value Vectors::maximum(Value x, Value y) const {
  // Without signed zeros this is three instructions on x86 instead of seven.
  return arith::MaximumFOp::create(builder, loc, x, y, arith::FastMathFlags::nsz);
}
Value Vectors::minimum(Value x, Value y) const {
  return arith::MinimumFOp::create(builder, loc, x, y, arith::FastMathFlags::nsz);
}

Value Vectors::limitAbove(Value x, double bound) const {
  Value limit = constant(x.getType(), bound);
  Value less = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, limit, x);
  return arith::SelectOp::create(builder, loc, less, limit, x);
}
Value Vectors::limitBelow(Value x, double bound) const {
  Value limit = constant(x.getType(), bound);
  Value greater = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, limit, x);
  return arith::SelectOp::create(builder, loc, greater, limit, x);
}

Value Vectors::polynomial(Value x, ArrayRef<double> coefficients) const {
  Value sum = constant(x.getType(), coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, constant(x.getType(), coefficient));
  return sum;
}

Value Vectors::addIndex(Value x, Value y) const {
  return arith::AddIOp::create(builder, loc, x, y);
}
Value Vectors::mulIndex(Value x, Value y) const {
  return arith::MulIOp::create(builder, loc, x, y);
}

Value Vectors::firstLanes(int64_t count) const {
  SmallVector<bool> set;
  for (int64_t lane = 0; lane < lanes; ++lane)
    set.push_back(lane < count);
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(vectorOf(builder.getI1Type()), ArrayRef<bool>(set)));
}

Value Vectors::firstLanes(Value count) const {
  // Counts beyond a vector are cut so that they fit the lanes' i32.
  Value cut = arith::MinSIOp::create(builder, loc, count, index(lanes));
  Value limit = splat(arith::TruncIOp::create(builder, loc, i32, cut));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iota(), limit);
}

Type Vectors::memoryType(Dtype dtype) const {
  switch (dtype) {
  case Dtype::f32:
    return f32;
  case Dtype::bf16:
    return builder.getI16Type(); // widened and rounded by integer arithmetic
  case Dtype::f16:
    return builder.getF16Type();
  case Dtype::i32:
    return i32;
  case Dtype::f8e4m3:
  case Dtype::f8e5m2:
    return builder.getI8Type();
  }
  return f32;
}

Value Vectors::elementPointer(Dtype dtype, Value base, Value index) const {
  return LLVM::GEPOp::create(builder, loc, base.getType(), memoryType(dtype), base,
                             ValueRange{index});
}

Value Vectors::elementPointer(Dtype dtype, Value base, int64_t index) const {
  if (index == 0)
    return base;
  return LLVM::GEPOp::create(builder, loc, base.getType(), memoryType(dtype), base,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
}

Value Vectors::widen(Dtype dtype, Value stored) const {
  if (isFloat8(dtype))
    return widenFloat8(*this, dtype, stored);
  Type wide = shapedAs(f32, stored);
  if (dtype == Dtype::f16)
    return arith::ExtFOp::create(builder, loc, wide, stored);
  if (dtype != Dtype::bf16)
    return stored;
  Type bits = shapedAs(i32, stored);
  Value high = arith::ShLIOp::create(
      builder, loc, arith::ExtUIOp::create(builder, loc, bits, stored), constant(bits, 16));
  return arith::BitcastOp::create(builder, loc, wide, high);
}

Value Vectors::narrow(Dtype dtype, Value value) const {
  if (isFloat8(dtype))
    return narrowFloat8(*this, dtype, value);
  if (dtype == Dtype::f16)
    return arith::TruncFOp::create(builder, loc, shapedAs(builder.getF16Type(), value), value);
  if (dtype != Dtype::bf16)
    return value;
  Type stored = shapedAs(builder.getI16Type(), value);
  if (hasBf16) {
    Value rounded =
        arith::TruncFOp::create(builder, loc, shapedAs(builder.getBF16Type(), value), value);
    return arith::BitcastOp::create(builder, loc, stored, rounded);
  }
  // Adding half a unit (one less where the kept part is even) carries exactly when the number is
  // to be rounded up; a NaN, which the carry could turn into an infinity, is made quiet instead.
  Type bitsType = shapedAs(i32, value);
  Value bits = arith::BitcastOp::create(builder, loc, bitsType, value);
  auto shiftDown = [&](Value x) -> Value {
    return arith::ShRUIOp::create(builder, loc, x, constant(bitsType, 16));
  };
  Value odd = arith::AndIOp::create(builder, loc, shiftDown(bits), constant(bitsType, 1));
  Value half = arith::AddIOp::create(builder, loc, odd, constant(bitsType, 0x7fff));
  Value rounded = arith::AddIOp::create(builder, loc, bits, half);
  Value quiet = arith::OrIOp::create(builder, loc, bits, constant(bitsType, 0x400000));
  Value isNan = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
  Value kept = arith::SelectOp::create(builder, loc, isNan, quiet, rounded);
  return arith::TruncIOp::create(builder, loc, stored, shiftDown(kept));
}

Value Vectors::loadScalar(Dtype dtype, Value address) const {
  return widen(
      dtype, LLVM::LoadOp::create(builder, loc, memoryType(dtype), address, row::byteSize(dtype)));
}

unsigned Vectors::vectorAlignment(Dtype dtype) const {
  int64_t bytes = row::byteSize(dtype);
  return static_cast<unsigned>(aligned ? std::min<int64_t>(lanes * bytes, 16) : bytes);
}

/// A branch rather than a mask a lane: where all lanes share it, one instruction does.
Value Vectors::loadWhere(Value condition, VectorType type, Value address,
                         unsigned alignment) const {
  auto branch = scf::IfOp::create(builder, loc, type, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value loaded = LLVM::LoadOp::create(builder, loc, type, address, alignment);
  scf::YieldOp::create(builder, loc, loaded);
  builder.setInsertionPointToStart(branch.elseBlock());
  Value zero = LLVM::ZeroOp::create(builder, loc, type);
  scf::YieldOp::create(builder, loc, zero);
  return branch.getResult(0);
}

Value Vectors::loadVector(Dtype dtype, Value address, Value mask) const {
  VectorType type = vectorOf(memoryType(dtype));
  unsigned alignment = vectorAlignment(dtype);
  if (!mask)
    return widen(dtype, LLVM::LoadOp::create(builder, loc, type, address, alignment));
  if (!isa<VectorType>(mask.getType()))
    return widen(dtype, loadWhere(mask, type, address, alignment));
  Value zero = LLVM::ZeroOp::create(builder, loc, type);
  return widen(dtype, LLVM::MaskedLoadOp::create(builder, loc, type, address, mask, zero,
                                                 builder.getI32IntegerAttr(alignment), UnitAttr()));
}

void Vectors::storeScalar(Dtype dtype, Value value, Value address) const {
  LLVM::StoreOp::create(builder, loc, narrow(dtype, value), address, row::byteSize(dtype));
}

void Vectors::storeVector(Dtype dtype, Value value, Value address, Value mask) const {
  unsigned alignment = vectorAlignment(dtype);
  Value stored = narrow(dtype, value);
  if (!mask) {
    LLVM::StoreOp::create(builder, loc, stored, address, alignment);
  } else if (isa<VectorType>(mask.getType())) {
    LLVM::MaskedStoreOp::create(builder, loc, stored, address, mask, alignment);
  } else {
    auto branch = scf::IfOp::create(builder, loc, mask, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    LLVM::StoreOp::create(builder, loc, stored, address, alignment);
  }
}

Value Vectors::foldLanes(Value vector, function_ref<Value(Value, Value)> combine) const {
  for (int64_t half = lanes / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    Value lower = vector::ShuffleOp::create(builder, loc, vector, vector, low);
    Value upper = vector::ShuffleOp::create(builder, loc, vector, vector, high);
    vector = combine(lower, upper);
  }
  return vector::ExtractOp::create(builder, loc, vector, ArrayRef<int64_t>{0});
}

} // namespace gradc::codegen
