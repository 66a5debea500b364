// See Target.h.
#include "tools/driver/Target.h"
#include "codegen/cpu/CpuBackend.h"
#include "codegen/gpu/GpuBackend.h"

namespace gradc {

llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request) {
  codegen::CpuTarget host = codegen::CpuTarget::host();
  host.threads = request.threads;
  llvm::StringRef name = request.target;
  if (name == "cpu") {
    if (request.emulate)
      return llvm::createStringError("--emulate runs a GPU's kernels on the host; add --target "
                                     "cuda:sm_80 or another GPU, or leave it out");
    return std::make_unique<codegen::CpuBackend>(host, request.products);
  }
  if (!name.consume_front("cuda:"))
    return llvm::createStringError("--target " + request.target +
                                   " is not known; use cpu, cuda:sm_80 or cuda:sm_90");
  std::optional<codegen::gpu::GpuTarget> target = codegen::gpu::GpuTarget::parse(name);
  if (!target)
    return llvm::createStringError("--target " + request.target +
                                   ": no kernels for that architecture; use cuda:sm_80, "
                                   "cuda:sm_86, cuda:sm_89 or cuda:sm_90");
  return std::make_unique<codegen::gpu::GpuBackend>(*target, host);
}

} // namespace gradc
