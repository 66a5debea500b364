// Matrices in the registers of a warp, as mma.m16n8k16 holds them: thread t of the warp has rows
// t / 4 and t / 4 + 8, and in each eight columns 2 (t % 4) and the next.
#pragma once

#include "codegen/gpu/Emit.h"

#include <array>

namespace gradc::codegen::gpu {

/// 16 rows x 16 columns of 16-bit elements, pairs in an i32.
struct FragmentA {
  std::array<Val, 4> r;
};
/// 16 rows (of the sum's depth) x 8 columns.
struct FragmentB {
  std::array<Val, 2> r;
};
/// 16 x 8 f32: c[2h + p] is in row t / 4 + 8h, column 2 (t % 4) + p.
struct FragmentC {
  std::array<Val, 4> c;
  /// value = f(value, h, p)
  template <typename F> void map(F f) {
    for (int i = 0; i < 4; ++i)
      c[i] = f(c[i], i / 2, i % 2);
  }
};

/// Bands of 16 rows, each of fragments side by side.
using Bands = std::vector<std::vector<FragmentC>>;
inline constexpr int64_t bandRows = 16, fragmentColumns = 8;

Bands zeroBands(Emit &e, int64_t bands, int64_t columns);
Variables variablesOf(Bands &bands);

/// Two neighbours as the A operand of the next product, rounded: the layouts are the same.
FragmentA asOperand(Emit &e, row::Dtype dtype, const FragmentC &left, const FragmentC &right);

/// c += a b, the products of 16-bit elements being summed in f32.
void multiplyAdd(Emit &e, row::Dtype dtype, FragmentC &c, const FragmentA &a, const FragmentB &b);

/// Where a thread stands.
struct Place {
  Val thread;     ///< in the block
  Val warp, lane; ///< the thread's warp, and itself in it
  Val quad;       ///< lane / 4: its row in fragments
  Val member;     ///< lane % 4: half of its column
  explicit Place(Val thread);
};

/// Whether a condition holds for any thread of the block; a barrier for all of them. `flags` is
/// shared memory of an i32 a warp that nothing else uses.
Val anyInBlock(Emit &e, const Place &place, Val condition, Val flags, int64_t warps);

} // namespace gradc::codegen::gpu
