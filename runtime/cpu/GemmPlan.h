// What is prepared once for each distinct product: how it is cut, and oneDNN primitives for the
// slices, with the memory objects that each thread binds to addresses.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/GemmTiling.h"

namespace gradc::rt {

inline constexpr std::size_t cacheLine = 64;

/// A primitive with, for each thread, memory objects whose addresses are set before each execution.
class BoundPrimitive {
public:
  BoundPrimitive() = default;
  BoundPrimitive(dnnl::primitive primitive,
                 std::vector<std::pair<int, dnnl::memory::desc>> arguments,
                 const dnnl::engine &engine, int threads)
      : primitive_(std::move(primitive)) {
    for (int thread = 0; thread < threads; ++thread) {
      auto &memories = memories_.emplace_back();
      auto &bound = arguments_.emplace_back();
      for (auto &[index, descriptor] : arguments) {
        memories.emplace_back(descriptor, engine, nullptr);
        bound.push_back({index, memories.back().get()});
      }
    }
  }

  /// Addresses in the order of the arguments. Returns false when the library reports a failure.
  bool execute(int thread, const dnnl::stream &stream, std::initializer_list<void *> addresses) {
    auto &bound = arguments_[thread];
    std::size_t i = 0;
    for (void *address : addresses)
      if (dnnl_memory_set_data_handle_v2(bound[i++].memory, address, stream.get()) != dnnl_success)
        return false;
    return dnnl_primitive_execute(primitive_.get(), stream.get(), int(bound.size()),
                                  bound.data()) == dnnl_success;
  }

private:
  dnnl::primitive primitive_;
  std::vector<std::vector<dnnl::memory>> memories_;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments_;
};

struct GemmPlan {
  GemmProblem problem;
  GemmTiling tiling;
  bool packed = false;
  int64_t packedSliceBytes = 0; ///< of a column slice, packed
  // Indexed by whether the slice is the last, shorter one: [row][column] and [column].
  std::array<std::array<BoundPrimitive, 2>, 2> products;
  std::array<BoundPrimitive, 2> packs;
};

/// Prepares plans for one engine and number of threads.
class GemmPlanner {
public:
  GemmPlanner(const dnnl::engine &engine, int threads, GemmPacking packing)
      : engine_(engine), threads_(threads), packing_(packing) {}

  /// Throws dnnl::error where the library refuses the product.
  std::unique_ptr<GemmPlan> prepare(const GemmProblem &problem, int64_t workspaceBytes);

  /// The most that a thread needs for any plan so far.
  std::size_t scratchpadBytes() const { return scratchpadBytes_; }

private:
  void preparePlain(GemmPlan &plan);
  bool preparePacked(GemmPlan &plan, int64_t workspaceBytes);
  BoundPrimitive pack(const dnnl::memory::desc &plain, const dnnl::memory::desc &packed);
  dnnl::matmul::primitive_desc product(const GemmPlan &plan, int64_t rows, int64_t columns,
                                       const dnnl::memory::desc &weights);
  BoundPrimitive bind(const dnnl::matmul::primitive_desc &product);

  dnnl::engine engine_;
  int threads_;
  GemmPacking packing_;
  std::size_t scratchpadBytes_ = 0;
};

} // namespace gradc::rt
