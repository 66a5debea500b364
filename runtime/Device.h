// What a step program runs on. The program's calls arrive through runtime/StepAbi.cpp; everything
// behind this interface (the host's cores today) is free to run them as it likes, as long as their
// effects appear in program order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

/// Sizes in bytes of the three spaces of Abi.h. `constants` stays the caller's.
struct SpaceSizes {
  int64_t state = 0;
  int64_t arena = 0;
  const void *constants = nullptr;
  int64_t constantBytes = 0;
};

/// Not for use by several threads at once. Offsets are in bytes; out-of-range ones are defects.
class Device {
public:
  virtual ~Device() = default;

  /// Takes the memory of a program, zeroed; once. A machine status when there is too little.
  virtual Status allocate(const SpaceSizes &sizes) = 0;

  virtual Status write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) = 0;
  virtual Status read(GradcSpace space, int64_t offset, void *data, int64_t bytes) = 0;

  /// Address of a space where the host can reach it directly; null where it cannot.
  virtual std::byte *hostAddress(GradcSpace space) = 0;

  virtual Status launch(const GradcLaunch &launch, int64_t iteration) = 0;
  virtual Status gemm(const GradcGemm &gemm, int64_t iteration) = 0;

  /// Waits until everything launched has taken effect.
  virtual Status synchronize() = 0;
};

} // namespace gradc::rt
