// What an executable says about itself: its JSON metadata (docs/design/executable.md) as structs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/Status.h"

namespace gradc::rt {

enum class SlotRole { parameter, optimizer, lowParameter, input, scalar, output };
enum class SlotType { f32, bf16, f16, i32, f8e4m3, f8e5m2 };

/// Bytes of one element.
int64_t byteSize(SlotType type);

/// What a parameter is, as far as initialisation cares.
enum class ParameterClass { matrix, embedding, bias, norm };

struct InitRule {
  enum class Kind { normal, constant } kind = Kind::constant;
  double deviation = 0; ///< of `normal`, whose mean is 0
  double value = 0;     ///< of `constant`
};

/// A range of the state space: offset and size in bytes, checked to lie within it and to be what
/// type and shape need.
struct Slot {
  std::string name; ///< a parameter's HF name, or `program.argument`
  SlotRole role = SlotRole::output;
  /// Of an optimizer slot: exp_avg, exp_avg_sq, momentum; input_amax, gradient_amax of fp8.
  std::string optimizerSlot;
  SlotType type = SlotType::f32;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t bytes = 0;
  InitRule init;
  ParameterClass parameterClass = ParameterClass::matrix;
  int64_t fanIn = 0, fanOut = 0;

  int64_t elements() const { return bytes / byteSize(type); }
};

/// Bytes by kind, as planned.
struct MemoryPlan {
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, peak = 0;
};

struct KernelUse {
  std::string name;
  int64_t launches = 0; ///< a train step
};

struct Metadata {
  std::string family; ///< gpt2, llama, … ; empty for a model given as an .mlir module
  int64_t vocab = 0;
  int64_t maxPositions = 0;
  int64_t microBatch = 0, seq = 0, gradAccum = 0;
  std::string precision, optimizer, recompute, mesh, target;
  bool emulate = false;           ///< a GPU's program, on the host
  int64_t documentSeparator = -1; ///< the token that ends a document, its label ignored; -1: none
  std::string init; ///< how parameters are initialised where the command line does not say
  std::vector<std::string> cpuFeatures; ///< that the kernels use, by LLVM's names
  int64_t parameters = 0;
  std::string fingerprint;
  double flopsPerToken = 0, flopsPerStep = 0, matmulFlopsPerStep = 0;
  int64_t stateBytes = 0, arenaBytes = 0, constantBytes = 0;
  MemoryPlan memory;
  std::vector<KernelUse> kernels;
  std::vector<Slot> state;
  std::vector<Slot> gradients; ///< offsets count in the arena; role `parameter`

  int64_t tokensPerStep() const { return microBatch * seq * gradAccum; }
  /// The slot `program.argument`; null when there is none.
  const Slot *find(std::string_view name) const;
};

/// A machine status when the text is not what the compiler writes.
Expected<Metadata> parseMetadata(std::string_view text);

} // namespace gradc::rt
