// The functions of Functions.def and Collectives.def as C++ sees them: their definitions include
// this, so that one which differs does not compile.
#pragma once

#include <vector>

#include "runtime/emulator/Abi.h"

namespace gradc::rt::emulator {

// The letters of Functions.def.
using V = void;
using P = void *;
using S = const GradcSite *;
using L = int64_t;
using I = int32_t;
using H = uint16_t;
using F = float;

extern "C" {
#define GRADC_EMULATED(symbol, result, ...) result symbol(__VA_ARGS__);
#include "runtime/emulator/Functions.def"
#undef GRADC_EMULATED
#define GRADC_COLLECTIVE(symbol) void symbol(const GradcLanes *lanes);
#include "runtime/emulator/Collectives.def"
#undef GRADC_COLLECTIVE
F __truncsfbf2(F x); // NOLINT(clang-diagnostic-reserved-identifier): compilers' name for it
}

struct Symbol {
  const char *name;
  void *address;
};

/// All of them, for kernels that are loaded into this process rather than linked.
std::vector<Symbol> symbols();

} // namespace gradc::rt::emulator
