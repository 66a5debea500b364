// The host's peak, measured without leaving a trace in this process's resident peak.
#pragma once

#include "runtime/Device.h"

namespace gradc::rt {

/// measurePeak in a child process, whose memory is not ours. Call it before any thread is started
/// that may hold a lock.
Expected<DevicePeak> probePeak(int threads);

} // namespace gradc::rt
