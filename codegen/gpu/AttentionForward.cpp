// Attention, forward: a block owns a tile of queries of one head. Scores are computed a tile of
// keys at a time; each row carries its maximum, its sum and its output, not yet divided (online
// softmax, in base 2).
#include "codegen/gpu/AttentionBlock.h"
#include "codegen/kernels/CeilDiv.h"

#include <limits>

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

struct SharedLayout {
  int64_t tile, stage, queries, total; ///< bytes; where the queries begin

  SharedLayout(const AttentionSpec &spec, const AttentionSchedule &schedule) {
    TileLayout layout{tileColumns(spec), spec.dtype};
    tile = layout.bytes(schedule.tile);
    stage = 2 * tile; // keys, then values
    queries = 2 * stage;
    total = queries + layout.bytes(schedule.rows());
  }
};

/// The carried state of a warp's rows.
struct Softmax {
  Bands output;
  std::vector<std::array<Val, 2>> maxima, sums;

  Variables rows() {
    Variables all;
    for (size_t band = 0; band < maxima.size(); ++band)
      for (int h = 0; h < 2; ++h) {
        all.push_back(&maxima[band][h]);
        all.push_back(&sums[band][h]);
      }
    return all;
  }
  Variables all() {
    Variables result = variablesOf(output), others = rows();
    result.insert(result.end(), others.begin(), others.end());
    return result;
  }
};

class ForwardEmitter : AttentionBlock {
public:
  ForwardEmitter(BlockPrinter &printer, const AttentionSpec &spec,
                 const AttentionSchedule &schedule, Val memory, ArrayRef<Value> buffers)
      : AttentionBlock(printer, spec, schedule, memory, buffers.drop_front(3)), spec(spec),
        schedule(schedule), shared(spec, schedule), buffers(buffers) {}

  /// With the heads of that many key heads side by side.
  void emit(int64_t keyHeads) {
    openTask(keyHeads);
    Softmax state;
    state.output = zeroBands(e, schedule.bands, ownColumns());
    state.maxima.resize(schedule.bands);
    state.sums.resize(schedule.bands);
    attempt({&state.output}, firstQuery + warpRow, state.rows(),
            [&](bool careful) { passOverKeys(state, careful); });
    store(state);
  }

private:
  void openTask(int64_t keyHeads) {
    int64_t heads = keyHeads * spec.group(), tiles = ceilDiv(spec.seq, schedule.rows());
    Val task = e.task(), group = task / (heads * tiles), ofGroup = task % (heads * tiles);
    Val ofTile = ofGroup / heads, item = group * heads + ofGroup % heads;
    if (spec.masked()) // the longest first
      ofTile = e.number(tiles - 1) - ofTile;
    batch = item / spec.heads;
    head = item % spec.heads;
    firstQuery = ofTile * schedule.rows();
    mask.openSequence(batch);
    Val kvHead = head / spec.group();
    q = matrix(buffer(0), spec.q, batch, head);
    keys = matrix(buffer(1), spec.k, batch, kvHead);
    values = matrix(buffer(2), spec.v, batch, kvHead);
  }

  void passOverKeys(Softmax &state, bool careful) {
    AttentionMask::Range seen = mask.keysOf(firstQuery, schedule.rows());
    Val firstTile = seen.low / schedule.tile;
    Val endTile = (seen.high + (schedule.tile - 1)) / schedule.tile;
    start(state);
    copy.load(tile(shared.queries), q, firstQuery, schedule.rows());
    Products products(e, place, spec.dtype, careful);
    pipeline(
        endTile - firstTile, shared.stage, state.all(),
        [&](Val i, Val bytes) {
          Val first = (firstTile + i) * schedule.tile;
          copy.load(tile(bytes), keys, first, schedule.tile);
          copy.load(tile(bytes + shared.tile), values, first, schedule.tile);
        },
        [&](Val i, Val bytes) {
          Val row = firstQuery + warpRow, column = (firstTile + i) * schedule.tile;
          SmallVector<Val> kept = openDropout(row, column);
          Bands scores = zeroBands(e, schedule.bands, schedule.tile);
          products.dots(scores, tile(shared.queries).from(warpRow), tile(bytes), 0);
          orient(scores);
          mask.maskKeys(scores, row, column);
          softmax(state, scores);
          if (dropout)
            drop(scores, kept, 0);
          products.weigh(state.output, scores, ownPart(tile(bytes + shared.tile)), 0);
        });
  }

  /// The weights of a tile that dropout keeps, by band.
  SmallVector<Val> openDropout(Val row, Val column) {
    SmallVector<Val> kept;
    if (!dropout)
      return kept;
    dropout.openHead(batch, head);
    for (int64_t band = 0; band < schedule.bands; ++band)
      kept.push_back(dropout.keptOfQueries(row + band * bandRows, column, schedule.tile));
    return kept;
  }

  void start(Softmax &state) {
    for (Val *x : variablesOf(state.output))
      *x = e.real(0);
    for (int64_t band = 0; band < schedule.bands; ++band)
      for (int h = 0; h < 2; ++h) {
        state.maxima[band][h] = e.real(-std::numeric_limits<float>::infinity());
        state.sums[band][h] = e.real(0);
      }
  }

  /// Scores become weights relative to the new maxima; what was summed is corrected to them.
  void softmax(Softmax &state, Bands &scores) {
    for (size_t band = 0; band < scores.size(); ++band) {
      std::array<Val, 2> offset, correction;
      for (int h = 0; h < 2; ++h)
        std::tie(offset[h], correction[h]) = carryMaximum(state.maxima[band][h], scores[band], h);
      Val toBase2 = e.real(scale() * log2e);
      for (FragmentC &fragment : scores[band])
        fragment.map([&](Val x, int h, int) { return e.exp2(e.fma(x, toBase2, offset[h])); });
      for (int h = 0; h < 2; ++h) {
        Val sum = e.real(0);
        for (FragmentC &fragment : scores[band])
          sum = sum + (fragment.c[2 * h] + fragment.c[2 * h + 1]);
        state.sums[band][h] = e.fma(state.sums[band][h], correction[h], sum);
      }
      for (FragmentC &fragment : state.output[band])
        fragment.map([&](Val x, int h, int) { return x * correction[h]; });
    }
  }

  /// What is added to scaled scores before exp2, and the factor of what was summed before.
  std::pair<Val, Val> carryMaximum(Val &maximum, const std::vector<FragmentC> &scores, int h) {
    Val greatest = e.greater(scores[0].c[2 * h], scores[0].c[2 * h + 1]);
    for (size_t n = 1; n < scores.size(); ++n)
      greatest = e.greater(greatest, e.greater(scores[n].c[2 * h], scores[n].c[2 * h + 1]));
    greatest = e.greater(maximum, e.quadGreatest(greatest));
    // A row that has seen nothing yet: -inf less anything finite gives weights of 0.
    Val toBase2 = e.real(scale() * log2e);
    Val isNothing = e.equal(greatest, e.real(-std::numeric_limits<float>::infinity()));
    Val offset = e.negate(e.select(isNothing, e.real(0), greatest * toBase2));
    Val correction = e.exp2(e.fma(maximum, toBase2, offset));
    maximum = greatest;
    return {offset, correction};
  }

  void store(Softmax &state) {
    SharedTile out = tile(int64_t{0}), ownOut = ownPart(out);
    Val lse = rowsOfHead(buffer(buffers.size() - 1), batch, head);
    for (size_t band = 0; band < state.output.size(); ++band) {
      std::array<Val, 2> factor;
      for (int h = 0; h < 2; ++h) {
        Val sum = e.quadSum(state.sums[band][h]);
        Val isNothing = e.equal(sum, e.real(0));
        factor[h] = e.select(isNothing, e.real(0), e.real(dropout.factor()) / sum);
        Val row =
            firstQuery + warpRow + place.quad + (static_cast<int64_t>(band) * bandRows + 8 * h);
        Val value = e.fma(state.maxima[band][h], e.real(scale()), e.log2(sum) * e.real(ln2));
        e.when(e.equal(place.member, 0) & e.less(row, spec.seq) & hasFirstPart(), {},
               [&] { e.store(value, e.at(lse, e.widen(row * 4)), 4); });
      }
      for (FragmentC &fragment : state.output[band])
        fragment.map([&](Val x, int h, int) { return x * factor[h]; });
      ownOut.storeBand(warpRow + static_cast<int64_t>(band) * bandRows, state.output[band]);
    }
    e.k.barrier();
    HeadMatrix o = matrix(buffer(buffers.size() - 2), spec.o, batch, head);
    copy.store(out, o, firstQuery, schedule.rows());
  }

  Val buffer(size_t i) { return e.of(buffers[i]); }

  const AttentionSpec &spec;
  AttentionSchedule schedule;
  SharedLayout shared;
  ArrayRef<Value> buffers;
  Val batch, head, firstQuery;
  HeadMatrix q, keys, values;
};

} // namespace

int64_t forwardSharedBytes(const AttentionSpec &spec) {
  return SharedLayout(spec, forwardSchedule(spec)).total;
}

LLVM::LLVMFuncOp emitAttentionForward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                      const GpuTarget &target, int64_t keyHeads) {
  AttentionSchedule schedule = forwardSchedule(spec);
  SmallVector<bool> noAlias(5 + spec.maskBuffers(), false);
  noAlias.end()[-1] = noAlias.end()[-2] = true; // what is read may be slices of one buffer
  BlockPrinter printer(module, name, noAlias, schedule.threads(), target.vectors(1),
                       forwardRegisters(spec, target));
  Emit e(printer);
  Val memory = e.of(printer.dynamicShared(forwardSharedBytes(spec)));
  ForwardEmitter(printer, spec, schedule, memory, printer.buffers()).emit(keyHeads);
  return printer.finish();
}

} // namespace gradc::codegen::gpu
