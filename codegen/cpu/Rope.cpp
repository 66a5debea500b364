// See Rope.h.
#include "codegen/cpu/Rope.h"
#include "codegen/cpu/KernelBuilder.h"
#include "codegen/kernels/CeilDiv.h"

#include <algorithm>

using namespace mlir;
namespace gradc::codegen {

int64_t taskCount(const RopeSpec &, int64_t extent) { return ceilDiv(extent, ropeTokensPerTask); }

int64_t ropeFlops(const RopeSpec &s, int64_t extent) { return 3 * extent * s.heads * s.headDim; }

int64_t ropeBytes(const RopeSpec &s, int64_t extent) {
  int64_t perToken = 2 * row::byteSize(s.dtype) * s.heads * s.headDim;
  if (s.positions)
    perToken += row::byteSize(row::Dtype::i32);
  return extent * perToken + 4 * std::min(extent, s.seq) * s.headDim;
}

namespace {

class RopeEmitter {
public:
  RopeEmitter(KernelBuilder &k, const RopeSpec &spec)
      : k(k), spec(spec), half(spec.headDim / 2), x(k.buffer(0)), cosines(k.buffer(1)),
        sines(k.buffer(2)), positions(spec.positions ? k.buffer(3) : Value()),
        out(k.buffer(spec.positions ? 4 : 3)) {}

  void emit() {
    Value first = k.mul(k.task(), ropeTokensPerTask);
    Value end = k.minimum(k.add(first, ropeTokensPerTask), k.extent());
    k.forRange(first, end, 1, [&](Value token) { emitToken(token); });
  }

private:
  Value at(Value pointer, Value elements) {
    return k.v.elementPointer(spec.dtype, pointer, elements);
  }
  /// Row of the tables for a token that stands at `place` in its sequence.
  Value tableRow(Value token, Value place) {
    if (!positions)
      return place;
    return k.maximum(k.minimum(k.loadInt(k.at(positions, token)), spec.seq - 1), 0);
  }
  void emitToken(Value token) {
    // The extent counts tokens of all sequences one after another.
    Value batch = k.divide(token, spec.seq), place = k.remainder(token, spec.seq);
    auto row = [&](Value buffer, const RopeSpec::Strides &to) {
      return at(buffer, k.add(k.mul(batch, to.batch), k.mul(place, to.token)));
    };
    Value from = row(x, spec.x), to = row(out, spec.out);
    Value table = k.mul(tableRow(token, place), half);
    Value c = k.at(cosines, table), s = k.at(sines, table);
    int64_t whole = half / k.lanes() * k.lanes();
    // Heads inside: a token's cosines and sines stay in registers.
    auto columns = [&](Value column, int64_t count) {
      Value cosine = k.loadFirst(k.at(c, column), count);
      Value sine = k.loadFirst(k.at(s, column), count);
      k.forRange(0, spec.heads, 1, [&](Value head) {
        rotate(at(at(from, k.mul(head, spec.x.head)), column),
               at(at(to, k.mul(head, spec.out.head)), column), cosine, sine, count);
      });
    };
    k.forRange(0, whole, k.lanes(), [&](Value column) { columns(column, k.lanes()); });
    if (whole < half)
      columns(k.index(whole), half - whole);
  }

  void rotate(Value from, Value to, Value cosine, Value sine, int64_t count) {
    Value middle = k.index(half);
    Value low = k.loadFirst(from, count, spec.dtype);
    Value high = k.loadFirst(at(from, middle), count, spec.dtype);
    auto turn = [&](Value straight, Value crossed, bool plus) {
      Value product = k.v.mul(crossed, sine), kept = k.v.mul(straight, cosine);
      return plus ? k.v.add(kept, product) : k.v.sub(kept, product);
    };
    k.storeFirst(turn(low, high, spec.inverse), to, count, spec.dtype);
    k.storeFirst(turn(high, low, !spec.inverse), at(to, middle), count, spec.dtype);
  }

  KernelBuilder &k;
  const RopeSpec &spec;
  int64_t half;
  Value x, cosines, sines, positions, out;
};

} // namespace

func::FuncOp emitRope(ModuleOp module, StringRef name, const RopeSpec &spec,
                      const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  RopeEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen
