// The handler only sets a flag: all work is done by the training loop between steps.
#include "runtime/app/StopSignal.h"

#include <atomic>
#include <csignal>

namespace gradc::rt {
namespace {

// Atomic and not sig_atomic_t: the system may choose any thread to run the handler.
std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler must not wait for a lock");

void request(int) { requested = true; }

} // namespace

void catchStopSignals() {
  struct sigaction action{};
  action.sa_handler = request;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART; // a read or write under way is finished, not failed
  sigaction(SIGTERM, &action, nullptr);
  action.sa_flags |= SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

bool stopRequested() { return requested; }

} // namespace gradc::rt
