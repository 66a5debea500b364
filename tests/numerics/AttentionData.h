// Attention problems in tests, whatever makes the kernels: operands in memory, the buffers of a
// call, and the comparison of results with f64.
#pragma once

#include "tests/numerics/AttentionReference.h"
#include "tests/numerics/RowHarness.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <list>

namespace gradc::codegen::attention_test {

/// Memory for q, k and v (or their gradients): apart, or slices of one buffer whose tokens have a
/// gap between them that must stay untouched.
struct Operands {
  std::vector<float> memory;
  int64_t offsets[3];
  AttentionSpec::Strides strides[3];
  std::vector<char> used;

  /// `gap`: elements between the tokens of slices.
  Operands(const AttentionSpec &s, bool packed, int64_t gap = 3);
  float *at(int which) { return memory.data() + offsets[which]; }
  float *row(int which, int64_t token) { return at(which) + token * strides[which].token; }
  View view(int which) const { return {memory.data() + offsets[which], strides[which]}; }
  /// Contiguous.
  std::vector<float> gather(const AttentionSpec &s, int which) const;
  void expectGapsIntact() const;
};

/// The operands and results of one problem. Operands are normally distributed numbers, rounded to
/// the spec's dtype; results are NaN, which shows in every comparison where nothing is written.
struct Data {
  AttentionSpec spec;
  Operands in, gradients;
  std::vector<float> o, lse, dO;
  RandomKeys random{7, 3, 0};
  std::vector<int32_t> firstKeys; ///< with documents: those of `documentsOf(spec, 40)`

  Data(const AttentionSpec &s, bool packed, uint32_t seed = 1, int64_t gap = 3);
  float *dORow(int64_t token) { return dO.data() + token * spec.dO.token; }
  /// The exact results; for the backward, those of o as it is stored.
  Reference want(const float *storedO = nullptr) const;
};

/// First keys [batch, seq] of documents whose lengths are random and `length` on average; some are
/// of one token.
std::vector<int32_t> documentsOf(const AttentionSpec &s, int64_t length, uint32_t seed = 1);

/// The buffers of one call in the elements' dtypes, in the order of codegen/cpu/Attention.h.
class Arguments {
public:
  struct Place {
    void *address;
    int64_t bytes; ///< to the end of the buffer that it is a slice of
    bool writable;
  };
  std::vector<Place> places;

  row::GuardedBuffer &add(row::Dtype dtype, const std::vector<float> &values, bool writable);
  /// Three slices of one buffer.
  row::GuardedBuffer &add(row::Dtype dtype, const Operands &operands, bool writable);
  /// What stands between the tensors that are read and those that are written.
  void addMask(const Data &x);
  /// Nothing was written outside of the buffers.
  bool intact() const;

private:
  row::GuardedBuffer &buffer(row::Dtype dtype, const std::vector<float> &values);
  void add(const std::vector<int32_t> &numbers);
  std::list<row::GuardedBuffer> buffers;
};

/// Calls a kernel on the problem's buffers and reads them back; fails the test where anything but
/// the results is written.
using Call = llvm::function_ref<void(const Arguments &)>;
void callForward(Data &x, Call call);
void callBackward(Data &x, Call call);
/// |got - want| / |want| by norm; a NaN makes it infinite. Results that cancel (a row that sees one
/// key has no gradient) are measured against a tenth of their terms, which are about 1.
double distance(const std::vector<float> &got, const std::vector<double> &want);

/// Results of f32 are within `bound` by norm. Narrow ones are rounded once: each element is within
/// half a unit, besides 8 times the bound, relative to the root of the mean square, for its f32.
void expectResult(row::Dtype dtype, const std::vector<float> &got, const std::vector<double> &want,
                  double bound, const char *what);

bool sameBits(const std::vector<float> &x, const std::vector<float> &y);

AttentionSpec shape(int64_t batch, int64_t seq, int64_t heads, int64_t kvHeads, int64_t headDim,
                    bool causal = true, int64_t window = 0);

} // namespace gradc::codegen::attention_test
