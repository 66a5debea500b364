// See Embedding.h.
#include "codegen/cpu/Embedding.h"
#include "codegen/cpu/KernelBuilder.h"
#include "codegen/kernels/CeilDiv.h"

#include <algorithm>

using namespace mlir;
namespace gradc::codegen {

int64_t taskCount(const EmbeddingSpec &, int64_t extent) {
  return ceilDiv(extent, embeddingRowsPerTask);
}
int64_t taskCount(const EmbeddingGradientSpec &s, int64_t) {
  return ceilDiv(s.channels, embeddingColumnsPerTask);
}

int64_t embeddingFlops(const EmbeddingSpec &, int64_t) { return 0; }
int64_t embeddingFlops(const EmbeddingGradientSpec &s, int64_t extent) {
  return extent * s.channels;
}

int64_t embeddingBytes(const EmbeddingSpec &s, int64_t extent) {
  return extent * ((row::byteSize(s.table) + row::byteSize(s.out)) * s.channels + 4);
}
int64_t embeddingBytes(const EmbeddingGradientSpec &s, int64_t extent) {
  // Rows that are added to are read and written; without `accumulate` all are written as well.
  int64_t touched = std::min(extent, s.vocab), written = s.accumulate ? 0 : s.vocab;
  int64_t read = extent * (row::byteSize(s.dy) * s.channels + 4);
  return read + 4 * (2 * touched + written) * s.channels;
}

/// body(column, count) for the vectors of [first, end), the last with `count` live lanes or fewer:
/// `channels` is where the row ends.
static void forColumns(KernelBuilder &k, Value first, Value end, int64_t channels,
                       llvm::function_ref<void(Value column, int64_t count)> body) {
  int64_t rest = channels % k.lanes();
  Value whole = k.minimum(end, channels - rest);
  k.forRange(first, whole, k.lanes(), [&](Value column) { body(column, k.lanes()); });
  if (rest > 0)
    k.ifTrue(k.less(whole, end), [&] { body(whole, rest); });
}

func::FuncOp emitEmbedding(ModuleOp module, StringRef name, const EmbeddingSpec &spec,
                           const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  Value tokens = k.buffer(0), table = k.buffer(1), out = k.buffer(2);
  Value first = k.mul(k.task(), embeddingRowsPerTask);
  Value end = k.minimum(k.add(first, embeddingRowsPerTask), k.extent());
  Value zero = k.index(0), channels = k.index(spec.channels);
  k.forRange(first, end, 1, [&](Value i) {
    Value token = k.loadInt(k.at(tokens, i));
    Value to = k.v.elementPointer(spec.out, out, k.mul(i, spec.channels));
    auto write = [&](llvm::function_ref<Value(Value column, int64_t count)> value) {
      forColumns(k, zero, channels, spec.channels, [&](Value column, int64_t count) {
        k.storeFirst(value(column, count), k.v.elementPointer(spec.out, to, column), count,
                     spec.out);
      });
    };
    k.ifTrue(
        k.less(token, zero), [&] { write([&](Value, int64_t) { return k.reals(0); }); },
        [&] {
          Value row = k.v.elementPointer(spec.table, table, k.mul(token, spec.channels));
          write([&](Value column, int64_t count) {
            return k.loadFirst(k.v.elementPointer(spec.table, row, column), count, spec.table);
          });
        });
  });
  return k.finish();
}

func::FuncOp emitEmbeddingGradient(ModuleOp module, StringRef name,
                                   const EmbeddingGradientSpec &spec, const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  Value tokens = k.buffer(0), dy = k.buffer(1), out = k.buffer(2);
  Value first = k.mul(k.task(), embeddingColumnsPerTask);
  Value end = k.minimum(k.add(first, embeddingColumnsPerTask), spec.channels);
  auto columns = [&](llvm::function_ref<void(Value column, int64_t count)> body) {
    forColumns(k, first, end, spec.channels, body);
  };
  if (!spec.accumulate)
    k.forRange(0, spec.vocab, 1, [&](Value token) {
      Value row = k.at(out, k.mul(token, spec.channels));
      columns(
          [&](Value column, int64_t count) { k.storeFirst(k.reals(0), k.at(row, column), count); });
    });
  k.forRange(0, k.extent(), 1, [&](Value i) {
    Value token = k.loadInt(k.at(tokens, i));
    k.ifTrue(
        k.less(token, k.index(0)), [] {},
        [&] {
          Value row = k.at(out, k.mul(token, spec.channels));
          Value from = k.v.elementPointer(spec.dy, dy, k.mul(i, spec.channels));
          columns([&](Value column, int64_t count) {
            Value place = k.at(row, column);
            Value x = k.loadFirst(k.v.elementPointer(spec.dy, from, column), count, spec.dy);
            k.storeFirst(k.v.add(k.loadFirst(place, count), x), place, count);
          });
        });
  });
  return k.finish();
}

} // namespace gradc::codegen
