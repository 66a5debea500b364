// See Target.h.
#include "tools/driver/Target.h"
#include "codegen/cpu/CpuBackend.h"
#include "codegen/gpu/GpuBackend.h"
#include "codegen/gpu/LibraryProducts.h"

#include "llvm/ADT/StringSwitch.h"

namespace gradc {

std::string targetNames() {
  std::string names = "cpu";
  for (int capability : codegen::gpu::GpuTarget::capabilities)
    names += ", cuda:" + codegen::gpu::GpuTarget{capability}.name();
  return names;
}

codegen::CpuTarget hostOf(const CompileRequest &request) {
  codegen::CpuTarget host = codegen::CpuTarget::host();
  host.threads = request.threads;
  return host;
}

static codegen::Products productsOf(llvm::StringRef gemm) {
  return llvm::StringSwitch<codegen::Products>(gemm)
      .Case("library", codegen::Products::library)
      .Case("auto", codegen::Products::faster)
      .Default(codegen::Products::generated);
}

llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request,
                                                              codegen::ProductTimes *times) {
  codegen::CpuTarget host = hostOf(request);
  llvm::StringRef name = request.target;
  if (name == "cpu") {
    if (request.emulate)
      return llvm::createStringError("--emulate runs a GPU's kernels on the host; add --target "
                                     "cuda:sm_80 or another GPU, or leave it out");
    return std::make_unique<codegen::CpuBackend>(host, productsOf(request.gemm), times);
  }
  if (name == "cuda" || name == "cuda:")
    return llvm::createStringError("--target " + request.target +
                                   ": the GPU's architecture is missing; use one of " +
                                   targetNames());
  if (!name.consume_front("cuda:"))
    return llvm::createStringError("--target " + request.target + " is not known; use one of " +
                                   targetNames());
  std::optional<codegen::gpu::GpuTarget> target = codegen::gpu::GpuTarget::parse(name);
  if (!target)
    return llvm::createStringError("--target " + request.target +
                                   ": no kernels for that architecture; use one of " +
                                   targetNames());
  if (request.passes.precision == "fp8" && target->capability < codegen::gpu::float8Capability)
    return llvm::createStringError("--precision fp8: " + target->name() +
                                   " multiplies no fp8; use --precision bf16, or --target "
                                   "cuda:sm_89 or cuda:sm_90");
  if (request.gemm != "generated")
    return llvm::createStringError("--gemm " + request.gemm +
                                   " is for products on the CPU; leave it out with --target " +
                                   request.target);
  return std::make_unique<codegen::gpu::GpuBackend>(*target, host, request.emulate);
}

} // namespace gradc
