// The handler only sets a flag: all work is done by the training loop between steps.
#include "runtime/app/StopSignal.h"

#include <csignal>

namespace gradc::rt {
namespace {

volatile std::sig_atomic_t requested = 0;

void request(int) { requested = 1; }

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

bool stopRequested() { return requested != 0; }

} // namespace gradc::rt
