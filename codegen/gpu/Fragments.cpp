// See Fragments.h.
#include "codegen/gpu/Fragments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

Bands zeroBands(Emit &e, int64_t bands, int64_t columns) {
  Val zero = e.real(0);
  return Bands(bands, std::vector<FragmentC>(columns / fragmentColumns,
                                             FragmentC{{zero, zero, zero, zero}}));
}

Variables variablesOf(Bands &bands) {
  Variables all;
  for (auto &band : bands)
    for (FragmentC &fragment : band)
      for (Val &x : fragment.c)
        all.push_back(&x);
  return all;
}

FragmentA asOperand(Emit &e, Dtype dtype, const FragmentC &left, const FragmentC &right) {
  auto half = [&](const FragmentC &from, int h) {
    return e.pack(dtype, from.c[2 * h], from.c[2 * h + 1]);
  };
  Val low = half(left, 0), lowBelow = half(left, 1);
  Val high = half(right, 0), highBelow = half(right, 1);
  return {{low, lowBelow, high, highBelow}};
}

void multiplyAdd(Emit &e, Dtype dtype, FragmentC &c, const FragmentA &a, const FragmentB &b) {
  Type pair = VectorType::get({2}, e.builder().getF16Type());
  auto operands = [&](ArrayRef<Val> from) {
    SmallVector<Value> values;
    for (Val x : from)
      values.push_back(dtype == Dtype::f16 ? e.bits(x, pair).v : x.v);
    return values;
  };
  SmallVector<Value> sums;
  for (Val x : c.c)
    sums.push_back(x.v);
  auto type = dtype == Dtype::f16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  auto result =
      LLVM::LLVMStructType::getLiteral(e.builder().getContext(), SmallVector<Type>(4, e.f32()));
  SmallVector<Value> left = operands(a.r), right = operands(b.r);
  Value product = NVVM::MmaOp::create(e.builder(), e.location(), result, left, right, sums,
                                      ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
                                      std::array{type, type},
                                      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, x] : llvm::enumerate(c.c))
    x = e.of(
        LLVM::ExtractValueOp::create(e.builder(), e.location(), product, static_cast<int64_t>(i)));
}

Place::Place(Val thread)
    : thread(thread), warp(thread / warpThreads), lane(thread % warpThreads), quad(lane / 4),
      member(lane % 4) {}

Val anyInBlock(Emit &e, const Place &place, Val condition, Val flags, int64_t warps) {
  Val inWarp = e.any(condition);
  e.when(e.equal(place.lane, 0), {}, [&] {
    e.store(e.select(inWarp, e.number(1), e.number(0)), e.at(flags, place.warp * 4), 4);
  });
  e.k.barrier();
  Val all = e.load(e.i32(), flags, 4);
  for (int64_t warp = 1; warp < warps; ++warp)
    all = all | e.load(e.i32(), e.at(flags, 4 * warp), 4);
  return e.less(e.number(0), all);
}

} // namespace gradc::codegen::gpu
