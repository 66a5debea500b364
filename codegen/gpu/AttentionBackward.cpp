// Attention, backward: P and dS are computed anew from each row's lse, a tile at a time. The blocks
// that own keys and those that own queries do the same on exchanged sides: with own rows X1, X2 and
// the other side's tiles Y1, Y2
//   scores = X1 Y1^T, dP = X2 Y2^T, P = exp(scale scores - lse), dS = P (dP - delta),
//   first += dS Y1, second += P Y2,
// where keys own (K, V) and see (Q, dO): first is dk, second dv, and queries own (Q, dO) and see
// (K, V): first is dq. So P and dS already are the operands of the products that use them. With
// dropout's factors M: dS = P (M dP - delta), and second takes M P.
#include "codegen/gpu/AttentionBlock.h"
#include "codegen/kernels/CeilDiv.h"

#include <limits>

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

struct SharedLayout {
  int64_t tile, statistics, stage, own, total; ///< bytes; `own` and `statistics` are places
  int64_t perStatistic;

  SharedLayout(const AttentionSpec &spec, const AttentionSchedule &schedule, bool ofKeys) {
    TileLayout layout{tileColumns(spec), spec.dtype};
    tile = layout.bytes(schedule.tile);
    statistics = 2 * tile;
    perStatistic = schedule.tile * 4;
    stage = statistics + (ofKeys ? (spec.documents ? 3 : 2) * perStatistic : 0);
    own = 2 * stage;
    total = own + 2 * layout.bytes(schedule.rows());
  }
};

/// What a row's scores need besides: -lse in base 2, and rowsum(dO * O).
struct RowStatistics {
  Val offset, delta;
};

enum class Side { keys, queries };

class BackwardEmitter : AttentionBlock {
public:
  BackwardEmitter(BlockPrinter &printer, const AttentionSpec &spec, Side side, Val memory,
                  ArrayRef<Value> buffers)
      : AttentionBlock(printer, spec, side == Side::keys ? keySchedule(spec) : querySchedule(spec),
                       memory, buffers.drop_front(6)),
        spec(spec), schedule(side == Side::keys ? keySchedule(spec) : querySchedule(spec)),
        side(side), shared(spec, schedule, side == Side::keys), buffers(buffers) {}

  /// The side's block number `task`.
  void emit(Val task) {
    openTask(task);
    first = zeroBands(e, schedule.bands, layout.columns);
    if (ofKeys())
      second = zeroBands(e, schedule.bands, layout.columns);
    attempt({&first, &second}, firstRow + warpRow, {},
            [&](bool careful) { passOverTiles(careful); });
    store();
  }

private:
  bool ofKeys() const { return side == Side::keys; }
  Val buffer(size_t i) { return e.of(buffers[i]); }
  Val result(size_t i) { return buffer(buffers.size() - 3 + i); }

  void openTask(Val task) {
    int64_t heads = spec.batch * (ofKeys() ? spec.kvHeads : spec.heads);
    int64_t tiles = ceilDiv(spec.seq, schedule.rows());
    Val ofTile = task / heads, item = task % heads;
    if (spec.masked() && !ofKeys()) // the longest first
      ofTile = e.number(tiles - 1) - ofTile;
    firstRow = ofTile * schedule.rows();
    int64_t perSequence = heads / spec.batch;
    batch = item / perSequence;
    head = item % perSequence;
    mask.openSequence(batch);
  }

  HeadMatrix queries(Val queryHead) { return matrix(buffer(0), spec.q, batch, queryHead); }
  HeadMatrix keys(Val keyHead) { return matrix(buffer(1), spec.k, batch, keyHead); }
  HeadMatrix values(Val keyHead) { return matrix(buffer(2), spec.v, batch, keyHead); }
  HeadMatrix outputs(Val queryHead) { return matrix(buffer(3), spec.o, batch, queryHead); }
  HeadMatrix gradients(Val queryHead) { return matrix(buffer(5), spec.dO, batch, queryHead); }

  /// Of a query; 0 where there is none. For whole quads.
  RowStatistics statisticsOf(Val queryHead, Val query) {
    Val inside = e.minimum(query, e.number(spec.seq - 1));
    Val lse =
        e.load(e.f32(), e.at(rowsOfHead(buffer(4), batch, queryHead), e.widen(inside * 4)), 4);
    // A query that has seen nothing has no weights: its scores, all -inf, give exp2(-inf).
    Val isNothing = e.equal(lse, e.real(-std::numeric_limits<float>::infinity()));
    Val zero = e.real(0), exists = e.less(query, spec.seq);
    Val delta = rowProduct(outputs(queryHead), gradients(queryHead), query);
    Val offset = e.select(isNothing, zero, lse * e.real(-log2e));
    return {e.select(exists, offset, zero), e.select(exists, delta, zero)};
  }

  Val tileOf(Val i) const { return (firstTile + i % tilesAHead) * schedule.tile; }
  Val headOf(Val i) { return ofKeys() ? head * spec.group() + i / tilesAHead : head; }

  void passOverTiles(bool careful) {
    for (Bands *sums : {&first, &second})
      for (Val *x : variablesOf(*sums))
        *x = e.real(0);
    AttentionMask::Range seen = ofKeys() ? mask.queriesOf(firstRow, schedule.rows())
                                         : mask.keysOf(firstRow, schedule.rows());
    firstTile = seen.low / schedule.tile;
    Val endTile = (seen.high + (schedule.tile - 1)) / schedule.tile;
    tilesAHead = e.maximum(endTile - firstTile, e.number(0));
    loadOwn();
    Variables carried = variablesOf(first), others = variablesOf(second);
    carried.insert(carried.end(), others.begin(), others.end());
    pipeline(
        ofKeys() ? tilesAHead * spec.group() : tilesAHead, shared.stage, carried,
        [&](Val i, Val bytes) { fetch(i, bytes); },
        [&](Val i, Val bytes) {
          openDropout(i);
          for (int64_t chunk = 0; chunk < schedule.tile; chunk += schedule.chunk)
            compute(tileOf(i), bytes, chunk, careful);
        });
  }

  /// Turns to the weights of a tile that dropout keeps.
  void openDropout(Val i) {
    if (!dropout)
      return;
    dropout.openHead(batch, headOf(i));
    kept.clear();
    for (int64_t band = 0; band < schedule.bands; ++band) {
      Val row = firstRow + warpRow + band * bandRows;
      kept.push_back(ofKeys() ? dropout.keptOfKeys(row, tileOf(i), schedule.tile)
                              : dropout.keptOfQueries(row, tileOf(i), schedule.tile));
    }
  }

  void loadOwn() {
    HeadMatrix one = ofKeys() ? keys(head) : queries(head);
    HeadMatrix two = ofKeys() ? values(head) : gradients(head);
    copy.load(tile(shared.own), one, firstRow, schedule.rows());
    copy.load(tile(shared.own + layout.bytes(schedule.rows())), two, firstRow, schedule.rows());
    rows.clear();
    for (int64_t band = 0; band < schedule.bands && !ofKeys(); ++band)
      for (int64_t h = 0; h < 2; ++h)
        rows.push_back(
            statisticsOf(head, firstRow + warpRow + place.quad + (band * bandRows + 8 * h)));
  }

  void fetch(Val i, Val bytes) {
    Val from = tileOf(i), of = headOf(i);
    if (!ofKeys()) {
      Val keyHead = of / spec.group();
      copy.load(tile(bytes), keys(keyHead), from, schedule.tile);
      copy.load(tile(bytes + shared.tile), values(keyHead), from, schedule.tile);
      return;
    }
    copy.load(tile(bytes), queries(of), from, schedule.tile);
    copy.load(tile(bytes + shared.tile), gradients(of), from, schedule.tile);
    Val statistics = e.at(memory, bytes + shared.statistics);
    int64_t quads = schedule.threads() / 4;
    for (int64_t done = 0; done < schedule.tile; done += quads) {
      Val row = place.thread / 4 + done;
      e.when(e.less(row, schedule.tile), {}, [&] { // whole warps
        RowStatistics of = statisticsOf(headOf(i), from + row);
        e.when(e.equal(place.member, 0), {}, [&] {
          Val to = e.at(statistics, row * 4);
          e.store(of.offset, to, 4);
          e.store(of.delta, e.at(to, shared.perStatistic), 4);
          if (spec.documents)
            e.store(mask.firstKey(from + row), e.at(to, 2 * shared.perStatistic), 4);
        });
      });
    }
  }

  /// The other side's rows chunk .. chunk + schedule.chunk of a tile.
  void compute(Val from, Val bytes, int64_t chunk, bool careful) {
    Products products(e, place, spec.dtype, careful);
    SharedTile one = tile(bytes), two = tile(bytes + shared.tile);
    SharedTile ownOne = tile(shared.own).from(warpRow);
    SharedTile ownTwo = tile(shared.own + layout.bytes(schedule.rows())).from(warpRow);
    Bands p = zeroBands(e, schedule.bands, schedule.chunk), dS = p;
    products.dots(p, ownOne, one, chunk);
    orient(p);
    products.dots(dS, ownTwo, two, chunk);
    Val statistics = e.at(memory, bytes + (shared.statistics + chunk * 4));
    Val row = firstRow + warpRow, column = from + chunk;
    if (ofKeys())
      mask.maskQueries(p, row, column, e.at(statistics, 2 * shared.perStatistic));
    else
      mask.maskKeys(p, row, column);
    int64_t fragment = chunk / fragmentColumns;
    if (dropout)
      dropGradients(dS, fragment);
    weightsAndGradients(p, dS, statistics, careful);
    if (ofKeys()) {
      if (dropout)
        drop(p, kept, fragment);
      products.weigh(second, p, two, chunk);
    }
    products.weigh(first, dS, one, chunk);
  }

  /// The gradients of what dropout gave become those of what it took.
  void dropGradients(Bands &dP, int64_t fragment) {
    drop(dP, kept, fragment);
    for (auto &band : dP)
      for (FragmentC &x : band)
        x.map([&](Val gradient, int, int) { return gradient * e.real(dropout.factor()); });
  }

  /// Scores become P, dP becomes dS, not yet scaled.
  void weightsAndGradients(Bands &p, Bands &dS, Val statistics, bool careful) {
    Val toBase2 = e.real(scale() * log2e);
    Val hidden = e.real(-std::numeric_limits<float>::infinity());
    for (size_t n = 0; n < p[0].size(); ++n) {
      std::array<RowStatistics, 2> ofColumn;
      if (ofKeys()) {
        Val at = e.at(statistics, place.member * 8 + static_cast<int64_t>(n) * 32);
        Val offsets = e.loadVector(2, e.f32(), at);
        Val deltas = e.loadVector(2, e.f32(), e.at(at, shared.perStatistic));
        for (int i = 0; i < 2; ++i)
          ofColumn[i] = {e.element(offsets, i), e.element(deltas, i)};
      }
      for (size_t band = 0; band < p.size(); ++band) {
        auto of = [&](int h, int c) { return ofKeys() ? ofColumn[c] : rows[2 * band + h]; };
        p[band][n].map([&](Val x, int h, int c) {
          Val weight = e.exp2(e.fma(x, toBase2, of(h, c).offset));
          // What is hidden has no weight even where its query's lse is NaN.
          return careful ? e.select(e.equal(x, hidden), e.real(0), weight) : weight;
        });
        dS[band][n].map([&](Val x, int h, int c) {
          Val weight = p[band][n].c[2 * h + c], gradient = weight * (x - of(h, c).delta);
          return careful ? e.select(e.notZero(weight), gradient, e.real(0)) : gradient;
        });
      }
    }
  }

  void store() {
    auto multiply = [&](Bands &sums, double factor) {
      for (auto &band : sums)
        for (FragmentC &fragment : band)
          fragment.map([&](Val x, int, int) { return x * e.real(factor); });
    };
    multiply(first, spec.scale);
    if (dropout)
      multiply(second, dropout.factor());
    int64_t behind = layout.bytes(schedule.rows());
    SharedTile one = tile(int64_t{0}), two = tile(behind);
    for (int64_t band = 0; band < schedule.bands; ++band) {
      one.storeBand(warpRow + band * bandRows, first[band]);
      if (ofKeys())
        two.storeBand(warpRow + band * bandRows, second[band]);
    }
    e.k.barrier();
    if (ofKeys()) {
      copy.store(one, matrix(result(1), spec.dk, batch, head), firstRow, schedule.rows());
      copy.store(two, matrix(result(2), spec.dv, batch, head), firstRow, schedule.rows());
    } else {
      copy.store(one, matrix(result(0), spec.dq, batch, head), firstRow, schedule.rows());
    }
  }

  const AttentionSpec &spec;
  AttentionSchedule schedule;
  Side side;
  SharedLayout shared;
  ArrayRef<Value> buffers;
  Val batch, head, firstRow; ///< the head is a key head where keys are owned
  Val firstTile, tilesAHead;
  std::vector<RowStatistics> rows; ///< by band and half, where queries are owned
  std::vector<Val> kept;           ///< by band: of the tile (AttentionDropout)
  Bands first, second;
};

} // namespace

LLVM::LLVMFuncOp emitAttentionBackward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                       const GpuTarget &target) {
  AttentionSchedule ofKeys = keySchedule(spec), ofQueries = querySchedule(spec);
  assert(ofKeys.threads() == ofQueries.threads() && "blocks of one launch");
  SmallVector<bool> noAlias(9 + spec.maskBuffers(), false);
  BlockPrinter printer(module, name, noAlias, ofKeys.threads(), target.vectors(1),
                       backwardResidentBlocks(spec));
  Emit e(printer);
  int64_t bytes =
      std::max(SharedLayout(spec, ofKeys, true).total, SharedLayout(spec, ofQueries, false).total);
  Val memory = e.of(printer.dynamicShared(bytes)), task = e.task();
  int64_t keyTiles = ceilDiv(spec.seq, ofKeys.rows());
  int64_t keyBlocks = spec.batch * spec.kvHeads * keyTiles;
  Val ownsKeys = e.less(task, keyBlocks);
  e.when(ownsKeys, {},
         [&] { BackwardEmitter(printer, spec, Side::keys, memory, printer.buffers()).emit(task); });
  e.when(ownsKeys ^ e.truth(true), {}, [&] {
    BackwardEmitter(printer, spec, Side::queries, memory, printer.buffers()).emit(task - keyBlocks);
  });
  return printer.finish();
}

} // namespace gradc::codegen::gpu
