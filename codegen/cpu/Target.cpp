// Finds out which CPU this is.
#include "codegen/cpu/Target.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <thread>

namespace gradc::codegen {

CpuTarget CpuTarget::host() {
  CpuTarget target;
  target.triple = llvm::sys::getDefaultTargetTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> present = llvm::sys::getHostCPUFeatures();
  llvm::SubtargetFeatures features;
  for (const auto &feature : present)
    features.AddFeature(feature.first(), feature.second);
  target.features = features.getString();

  auto has = [&](llvm::StringRef name) { return present.lookup(name); };
  if (has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq"))
    target.vectorBits = 512;
  else if (has("avx2") && has("fma"))
    target.vectorBits = 256;
  target.hasBf16 = target.vectorBits == 512 && has("avx512bf16");
  target.pairsBf16 = target.hasBf16;
  target.threads = std::max(1u, std::thread::hardware_concurrency());
  return target;
}

CpuTarget CpuTarget::baseline() {
  CpuTarget target;
  target.triple = llvm::sys::getDefaultTargetTriple();
  target.cpu = llvm::Triple(target.triple).isX86_64() ? "x86-64" : "generic";
  return target;
}

} // namespace gradc::codegen
