// Prints what this machine can do at best, as one line of JSON: fp32 arithmetic and memory rates
// with one thread and with two, by which the other benches express their speeds as shares.
#include "runtime/cpu/Peak.h"

#include <cstdio>

int main() {
  const char *separator = "{\"peak\": [";
  for (int threads : {1, 2}) {
    auto rates = gradc::rt::measurePeak(threads);
    if (!rates) {
      std::fprintf(stderr, "error: %s\n", rates.status().message().c_str());
      return static_cast<int>(rates.status().code());
    }
    std::printf(
        "%s{\"threads\": %d, \"isa\": \"%s\", \"fp32_gflops\": %.1f, \"memory_gb_s\": %.1f}",
        separator, rates->threads, rates->isa, rates->flopsPerSecond * 1e-9,
        rates->bytesPerSecond * 1e-9);
    separator = ", ";
  }
  std::printf("]}\n");
  return 0;
}
