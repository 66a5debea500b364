// See Rope.h.
#include "codegen/gpu/Rope.h"

#include "codegen/gpu/BlockPrinter.h"
#include "codegen/kernels/CeilDiv.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t blockWarps = 8;

/// Elements of a vector: 16 bytes, or what half a head and the strides divide into and all begin
/// at.
int64_t lanesOf(const RopeSpec &s) {
  int64_t lanes = std::min<int64_t>(s.dtype == Dtype::f32 ? 4 : 8, s.alignedLanes);
  auto divides = [&](int64_t count) { return count % lanes == 0; };
  while (!llvm::all_of(ArrayRef<int64_t>{s.headDim / 2, s.x.batch, s.x.token, s.x.head, s.out.batch,
                                         s.out.token, s.out.head},
                       divides))
    lanes /= 2;
  return lanes;
}

class RopeEmitter {
public:
  RopeEmitter(BlockPrinter &printer, const RopeSpec &spec)
      : k(printer), spec(spec), half(spec.headDim / 2),
        positions(spec.positions ? k.buffers()[3] : Value()) {}

  void emit() {
    Value token = k.add(k.mul(k.task(), blockWarps), k.divide(k.thread(), warpThreads));
    k.ifTrue(k.less(token, k.extent()), [&] {
      // The extent counts tokens of all sequences one after another.
      Value batch = k.divide(token, spec.seq), place = k.remainder(token, spec.seq);
      Value from = tokenRow(k.buffers()[0], spec.x, batch, place);
      Value to = tokenRow(k.buffers().back(), spec.out, batch, place);
      Value table = k.mul(tableRow(token, place), half);
      int64_t perHead = half / k.lanes();
      k.forRange(k.remainder(k.thread(), warpThreads), k.index(spec.heads * perHead), warpThreads,
                 [&](Value item) {
                   Value head = k.divide(item, perHead);
                   Value column = k.mul(k.remainder(item, perHead), k.lanes());
                   rotate(at(from, k.add(k.mul(head, spec.x.head), column)),
                          at(to, k.add(k.mul(head, spec.out.head), column)), k.add(table, column));
                 });
    });
  }

private:
  Value at(Value pointer, Value elements) {
    return k.v.elementPointer(spec.dtype, pointer, elements);
  }
  Value tokenRow(Value buffer, const RopeSpec::Strides &to, Value batch, Value place) {
    return at(buffer, k.add(k.mul(batch, to.batch), k.mul(place, to.token)));
  }
  /// Row of the tables for a token that stands at `place` in its sequence.
  Value tableRow(Value token, Value place) {
    if (!positions)
      return place;
    return k.maximum(k.minimum(k.loadInt(k.at(positions, token)), spec.seq - 1), 0);
  }

  void rotate(Value from, Value to, Value angle) {
    Value middle = k.index(half);
    Value cosine = k.load(k.at(k.buffers()[1], angle));
    Value sine = k.load(k.at(k.buffers()[2], angle));
    Value low = k.v.loadVector(spec.dtype, from, {});
    Value high = k.v.loadVector(spec.dtype, at(from, middle), {});
    auto turn = [&](Value straight, Value crossed, bool plus) {
      Value product = k.v.mul(crossed, sine), kept = k.v.mul(straight, cosine);
      return plus ? k.v.add(kept, product) : k.v.sub(kept, product);
    };
    Value newLow = turn(low, high, spec.inverse), newHigh = turn(high, low, !spec.inverse);
    k.v.storeVector(spec.dtype, newLow, to, {});
    k.v.storeVector(spec.dtype, newHigh, at(to, middle), {});
  }

  BlockPrinter &k;
  const RopeSpec &spec;
  int64_t half;
  Value positions;
};

} // namespace

int64_t taskCount(const RopeSpec &, int64_t extent) { return ceilDiv(extent, blockWarps); }

KernelWork ropeWork(const RopeSpec &spec, int64_t tokens) {
  constexpr int64_t bytes = 4, flopsOfElement = 3;
  int64_t elements = tokens * spec.heads * spec.headDim;
  int64_t values = elements * row::byteSize(spec.dtype);
  int64_t table = spec.seq * spec.headDim / 2 * bytes;
  KernelWork work;
  work.buffers = {{values, 0}, {table, 0, true}, {table, 0, true}};
  if (spec.positions)
    work.buffers.push_back({tokens * bytes, 0, true});
  work.buffers.push_back({0, values});
  work.flops = work.leastFlops = elements * flopsOfElement;
  return work;
}

LLVM::LLVMFuncOp emitRope(ModuleOp module, StringRef name, const RopeSpec &spec,
                          const GpuTarget &target) {
  // Only the tables and the positions are surely apart: the result may be in the input's place.
  SmallVector<bool> noAlias{false, true, true};
  if (spec.positions)
    noAlias.push_back(true);
  noAlias.push_back(false);
  BlockPrinter k(module, name, noAlias, blockWarps * warpThreads, target.vectors(lanesOf(spec)));
  RopeEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen::gpu
