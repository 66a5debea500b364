// Elementary functions as polynomials and quotients of polynomials. The coefficients are minimax
// fits in relative error (weighted least squares on Chebyshev points, in 40-digit arithmetic).
#include "codegen/kernels/VectorMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

using namespace mlir;
using gradc::row::NodeKind;

namespace gradc::codegen {

namespace {

// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
constexpr double ln2High = 0.693359375;
constexpr double ln2Low = -2.12194440054690583e-4;

Value asBits(const Vectors &v, Value x) {
  return arith::BitcastOp::create(v.builder, v.loc, v.shapedAs(v.i32, x), x);
}
Value asFloat(const Vectors &v, Value bits) {
  return arith::BitcastOp::create(v.builder, v.loc, v.shapedAs(v.f32, bits), bits);
}
Value compare(const Vectors &v, arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(v.builder, v.loc, predicate, x, y);
}
Value select(const Vectors &v, Value condition, Value x, Value y) {
  return arith::SelectOp::create(v.builder, v.loc, condition, x, y);
}

} // namespace

Value emitExp(const Vectors &v, Value x) {
  Type type = x.getType();
  auto number = [&](double value) { return v.constant(type, value); };
  x = v.limitAbove(v.limitBelow(x, -87.5), 89.0);

  // exp(x) = 2^n exp(r), |r| <= ln(2)/2. Adding 1.5 * 2^23 rounds to an integer and leaves n in the
  // low bits; 126 more makes them the exponent field of 2^(n-1), whose factor 2 the polynomial
  // carries: so n = 128 is reached without overflow, and n = -126 gives 0.
  constexpr double magic = 12582912.0 + 126.0;
  Value rounded = v.fma(x, number(1.44269504088896341), number(magic));
  Value n = arith::SubFOp::create(v.builder, v.loc, rounded, number(magic));
  Value scale = asFloat(v, arith::ShLIOp::create(v.builder, v.loc, asBits(v, rounded),
                                                 v.constant(v.shapedAs(v.i32, x), 23)));
  Value r = v.fma(n, number(-ln2High), x);
  r = v.fma(n, number(-ln2Low), r);
  // Pairs rather than one chain: loops over exp wait for results more than for arithmetic units.
  Value square = v.mul(r, r);
  Value low = v.polynomial(r, {2.0, 2.0});
  Value middle = v.polynomial(r, {2 * 0.499999933661, 2 * 0.166665194715});
  Value high = v.polynomial(r, {2 * 0.0416684026092, 2 * 0.00836885584451, 2 * 0.00138142441947});
  Value twice = v.fma(v.fma(high, square, middle), square, low);
  return v.mul(twice, scale);
}

Value emitLog(const Vectors &v, Value x) {
  Type type = x.getType(), bitsType = v.shapedAs(v.i32, x);
  auto number = [&](double value) { return v.constant(type, value); };
  auto integer = [&](int64_t value) { return v.constant(bitsType, static_cast<double>(value)); };
  // Denormal numbers are scaled up by 2^24 first.
  Value tiny = compare(v, arith::CmpFPredicate::OLT, x, number(1.17549435e-38));
  Value scaled = select(v, tiny, v.mul(x, number(16777216.0)), x);
  Value bias = select(v, tiny, number(24.0), number(0.0));

  // x = 2^e m with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) makes e the field.
  constexpr int64_t sqrtHalf = 0x3f3504f3;
  Value offset = arith::SubIOp::create(v.builder, v.loc, asBits(v, scaled), integer(sqrtHalf));
  Value exponent = arith::ShRSIOp::create(v.builder, v.loc, offset, integer(23));
  Value mantissa = arith::AddIOp::create(
      v.builder, v.loc, arith::AndIOp::create(v.builder, v.loc, offset, integer(0x7fffff)),
      integer(sqrtHalf));
  Value e = v.sub(arith::SIToFPOp::create(v.builder, v.loc, type, exponent), bias);
  Value f = v.sub(asFloat(v, mantissa), number(1.0));

  // log(1 + f) = f - f^2/2 + f^3 P(f)
  Value square = arith::MulFOp::create(v.builder, v.loc, f, f);
  Value p = v.polynomial(f, {0.333333104329, -0.249999867912, 0.200022270032, -0.166692405551,
                             0.142186437615, -0.123845183073, 0.118732423826, -0.117889139612,
                             0.0691371605373});
  Value tail = v.mul(v.mul(p, f), square);
  tail = v.fma(e, number(ln2Low), tail);
  tail = v.fma(square, number(-0.5), tail);
  Value result = v.fma(e, number(ln2High), v.add(f, tail));

  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value isInfinite = compare(v, arith::CmpFPredicate::OEQ, x, number(infinity));
  result = select(v, isInfinite, x, result);
  Value isZero = compare(v, arith::CmpFPredicate::OEQ, x, number(0.0));
  result = select(v, isZero, number(-infinity), result);
  Value valid = compare(v, arith::CmpFPredicate::OGE, x, number(0.0));
  return select(v, valid, result, number(std::numeric_limits<double>::quiet_NaN()));
}

Value emitSqrt(const Vectors &v, Value x) {
  return LLVM::SqrtOp::create(v.builder, v.loc, x.getType(), ValueRange{x});
}

Value emitRsqrt(const Vectors &v, Value x) {
  return v.div(v.constant(x.getType(), 1.0), emitSqrt(v, x));
}

/// A sigmoid curve's value: 1 with the sign of x from `bound` on, else `value` cut to [-1, 1].
static Value saturate(const Vectors &v, Value x, double bound, Value value) {
  Type type = x.getType();
  value = v.limitAbove(v.limitBelow(value, -1.0), 1.0);
  Value magnitude = LLVM::FAbsOp::create(v.builder, v.loc, type, ValueRange{x});
  Value beyond = compare(v, arith::CmpFPredicate::OGE, magnitude, v.constant(type, bound));
  Value one =
      LLVM::CopySignOp::create(v.builder, v.loc, type, ValueRange{v.constant(type, 1.0), x});
  return select(v, beyond, one, value);
}

Value emitTanh(const Vectors &v, Value x) {
  Value square = v.mul(x, x);
  Value p = v.polynomial(square, {0.999999998729, 0.136798733607, 0.00386827414148,
                                  2.80063035792e-5, 3.05819943566e-8, -1.22010405932e-11});
  Value q = v.polynomial(
      square, {1.0, 0.470132054407, 0.0272456460535, 0.000393853387662, 1.28728236368e-6});
  // From 9.02 on the nearest f32 is 1.
  return saturate(v, x, 9.02, v.div(v.mul(x, p), q));
}

Value emitErf(const Vectors &v, Value x) {
  Value square = v.mul(x, x);
  Value p = v.polynomial(square, {1.12837914636, 0.190567442609, 0.052764983428, 0.00377117891489,
                                  0.000284773104653, 2.04572590345e-6});
  Value q = v.polynomial(square, {1.0, 0.502218739569, 0.114171087179, 0.0149805002557,
                                  0.00116345013602, 3.80409282545e-5});
  // From 3.925 on the nearest f32 is 1.
  return saturate(v, x, 3.925, v.div(v.mul(x, p), q));
}

namespace {

Value emitCompare(const Vectors &v, NodeKind kind, Value x, Value y) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) {
    auto predicate = kind == NodeKind::lessThan    ? arith::CmpFPredicate::OLT
                     : kind == NodeKind::lessEqual ? arith::CmpFPredicate::OLE
                                                   : arith::CmpFPredicate::OEQ;
    return compare(v, predicate, x, y);
  }
  auto predicate = kind == NodeKind::lessThan    ? arith::CmpIPredicate::slt
                   : kind == NodeKind::lessEqual ? arith::CmpIPredicate::sle
                                                 : arith::CmpIPredicate::eq;
  return arith::CmpIOp::create(v.builder, v.loc, predicate, x, y);
}

Value emitExponentPart(const Vectors &v, Value x) {
  constexpr double exponentBits = 0x7f800000;
  Type type = v.shapedAs(v.i32, x);
  Value bits = arith::BitcastOp::create(v.builder, v.loc, type, x);
  Value kept = arith::AndIOp::create(v.builder, v.loc, bits, v.constant(type, exponentBits));
  return arith::BitcastOp::create(v.builder, v.loc, x.getType(), kept);
}

} // namespace

Value emitPointwise(const Vectors &v, NodeKind kind, ArrayRef<Value> operands) {
  Value x = operands[0];
  switch (kind) {
  case NodeKind::add:
    return v.add(x, operands[1]);
  case NodeKind::sub:
    return v.sub(x, operands[1]);
  case NodeKind::mul:
    return v.mul(x, operands[1]);
  case NodeKind::div:
    return v.div(x, operands[1]);
  case NodeKind::maximum:
    return v.maximum(x, operands[1]);
  case NodeKind::minimum:
    return v.minimum(x, operands[1]);
  case NodeKind::neg:
    return arith::NegFOp::create(v.builder, v.loc, x);
  case NodeKind::exp:
    return emitExp(v, x);
  case NodeKind::log:
    return emitLog(v, x);
  case NodeKind::sqrt:
    return emitSqrt(v, x);
  case NodeKind::rsqrt:
    return emitRsqrt(v, x);
  case NodeKind::tanh:
    return emitTanh(v, x);
  case NodeKind::erf:
    return emitErf(v, x);
  case NodeKind::roundBf16:
    return v.round(row::Dtype::bf16, x);
  case NodeKind::roundF16:
    return v.round(row::Dtype::f16, x);
  case NodeKind::roundF8E4M3:
    return v.round(row::Dtype::f8e4m3, x);
  case NodeKind::roundF8E5M2:
    return v.round(row::Dtype::f8e5m2, x);
  case NodeKind::exponentPart:
    return emitExponentPart(v, x);
  case NodeKind::lessThan:
  case NodeKind::lessEqual:
  case NodeKind::equal:
    return emitCompare(v, kind, x, operands[1]);
  case NodeKind::logicalAnd:
    return arith::AndIOp::create(v.builder, v.loc, x, operands[1]);
  case NodeKind::select:
    return select(v, x, operands[1], operands[2]);
  case NodeKind::addInt:
    return arith::AddIOp::create(v.builder, v.loc, x, operands[1]);
  case NodeKind::mulInt:
    return arith::MulIOp::create(v.builder, v.loc, x, operands[1]);
  case NodeKind::remainderInt: {
    // A divisor of 0, which a masked lane reads, would trap.
    Value one = v.constant(x.getType(), 1);
    Value divisor = arith::MaxSIOp::create(v.builder, v.loc, operands[1], one);
    return arith::RemSIOp::create(v.builder, v.loc, x, divisor);
  }
  default:
    llvm_unreachable("leaves and reductions are not pointwise");
  }
}

} // namespace gradc::codegen
