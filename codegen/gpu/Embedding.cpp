// See Embedding.h.
#include "codegen/gpu/Embedding.h"

#include "codegen/gpu/BlockPrinter.h"
#include "codegen/kernels/CeilDiv.h"

#include <algorithm>

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t blockWarps = 8;
/// Vectors of a thread whose loads are on their way together.
constexpr int64_t unroll = 4;

/// Elements of a vector: the most that 16 bytes of the wider type hold, rows divide into and the
/// matrices begin at.
int64_t lanesOf(int64_t channels, int64_t widestBytes, int64_t alignedLanes) {
  int64_t lanes = std::min(std::clamp<int64_t>(widestAccess / widestBytes, 4, 8), alignedLanes);
  while (channels % lanes != 0)
    lanes /= 2;
  return lanes;
}
int64_t lanesOf(const EmbeddingSpec &s) {
  return lanesOf(s.channels, std::max(row::byteSize(s.table), row::byteSize(s.out)),
                 s.alignedLanes);
}
int64_t lanesOf(const EmbeddingGradientSpec &s) { return lanesOf(s.channels, 4, s.alignedLanes); }

/// Columns that a warp owns at once.
int64_t sliceColumns(int64_t lanes) { return unroll * warpThreads * lanes; }
int64_t slices(const EmbeddingGradientSpec &s) {
  return ceilDiv(s.channels, sliceColumns(lanesOf(s)));
}

/// The vectors of a row that a thread of a warp has from column `first` of a slice on.
struct Part {
  SmallVector<Value> columns; ///< i64
  SmallVector<Value> exist;   ///< i1; null: always
};

Part partOf(BlockPrinter &k, Value first, int64_t channels) {
  Part part;
  Value start = k.add(first, k.mul(k.remainder(k.thread(), warpThreads), k.lanes()));
  for (int64_t u = 0; u < unroll; ++u) {
    Value column = k.add(start, u * warpThreads * k.lanes());
    part.columns.push_back(column);
    bool whole = channels % sliceColumns(k.lanes()) == 0;
    part.exist.push_back(whole ? Value() : k.less(column, k.index(channels)));
  }
  return part;
}

} // namespace

int64_t taskCount(const EmbeddingSpec &, int64_t extent) { return ceilDiv(extent, blockWarps); }
int64_t taskCount(const EmbeddingGradientSpec &s, int64_t) {
  return ceilDiv(s.vocab, blockWarps) * slices(s);
}

KernelWork embeddingWork(const EmbeddingSpec &s, int64_t tokens) {
  constexpr int64_t bytes = 4;
  int64_t rows = std::min(tokens, s.vocab);
  KernelWork work;
  work.buffers = {{tokens * bytes, 0, true},
                  {rows * s.channels * row::byteSize(s.table), 0, rows < tokens, rows == tokens},
                  {0, tokens * s.channels * row::byteSize(s.out)}};
  work.leastBytes = work.bytes();
  return work;
}

KernelWork embeddingGradientWork(const EmbeddingGradientSpec &s, int64_t tokens) {
  constexpr int64_t bytes = 4;
  int64_t row = s.channels * bytes, found = std::min(tokens, s.vocab) * row;
  KernelWork work;
  work.buffers = {{tokens * bytes, 0, true},
                  {tokens * s.channels * row::byteSize(s.dy), 0, false, true}};
  if (s.accumulate)
    work.buffers.push_back({found, found, false, true});
  else
    work.buffers.push_back({0, s.vocab * row});
  work.leastBytes = work.bytes();
  work.flops = work.leastFlops = tokens * s.channels;
  return work;
}

LLVM::LLVMFuncOp emitEmbedding(ModuleOp module, StringRef name, const EmbeddingSpec &spec,
                               const GpuTarget &target) {
  BlockPrinter k(module, name, {true, true, true}, blockWarps * warpThreads,
                 target.vectors(lanesOf(spec)));
  Value tokens = k.buffers()[0], table = k.buffers()[1], out = k.buffers()[2];
  Value i = k.add(k.mul(k.task(), blockWarps), k.divide(k.thread(), warpThreads));
  k.ifTrue(k.less(i, k.extent()), [&] {
    Value token = k.loadInt(k.at(tokens, i));
    Value isRow = k.less(k.index(-1), token);
    Value from = k.v.elementPointer(spec.table, table, k.mul(token, spec.channels));
    Value to = k.v.elementPointer(spec.out, out, k.mul(i, spec.channels));
    k.forRange(0, spec.channels, sliceColumns(k.lanes()), [&](Value first) {
      Part part = partOf(k, first, spec.channels);
      SmallVector<Value> loaded;
      for (auto [column, exists] : llvm::zip_equal(part.columns, part.exist)) {
        Value mask = exists ? k.both(isRow, exists) : isRow;
        loaded.push_back(
            k.v.loadVector(spec.table, k.v.elementPointer(spec.table, from, column), mask));
      }
      for (auto [column, exists, x] : llvm::zip_equal(part.columns, part.exist, loaded))
        k.v.storeVector(spec.out, x, k.v.elementPointer(spec.out, to, column), exists);
    });
  });
  return k.finish();
}

namespace {

class GradientEmitter {
public:
  GradientEmitter(BlockPrinter &printer, const EmbeddingGradientSpec &spec)
      : k(printer), spec(spec), lane(k.remainder(k.thread(), warpThreads)) {}

  void emit() {
    Value group = k.divide(k.task(), slices(spec)), slice = k.remainder(k.task(), slices(spec));
    Value row = k.add(k.mul(group, blockWarps), k.divide(k.thread(), warpThreads));
    k.ifTrue(k.less(row, k.index(spec.vocab)), [&] { // the same for a whole warp
      part = partOf(k, k.mul(slice, sliceColumns(k.lanes())), spec.channels);
      SmallVector<Value> state(unroll, k.reals(0));
      state.push_back(k.index(0)); // how many rows of dy went into the sums
      state = k.forRange(k.index(0), k.extent(), unroll * warpThreads, state,
                         [&](Value first, ArrayRef<Value> current) {
                           return addStep(row, first, SmallVector<Value>(current));
                         });
      Value found = k.less(k.index(0), state.back());
      auto sums = ArrayRef<Value>(state).drop_back();
      if (spec.accumulate)
        k.ifTrue(found, [&] { store(row, sums); });
      else
        store(row, sums);
    });
  }

private:
  /// Adds the rows of dy whose tokens, of a few warps' many from `first` on, name the row.
  SmallVector<Value> addStep(Value row, Value first, SmallVector<Value> state) {
    SmallVector<Value> words;
    for (int64_t u = 0; u < unroll; ++u) {
      Value token = loadToken(k.add(k.add(first, u * warpThreads), lane));
      words.push_back(k.ballot(k.equal(token, row)));
    }
    for (auto [u, word] : llvm::enumerate(words))
      state = addMatches(word, k.add(first, static_cast<int64_t>(u) * warpThreads), state);
    return state;
  }

  /// The same for the bits of a word, of tokens from `first` on.
  SmallVector<Value> addMatches(Value matches, Value first, ArrayRef<Value> state) {
    OpBuilder &b = k.builder();
    SmallVector<Value> initial(state);
    initial.push_back(matches);
    SmallVector<Type> types;
    for (Value value : initial)
      types.push_back(value.getType());
    auto loop = scf::WhileOp::create(
        b, k.location(), types, initial,
        [&](OpBuilder &inner, Location loc, ValueRange current) {
          OpBuilder::InsertionGuard guard(b);
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          Value left = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, current.back(),
                                             k.v.constant(k.v.i32, 0));
          scf::ConditionOp::create(b, loc, left, current);
        },
        [&](OpBuilder &inner, Location loc, ValueRange current) {
          OpBuilder::InsertionGuard guard(b);
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          scf::YieldOp::create(b, loc, addFirstMatch(first, SmallVector<Value>(current)));
        });
    return SmallVector<Value>(loop.getResults().drop_back());
  }

  /// -1, which no row is numbered, beyond the extent.
  Value loadToken(Value place) {
    Value exists = k.less(place, k.extent());
    Value safe = k.select(exists, place, k.index(0));
    return k.select(exists, k.loadInt(k.at(k.buffers()[0], safe)), k.index(-1));
  }

  /// State and the bits of matches, after the lowest of them.
  SmallVector<Value> addFirstMatch(Value first, SmallVector<Value> state) {
    OpBuilder &b = k.builder();
    Value matches = state.back();
    Value bit = LLVM::CountTrailingZerosOp::create(b, k.location(), k.v.i32, matches,
                                                   /*is_zero_poison=*/true);
    Value i = k.add(first, arith::ExtUIOp::create(b, k.location(), k.v.i64, bit));
    Value from = k.v.elementPointer(spec.dy, k.buffers()[1], k.mul(i, spec.channels));
    SmallVector<Value> loaded;
    for (auto [column, exists] : llvm::zip_equal(part.columns, part.exist))
      loaded.push_back(k.v.loadVector(spec.dy, k.v.elementPointer(spec.dy, from, column), exists));
    for (auto [u, x] : llvm::enumerate(loaded))
      state[u] = k.v.add(state[u], x);
    state[unroll] = k.add(state[unroll], 1);
    Value less = arith::SubIOp::create(b, k.location(), matches, k.v.constant(k.v.i32, 1));
    state.back() = arith::AndIOp::create(b, k.location(), matches, less);
    return state;
  }

  void store(Value row, ArrayRef<Value> sums) {
    Value to = k.at(k.buffers()[2], k.mul(row, spec.channels));
    for (auto [column, exists, sum] : llvm::zip_equal(part.columns, part.exist, sums)) {
      Value address = k.at(to, column), x = sum;
      if (spec.accumulate)
        x = k.v.add(k.v.loadVector(Dtype::f32, address, exists), x);
      k.v.storeVector(Dtype::f32, x, address, exists);
    }
  }

  BlockPrinter &k;
  const EmbeddingGradientSpec &spec;
  Value lane;
  Part part;
};

} // namespace

LLVM::LLVMFuncOp emitEmbeddingGradient(ModuleOp module, StringRef name,
                                       const EmbeddingGradientSpec &spec, const GpuTarget &target) {
  BlockPrinter k(module, name, {true, true, true}, blockWarps * warpThreads,
                 target.vectors(lanesOf(spec)));
  GradientEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen::gpu
