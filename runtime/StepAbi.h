// The state behind the functions that a step program calls (Abi.def): where its launches go, and
// the first failure among them.
#pragma once

#include <cstdint>

#include "runtime/Device.h"

/// Lives as long as one run of a program. When `observe` is set each launch is timed, and the
/// observer called with its times.
struct GradcContext {
  gradc::rt::Device *device = nullptr;
  int64_t iteration = 0;
  gradc::rt::Status status;
  gradc::rt::LaunchObserver observe;
};
