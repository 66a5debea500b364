// See RegisterLimits.h.
#include "codegen/gpu/RegisterLimits.h"

#include "codegen/gpu/Processor.h"

#include "llvm/ADT/StringMap.h"

namespace gradc::codegen::gpu {
namespace {

/// A thread's registers are given to a warp in units of as many.
constexpr int64_t registerUnit = 8;
/// Of a thread, on every architecture that kernels are made for.
constexpr int64_t mostRegisters = 255;

/// PTX as LLVM prints it: what all kernels share, then a text for each.
struct SplitPtx {
  llvm::StringRef shared;
  std::vector<llvm::StringRef> kernels;
};

SplitPtx split(llvm::StringRef ptx) {
  SplitPtx parts;
  size_t at = ptx.find(kernelEntry);
  parts.shared = ptx.take_front(at);
  while (at != llvm::StringRef::npos) {
    size_t next = ptx.find(kernelEntry, at + kernelEntry.size());
    parts.kernels.push_back(ptx.slice(at, next));
    at = next;
  }
  return parts;
}

llvm::StringRef nameOf(llvm::StringRef kernel) {
  return kernel.drop_front(kernelEntry.size()).split('(').first;
}

/// Directives stand a line each between the parameters and the body.
struct KernelText {
  llvm::StringRef head, body; ///< `head` to the end of the parameters
  llvm::SmallVector<llvm::StringRef> directives;
};

KernelText parse(llvm::StringRef kernel) {
  KernelText text;
  size_t bodyAt = kernel.find("\n{");
  size_t headEnd = kernel.take_front(bodyAt).rfind(")\n");
  if (bodyAt == llvm::StringRef::npos || headEnd == llvm::StringRef::npos)
    return {kernel, "", {}};
  text.head = kernel.take_front(headEnd + 2);
  text.body = kernel.drop_front(bodyAt + 1);
  kernel.slice(headEnd + 2, bodyAt).split(text.directives, '\n', -1, /*KeepEmpty=*/false);
  return text;
}

int64_t threadsOf(const KernelText &text) {
  for (llvm::StringRef directive : text.directives)
    if (directive.consume_front(".reqntid ")) {
      int64_t threads = 1, extent = 0;
      while (!directive.consumeInteger(10, extent)) {
        threads *= extent;
        directive = directive.ltrim(", ");
      }
      return threads;
    }
  return 0;
}

std::string withLimit(llvm::StringRef kernel, llvm::StringRef limit) {
  KernelText text = parse(kernel);
  std::string result = text.head.str();
  for (llvm::StringRef directive : text.directives)
    if (!directive.starts_with(".minnctapersm") && !directive.starts_with(".maxnreg"))
      result += directive.str() + '\n';
  if (!limit.empty())
    result += limit.str() + '\n';
  return result + text.body.str();
}

int64_t spilledBytes(const KernelResources &kernel) {
  return std::max(kernel.spillStoreBytes + kernel.spillLoadBytes, kernel.stackBytes);
}

/// The limit with which `kernel` spills the least; nothing where none is better than its own.
llvm::Expected<std::optional<std::string>> bestLimit(llvm::StringRef shared, llvm::StringRef kernel,
                                                     const KernelResources &spilled,
                                                     const GpuTarget &target,
                                                     const std::string &ptxas) {
  std::optional<std::string> best;
  int64_t fewest = spilledBytes(spilled);
  for (const std::string &limit : limitsToTry(threadsOf(parse(kernel)), spilled.registers)) {
    auto tried = assemblePtx(shared.str() + withLimit(kernel, limit), target, ptxas);
    if (!tried)
      return tried.takeError();
    if (tried->kernels.empty() || spilledBytes(tried->kernels.front()) >= fewest)
      continue;
    best = limit;
    fewest = spilledBytes(tried->kernels.front());
    if (fewest == 0)
      break;
  }
  return best;
}

} // namespace

std::vector<std::string> limitsToTry(int64_t threads, int64_t registers) {
  std::vector<std::string> limits;
  if (threads <= 0 || registers <= 0)
    return limits;
  auto most = [&](int64_t blocks) {
    return std::min(registersOfProcessor / (blocks * threads) / registerUnit * registerUnit,
                    mostRegisters);
  };
  int64_t held = llvm::alignTo(registers, registerUnit) * threads;
  int64_t blocks = std::max<int64_t>(registersOfProcessor / held, 1);
  for (int64_t kept = blocks; kept >= std::max<int64_t>(blocks - 1, 1); --kept) {
    limits.push_back(".minnctapersm " + std::to_string(kept));
    int64_t limit = most(kept);
    for (int tries = 0; tries < 5 && limit > most(kept + 1); ++tries) {
      limits.push_back(".maxnreg " + std::to_string(limit));
      limit = (limit - 1) / registerUnit * registerUnit;
    }
    if (kept == blocks)
      limits.emplace_back();
  }
  return limits;
}

llvm::Expected<Cubin> assembleWithoutSpills(const std::string &ptx, const GpuTarget &target,
                                            const std::string &ptxas) {
  llvm::Expected<Cubin> first = assemblePtx(ptx, target, ptxas);
  if (!first)
    return first;
  llvm::StringMap<const KernelResources *> spilled;
  for (const KernelResources &kernel : first->kernels)
    if (spilledBytes(kernel) > 0)
      spilled[kernel.name] = &kernel;
  if (spilled.empty())
    return first;
  SplitPtx parts = split(ptx);
  std::string limited = parts.shared.str();
  llvm::StringMap<std::optional<std::string>> limits;
  for (llvm::StringRef kernel : parts.kernels) {
    const KernelResources *said = spilled.lookup(nameOf(kernel));
    std::optional<std::string> limit;
    if (said) {
      auto best = bestLimit(parts.shared, kernel, *said, target, ptxas);
      if (!best)
        return best.takeError();
      limit = *best;
    }
    limits[nameOf(kernel)] = limit;
    limited += limit ? withLimit(kernel, *limit) : kernel.str();
  }
  llvm::Expected<Cubin> last = assemblePtx(limited, target, ptxas);
  if (last)
    for (KernelResources &kernel : last->kernels)
      kernel.limit = limits[kernel.name];
  return last;
}

} // namespace gradc::codegen::gpu
