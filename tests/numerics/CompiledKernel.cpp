// Kernels compiled for tests.
#include "tests/numerics/CompiledKernel.h"

#include "codegen/kernels/LlvmIr.h"
#include "tests/numerics/KernelCache.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace gradc::codegen {

namespace {

/// All that the compiled code follows from.
std::string textOf(const CpuTarget &target, LoadedKernel::Emitter emit) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  emit(builder, *module, "kernel");
  std::string text;
  llvm::raw_string_ostream out(text);
  out << target.triple << ' ' << target.cpu << ' ' << target.features << ' ' << target.vectorBits
      << '\n';
  module->print(out, mlir::OpPrintingFlags().assumeVerified());
  return text;
}

} // namespace

CompiledKernel::CompiledKernel(const CpuTarget &target, LoadedKernel::Emitter emit) {
  static KernelCache<LoadedKernel> cache;
  kernel = cache.get(textOf(target, emit), [&]() -> std::optional<LoadedKernel> {
    llvm::Expected<LoadedKernel> loaded = LoadedKernel::compile(target, emit);
    if (loaded)
      return std::move(*loaded);
    ADD_FAILURE() << llvm::toString(loaded.takeError());
    return std::nullopt;
  });
}

std::vector<CpuTarget> hostTargets() {
  CpuTarget host = CpuTarget::host();
  std::vector<CpuTarget> targets{host};
  for (int64_t bits : {256, 128})
    if (bits < host.vectorBits) {
      targets.push_back(host);
      targets.back().vectorBits = bits;
      targets.back().hasBf16 = false;
    }
  return targets;
}

} // namespace gradc::codegen
