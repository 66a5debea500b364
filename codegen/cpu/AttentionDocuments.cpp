// See AttentionDocuments.h.
#include "codegen/cpu/AttentionDocuments.h"

using namespace mlir;
namespace gradc::codegen {

AttentionDocuments::AttentionDocuments(KernelBuilder &k, const AttentionSpec &spec, int buffer)
    : k(k), spec(spec) {
  if (*this)
    all = k.buffer(buffer);
}

void AttentionDocuments::openSequence(Value batch) {
  if (*this)
    ofSequence = k.at(all, k.mul(batch, spec.seq));
}

Value AttentionDocuments::firstKey(Value query) {
  return k.minimum(k.maximum(k.loadInt(k.at(ofSequence, query)), 0), spec.seq);
}

Value AttentionDocuments::leastOf(Value query, int64_t count) {
  Value least = firstKey(k.minimum(query, spec.seq - 1));
  for (int64_t i = 1; i < count; ++i)
    least = k.minimum(least, firstKey(k.minimum(k.add(query, i), spec.seq - 1)));
  return least;
}

AttentionDocuments::Bounds AttentionDocuments::bounds(Value low, Value high) {
  auto found = k.forRange(
      low, high, 1, {k.index(spec.seq), k.index(0)}, [&](Value query, ArrayRef<Value> bounds) {
        Value first = firstKey(query);
        return SmallVector<Value>{k.minimum(bounds[0], first), k.maximum(bounds[1], first)};
      });
  return {found[0], found[1]};
}

Value AttentionDocuments::endOfSeeing(Value low, Value high, Value endKey) {
  auto found = k.forRange(low, high, 1, low, [&](Value query, ArrayRef<Value> end) {
    return SmallVector<Value>{k.select(k.less(firstKey(query), endKey), k.add(query, 1), end[0])};
  });
  return found[0];
}

} // namespace gradc::codegen
