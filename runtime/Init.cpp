// Initial values of parameters.
#include "runtime/Init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "runtime/Random.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

constexpr double defaultDeviation = 0.02;

/// Calls write(index, value) for each element, in parallel; draw(pair) gives elements 2 * pair and
/// 2 * pair + 1.
template <typename Draw, typename Write>
void drawPairs(int64_t elements, ThreadPool &pool, Draw draw, Write write) {
  constexpr int64_t pairsPerTask = 1 << 15;
  int64_t pairs = (elements + 1) / 2;
  pool.parallelFor((pairs + pairsPerTask - 1) / pairsPerTask, [&](int64_t task, int) {
    int64_t end = std::min(pairs, (task + 1) * pairsPerTask);
    for (int64_t pair = task * pairsPerTask; pair < end; ++pair) {
      auto values = draw(uint64_t(pair));
      write(2 * pair, values[0]);
      if (2 * pair + 1 < elements)
        write(2 * pair + 1, values[1]);
    }
  });
}

void fillNormal(const Slot &slot, double deviation, uint64_t seed, float *values,
                ThreadPool &pool) {
  RandomStream stream(seed, slot.name);
  drawPairs(
      slot.elements(), pool, [&](uint64_t pair) { return stream.normals(pair); },
      [&](int64_t index, double value) { values[index] = float(deviation * value); });
}

void fillUniform(const Slot &slot, double bound, uint64_t seed, float *values, ThreadPool &pool) {
  RandomStream stream(seed, slot.name);
  drawPairs(
      slot.elements(), pool, [&](uint64_t pair) { return stream.uniforms(pair); },
      [&](int64_t index, double value) { values[index] = float(bound * (2 * value - 1)); });
}

/// Makes `count` vectors of `length` orthonormal, in place. Once a vector is final it is removed
/// from all later ones; those are independent of each other, which is what makes the result the
/// same for any number of threads.
void orthonormalise(std::vector<double> &vectors, int64_t count, int64_t length, ThreadPool &pool) {
  for (int64_t i = 0; i < count; ++i) {
    double *vector = vectors.data() + i * length;
    double square = 0;
    for (int64_t e = 0; e < length; ++e)
      square += vector[e] * vector[e];
    double scale = 1 / std::sqrt(square);
    for (int64_t e = 0; e < length; ++e)
      vector[e] *= scale;
    pool.parallelFor(count - i - 1, [&](int64_t task, int) {
      double *other = vectors.data() + (i + 1 + task) * length;
      double product = 0;
      for (int64_t e = 0; e < length; ++e)
        product += vector[e] * other[e];
      for (int64_t e = 0; e < length; ++e)
        other[e] -= product * vector[e];
    });
  }
}

void fillOrthogonal(const Slot &slot, uint64_t seed, float *values, ThreadPool &pool) {
  int64_t rows = slot.shape.empty() ? 1 : slot.shape.front();
  int64_t columns = rows > 0 ? slot.elements() / rows : 0;
  if (rows == 0 || columns == 0)
    return;
  bool byRows = rows <= columns;
  int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> vectors(std::size_t(count) * std::size_t(length));
  RandomStream stream(seed, slot.name);
  drawPairs(
      slot.elements(), pool, [&](uint64_t pair) { return stream.normals(pair); },
      [&](int64_t index, double value) { vectors[index] = value; });
  orthonormalise(vectors, count, length, pool);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      values[row * columns + column] =
          float(byRows ? vectors[row * length + column] : vectors[column * length + row]);
}

void followRule(const Slot &slot, uint64_t seed, float *values, ThreadPool &pool) {
  if (slot.init.kind == InitRule::Kind::normal)
    fillNormal(slot, slot.init.deviation, seed, values, pool);
  else
    std::fill_n(values, slot.elements(), float(slot.init.value));
}

} // namespace

Expected<InitKind> parseInitKind(const std::string &word) {
  if (word == "family")
    return InitKind::family;
  if (word == "normal")
    return InitKind::normal;
  if (word == "xavier")
    return InitKind::xavier;
  if (word == "kaiming")
    return InitKind::kaiming;
  if (word == "orthogonal")
    return InitKind::orthogonal;
  return Status::user(
      fmt::format("--init {}: expected family, normal, xavier, kaiming or orthogonal", word));
}

void initialise(const Slot &slot, InitKind kind, uint64_t seed, float *values, ThreadPool &pool) {
  bool isMatrix = slot.parameterClass == ParameterClass::matrix;
  bool isEmbedding = slot.parameterClass == ParameterClass::embedding;
  if (kind == InitKind::family || !(isMatrix || isEmbedding))
    return followRule(slot, seed, values, pool);
  if (kind == InitKind::xavier)
    return fillUniform(slot, std::sqrt(6 / double(std::max<int64_t>(1, slot.fanIn + slot.fanOut))),
                       seed, values, pool);
  if (kind == InitKind::kaiming)
    return fillNormal(slot, std::sqrt(2 / double(std::max<int64_t>(1, slot.fanIn))), seed, values,
                      pool);
  if (kind == InitKind::orthogonal && isMatrix)
    return fillOrthogonal(slot, seed, values, pool);
  fillNormal(slot, defaultDeviation, seed, values, pool);
}

} // namespace gradc::rt
