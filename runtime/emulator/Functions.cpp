// The addresses of what kernels call.
#include "runtime/emulator/Functions.h"

namespace gradc::rt::emulator {

std::vector<Symbol> symbols() {
  return {
      {"__truncsfbf2", reinterpret_cast<void *>(&__truncsfbf2)},
#define GRADC_EMULATED(symbol, ...) {#symbol, reinterpret_cast<void *>(&symbol)},
#include "runtime/emulator/Functions.def"
#undef GRADC_EMULATED
#define GRADC_COLLECTIVE(symbol) {#symbol, reinterpret_cast<void *>(&symbol)},
#include "runtime/emulator/Collectives.def"
#undef GRADC_COLLECTIVE
  };
}

} // namespace gradc::rt::emulator
