// The state behind the functions that a step program calls (Abi.def): where its launches go, and
// the first failure among them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "runtime/Device.h"

namespace gradc::rt {

enum class LaunchKind { kernel, gemm };

/// One launch as it was timed.
struct LaunchRecord {
  const char *name;
  LaunchKind kind;
  std::chrono::steady_clock::time_point begin, end;
  double flops; ///< arithmetic operations
  double bytes; ///< bytes it must move at least
};

} // namespace gradc::rt

/// Lives as long as one run of a program. When `observe` is set the device is synchronised after
/// each launch and the observer called with its times.
struct GradcContext {
  gradc::rt::Device *device = nullptr;
  int64_t iteration = 0;
  gradc::rt::Status status;
  std::function<void(const gradc::rt::LaunchRecord &)> observe;
};
