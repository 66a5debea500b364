// See AttentionBlock.h.
#include "codegen/gpu/AttentionBlock.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

AttentionBlock::AttentionBlock(BlockPrinter &printer, const AttentionSpec &spec,
                               const AttentionSchedule &schedule, Val sharedMemory,
                               ArrayRef<Value> maskBuffers)
    : e(printer), place(e.thread()), mask(e, place, spec, e.of(maskBuffers[0])),
      dropout(e, place, spec, maskBuffers.drop_front(spec.documents ? 1 : 0)),
      layout{tileColumns(spec), spec.dtype}, copy(e, place, layout, schedule.threads()),
      memory(e.of(sharedMemory.v)), spec(spec), schedule(schedule) {
  warpRow = rowOfWarp();
}

Val AttentionBlock::rowOfWarp() const {
  return place.warp % schedule.warps * (schedule.bands * bandRows);
}

SharedTile AttentionBlock::ownPart(const SharedTile &whole) {
  if (schedule.parts == 1)
    return whole;
  return whole.columnsFrom(place.warp / schedule.warps * (ownColumns() * layout.elementBytes()));
}

HeadMatrix AttentionBlock::matrix(Val buffer, const AttentionSpec::Strides &strides, Val batch,
                                  Val head) {
  Val elements = e.widen(batch) * strides.batch + e.widen(head) * strides.head;
  return {e.at(buffer, elements * layout.elementBytes()), strides.token * layout.elementBytes(),
          spec.seq, spec.headDim * layout.elementBytes(), pieceBytes(spec)};
}

void AttentionBlock::orient(Bands &scores) {
  if (spec.scale > 0)
    return;
  for (auto &band : scores)
    for (FragmentC &fragment : band)
      fragment.map([&](Val x, int, int) { return x * e.real(spec.scale); });
}

void AttentionBlock::drop(Bands &weights, ArrayRef<Val> bits, int64_t first) {
  for (size_t band = 0; band < weights.size(); ++band)
    for (size_t n = 0; n < weights[band].size(); ++n)
      weights[band][n].map([&](Val x, int h, int p) {
        Val isKept = dropout.keeps(bits[band], first + static_cast<int64_t>(n), h, p);
        return e.select(isKept, x, e.real(0));
      });
}

Val AttentionBlock::rowsOfHead(Val buffer, Val batch, Val head) {
  constexpr int64_t bytes = 4;
  return e.at(buffer, e.widen(batch * spec.heads + head) * (spec.seq * bytes));
}

void AttentionBlock::pipeline(Val count, int64_t stageBytes, const Variables &carried,
                              function_ref<void(Val i, Val bytes)> fetch,
                              function_ref<void(Val i, Val bytes)> compute) {
  Val none = e.number(0);
  e.when(e.less(none, count), {}, [&] { fetch(none, none); });
  e.commitCopies();
  e.loop(none, count, carried, [&](Val i) {
    Val current = (i & 1) * stageBytes, other = e.number(stageBytes) - current;
    // One barrier a tile: what was copied is there for all, and all are through with the other
    // stage.
    e.waitCopies();
    e.k.barrier();
    e.when(e.less(i + 1, count), {}, [&] { fetch(i + 1, other); });
    e.commitCopies();
    compute(i, current);
  });
  e.waitCopies(); // where there is no tile
}

Val AttentionBlock::notFinite(const Bands &results, Val row) {
  Val found = e.truth(false), zero = e.real(0);
  for (size_t band = 0; band < results.size(); ++band) {
    std::array<Val, 2> sums{zero, zero}; // of zeros: NaN where one factor was not finite
    for (const FragmentC &fragment : results[band])
      for (int i = 0; i < 4; ++i)
        sums[i / 2] = e.fma(fragment.c[i], zero, sums[i / 2]);
    for (int64_t h = 0; h < 2; ++h) {
      Val at = row + place.quad + (static_cast<int64_t>(band) * bandRows + 8 * h);
      found = found | (e.isNan(sums[h]) & e.less(at, spec.seq));
    }
  }
  return found;
}

void AttentionBlock::attempt(ArrayRef<Bands *> results, Val row, const Variables &others,
                             function_ref<void(bool careful)> body) {
  body(/*careful=*/false);
  Variables assigned = others;
  Val failed = e.truth(false);
  for (Bands *sums : results) {
    llvm::append_range(assigned, variablesOf(*sums));
    failed = failed | notFinite(*sums, row);
  }
  int64_t warps = schedule.warps * schedule.parts;
  Val flags = e.of(e.k.shared(warps));
  Val again = anyInBlock(e, place, failed, flags, warps);
  Place before = place;
  Val rowBefore = warpRow;
  e.when(again, assigned, [&] {
    // The same numbers, but the compiler cannot know: nothing that is computed from them is held
    // in registers over the first pass.
    place = Place(e.from(place.thread, place.lane));
    warpRow = rowOfWarp();
    body(/*careful=*/true);
    e.k.barrier();
  });
  place = before;
  warpRow = rowBefore;
}

Val AttentionBlock::rowProduct(const HeadMatrix &x, const HeadMatrix &y, Val row) {
  Val sum = e.real(0), inside = e.widen(e.minimum(row, e.number(spec.seq - 1)));
  Val ofX = e.at(x.base, inside * x.rowBytes), ofY = e.at(y.base, inside * y.rowBytes);
  constexpr int64_t members = 4;
  for (int64_t first = 0; first < x.pieces(); first += members) {
    Val piece = place.member + first;
    auto add = [&] {
      Val offset = e.widen(piece * x.pieceBytes);
      SmallVector<Val> left = loadPiece(e, e.at(ofX, offset), x.pieceBytes);
      SmallVector<Val> right = loadPiece(e, e.at(ofY, offset), x.pieceBytes);
      for (auto [l, r] : llvm::zip_equal(left, right)) {
        if (!spec.narrow()) {
          sum = e.fma(e.bits(l, e.f32()), e.bits(r, e.f32()), sum);
          continue;
        }
        auto [l0, l1] = e.unpack(spec.dtype, l);
        auto [r0, r1] = e.unpack(spec.dtype, r);
        sum = e.fma(l1, r1, e.fma(l0, r0, sum));
      }
    };
    if (first + members <= x.pieces())
      add();
    else
      e.when(e.less(piece, x.pieces()), {&sum}, add);
  }
  return e.quadSum(sum);
}

} // namespace gradc::codegen::gpu
