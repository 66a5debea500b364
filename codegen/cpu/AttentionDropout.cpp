// See AttentionDropout.h.
#include "codegen/cpu/AttentionDropout.h"
#include "codegen/cpu/AttentionOperands.h"
#include "codegen/kernels/RandomNumbers.h"

#include "ir/row/Philox.h"

#include "llvm/Support/FormatVariadic.h"

#include <bit>

using namespace mlir;
namespace gradc::codegen {

namespace {

/// Vectors whose numbers are made at once; elements of such a group are aligned to their number.
constexpr int64_t groupVectors = 4;
int64_t groupSize(KernelBuilder &k) { return groupVectors * k.lanes(); }

/// to[e - aligned] = factor of element e, for the whole groups that hold `low` .. `high`; `aligned`
/// is the first element of the group that holds `low`.
void emitFactors(KernelBuilder &k, const AttentionSpec &spec) {
  Value low = k.parameter(0), high = k.parameter(1), to = k.parameter(4);
  RandomStream numbersOf{k.parameter(2), k.parameter(3), /*stream=*/0};
  Value aligned = k.roundDown(low, groupSize(k));
  Value rate = k.reals(static_cast<float>(spec.dropout)), factor = k.reals(1 / (1 - spec.dropout));
  k.forRange(aligned, high, groupSize(k), [&](Value first) {
    SmallVector<Value> numbers;
    if (canEmitUniformGroup(k.v, groupVectors))
      numbers = emitUniformGroup(k.v, numbersOf, first, groupVectors);
    else
      for (int64_t u = 0; u < groupVectors; ++u)
        numbers.push_back(emitUniform(k.v, numbersOf, k.add(first, u * k.lanes())));
    Value place = k.at(to, k.sub(first, aligned));
    for (Value number : numbers) {
      Value dropped =
          arith::CmpFOp::create(k.builder(), k.location(), arith::CmpFPredicate::OLT, number, rate);
      k.store(k.select(dropped, k.reals(0), factor), place);
      place = k.at(place, k.lanes());
    }
  });
}

/// The function (i64 low, i64 high, i32 seed, i32 step, ptr to), made where it is missing.
func::FuncOp factorsFunction(KernelBuilder &k, const AttentionSpec &spec) {
  std::string name =
      llvm::formatv("gradc.dropout_{0}_r{1:x}", k.lanes(), std::bit_cast<uint64_t>(spec.dropout));
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  Type i64 = k.builder().getI64Type(), i32 = k.builder().getI32Type();
  KernelBuilder inner(k.module(), name, k.target(),
                      k.builder().getFunctionType({i64, i64, i32, i32, k.pointerType()}, {}));
  emitFactors(inner, spec);
  return inner.finish();
}

} // namespace

AttentionDropout::AttentionDropout(KernelBuilder &k, const AttentionSpec &spec, int firstBuffer,
                                   int64_t keys)
    : k(k), spec(spec) {
  if (!*this)
    return;
  // As nn.dropout has it: uses of one seed differ in their streams.
  Value stream = k.v.loadScalar(row::Dtype::i32, k.buffer(firstBuffer + 3));
  Value streamStep = k.v.constant(k.v.i32, static_cast<int32_t>(row::philoxStreamStep));
  seed = k.v.loadScalar(row::Dtype::i32, k.buffer(firstBuffer));
  seed =
      arith::AddIOp::create(k.builder(), k.location(), seed,
                            arith::MulIOp::create(k.builder(), k.location(), stream, streamStep));
  step = k.v.loadScalar(row::Dtype::i32, k.buffer(firstBuffer + 1));
  firstRow = k.loadInt(k.buffer(firstBuffer + 2));
  int64_t floats = roundUp(keys, groupSize(k)) + groupSize(k);
  scratch = k.stack(floats);
  zeroScratch(k, scratch, k.index(floats)); // whatever is read before it is made is finite
}

void AttentionDropout::openHead(Value batch, Value head) {
  if (!*this)
    return;
  Value heads = k.add(k.mul(batch, spec.heads), head);
  headRow = k.add(k.mul(firstRow, spec.heads), k.mul(heads, spec.seq));
}

Value AttentionDropout::factors(Value query, Value base, Value low, Value high) {
  Value first = k.add(k.mul(k.add(headRow, query), spec.seq), base);
  Value ahead = k.remainder(first, groupSize(k)); // of the group that holds the base
  Value from = k.roundDown(k.add(ahead, low), groupSize(k));
  func::CallOp::create(
      k.builder(), k.location(), factorsFunction(k, spec),
      ValueRange{k.add(first, low), k.add(first, high), seed, step, k.at(scratch, from)});
  return k.at(scratch, ahead);
}

} // namespace gradc::codegen
