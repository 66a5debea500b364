// Philox4x32-10 on vectors.
#include "codegen/kernels/RandomNumbers.h"

#include "ir/row/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gradc::codegen {

namespace {

/// Integer arithmetic on vectors (and the scalar keys) with constants given as numbers.
struct Integers {
  const Vectors &v;

  Value number(Value like, int64_t value) const {
    return v.constant(like.getType(), static_cast<double>(value));
  }
  Value add(Value x, Value y) const { return arith::AddIOp::create(v.builder, v.loc, x, y); }
  Value bitXor(Value x, Value y) const { return arith::XOrIOp::create(v.builder, v.loc, x, y); }
  Value bitAnd(Value x, int64_t mask) const {
    return arith::AndIOp::create(v.builder, v.loc, x, number(x, mask));
  }
  Value shiftRight(Value x, int count) const {
    return arith::ShRUIOp::create(v.builder, v.loc, x, number(x, count));
  }
  Value shiftLeft(Value x, int count) const {
    return arith::ShLIOp::create(v.builder, v.loc, x, number(x, count));
  }
  Value truncate(Value x) const {
    return arith::TruncIOp::create(v.builder, v.loc, v.shapedAs(v.i32, x), x);
  }
  Value extend(Value x) const {
    return arith::ExtUIOp::create(v.builder, v.loc, v.shapedAs(v.i64, x), x);
  }
  /// The lower words of x times a constant, 64 bits.
  Value multiply(Value x, uint32_t multiplier) const {
    Value low = bitAnd(x, 0xffffffff);
    return arith::MulIOp::create(v.builder, v.loc, low, number(low, multiplier));
  }
};

using Words = std::array<Value, 4>;

/// Each word is the lower half of an i64 lane, the upper being anything: so a product's words need
/// no moving between lanes, which would cost more than all else.
Words emitPhilox(const Vectors &v, Words counter, const RandomStream &stream) {
  Integers i{v};
  Value key0 = i.extend(stream.seed);
  Value key1 = i.extend(v.constant(v.i32, stream.stream));
  for (int round = 0; round < row::philoxRounds; ++round) {
    Value product0 = i.multiply(counter[0], row::philoxMultiplier0);
    Value product1 = i.multiply(counter[2], row::philoxMultiplier1);
    counter = {i.bitXor(i.bitXor(i.shiftRight(product1, 32), counter[1]), v.splat(key0)), product1,
               i.bitXor(i.bitXor(i.shiftRight(product0, 32), counter[3]), v.splat(key1)), product0};
    key0 = i.add(key0, i.number(key0, row::philoxKeyStep0));
    key1 = i.add(key1, i.number(key1, row::philoxKeyStep1));
  }
  return counter;
}

Value iota64(const Vectors &v) { return Integers{v}.extend(v.iota()); }

} // namespace

Words emitPhiloxWords(const Vectors &v, const RandomStream &stream, Value numbers) {
  Integers i{v};
  Words words = emitPhilox(
      v, {numbers, i.shiftRight(numbers, 32), v.splat(i.extend(stream.step)), i.number(numbers, 0)},
      stream);
  for (Value &word : words)
    word = i.truncate(word);
  return words;
}

Value emitFraction(const Vectors &v, Value word) {
  Value bits = Integers{v}.shiftRight(word, 8);
  Value number = arith::SIToFPOp::create(v.builder, v.loc, v.vectorOf(v.f32), bits);
  return v.mul(number, v.constant(number.getType(), 0x1p-24));
}

bool canEmitUniformGroup(const Vectors &vectors, int64_t count) {
  bool wholeLanes = vectors.lanes == row::philoxLanes || vectors.lanes == 2 * row::philoxLanes;
  return wholeLanes && count == 4;
}

SmallVector<Value> emitUniformGroup(const Vectors &v, const RandomStream &stream, Value first,
                                    int64_t count) {
  Integers i{v};
  // Counters of consecutive elements' groups are consecutive: first / 32 * 8 + lane.
  Value start = i.shiftRight(first, 2);
  Value numbers = i.add(v.splat(start), iota64(v));
  Words words = emitPhiloxWords(v, stream, numbers);
  SmallVector<Value> result;
  if (v.lanes == row::philoxLanes) {
    for (int64_t u = 0; u < count; ++u)
      result.push_back(emitFraction(v, words[u]));
    return result;
  }
  // Sixteen lanes hold two groups; a vector of elements is two words of one of them.
  for (int64_t u = 0; u < count; ++u) {
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < row::philoxLanes; ++lane)
      lanes.push_back(u / 2 * row::philoxLanes + lane);
    for (int64_t lane = 0; lane < row::philoxLanes; ++lane)
      lanes.push_back(v.lanes + u / 2 * row::philoxLanes + lane);
    Value joined =
        vector::ShuffleOp::create(v.builder, v.loc, words[u % 2 * 2], words[u % 2 * 2 + 1], lanes);
    result.push_back(emitFraction(v, joined));
  }
  return result;
}

Value emitUniform(const Vectors &v, const RandomStream &stream, Value first) {
  Integers i{v};
  Value elements = i.add(v.splat(first), iota64(v));
  Value numbers =
      i.add(i.shiftLeft(i.shiftRight(elements, 5), 3), i.bitAnd(elements, row::philoxLanes - 1));
  Words words = emitPhiloxWords(v, stream, numbers);
  Value which = i.bitAnd(i.truncate(i.shiftRight(elements, 3)), 3);
  Value word = words[3];
  for (int w = 0; w < 3; ++w) {
    Value isWord = arith::CmpIOp::create(v.builder, v.loc, arith::CmpIPredicate::eq, which,
                                         v.constant(which.getType(), w));
    word = arith::SelectOp::create(v.builder, v.loc, isWord, words[w], word);
  }
  return emitFraction(v, word);
}

} // namespace gradc::codegen
