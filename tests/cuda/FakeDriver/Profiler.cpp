// A profiler, as NVTX 3 lets one into a process: writes down the ranges it is told of, in
// GRADC_FAKE_LOG.
#include "tests/cuda/FakeDriver/Machine.h"

#include <fmt/format.h>

namespace {

using AnyFunction = void (*)();
constexpr uint32_t callbacksTable = 1;
constexpr int coreModule = 1;
constexpr unsigned pushPlace = 9, popPlace = 11, corePlaces = 16;

int push(const char *name) {
  (void)gradc::rt::cuda::fake::Machine::get().enter(fmt::format("push:{}", name).c_str());
  return 0;
}
int pop() {
  (void)gradc::rt::cuda::fake::Machine::get().enter("pop");
  return 0;
}

} // namespace

extern "C" int InitializeInjectionNvtx2(const void *(*tableOf)(uint32_t)) {
  struct Callbacks {
    std::size_t bytes;
    int (*moduleTable)(int module, AnyFunction ***table, unsigned *size);
  };
  auto *callbacks = static_cast<const Callbacks *>(tableOf(callbacksTable));
  AnyFunction **table = nullptr;
  unsigned size = 0;
  if (!callbacks || callbacks->bytes < sizeof(Callbacks) ||
      !callbacks->moduleTable(coreModule, &table, &size) || size != corePlaces)
    return 0;
  *table[pushPlace] = reinterpret_cast<AnyFunction>(push);
  *table[popPlace] = reinterpret_cast<AnyFunction>(pop);
  return 1;
}
