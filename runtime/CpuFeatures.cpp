// Features of the x86-64 processor that kernels may have been compiled for.
#include "runtime/CpuFeatures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradc::rt {
namespace {

struct Feature {
  const char *name;
  bool present;
};

#if defined(__x86_64__)
std::vector<Feature> processorFeatures() {
  __builtin_cpu_init();
#define FEATURE(name) Feature{name, __builtin_cpu_supports(name) != 0}
  return {FEATURE("sse4.2"),     FEATURE("avx"),          FEATURE("avx2"),
          FEATURE("fma"),        FEATURE("bmi"),          FEATURE("bmi2"),
          FEATURE("avx512f"),    FEATURE("avx512dq"),     FEATURE("avx512cd"),
          FEATURE("avx512bw"),   FEATURE("avx512vl"),     FEATURE("avx512vnni"),
          FEATURE("avx512bf16"), FEATURE("avx512vbmi"),   FEATURE("avx512vbmi2"),
          FEATURE("avx512ifma"), FEATURE("avx512bitalg"), FEATURE("avx512vpopcntdq")};
#undef FEATURE
}
#else
std::vector<Feature> processorFeatures() { return {}; }
#endif

} // namespace

Status checkCpuFeatures(const std::vector<std::string> &wanted) {
  std::vector<std::string> missing;
  for (const Feature &feature : processorFeatures())
    for (const std::string &name : wanted)
      if (!feature.present && name == feature.name)
        missing.push_back(name);
  if (missing.empty())
    return Status();
  return Status::user(fmt::format("this executable uses {}, which this processor lacks; compile it "
                                  "on the machine that runs it",
                                  fmt::join(missing, ", ")));
}

} // namespace gradc::rt
