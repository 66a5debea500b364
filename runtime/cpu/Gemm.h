// Matrix products through oneDNN, cut into tasks for our own thread pool: oneDNN itself runs single
// threaded in every one of them (two pools would spin against each other, and its own split depends
// on the number of threads).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

class ThreadPool;

/// The library's version, e.g. "2.6.3".
std::string gemmLibraryVersion();

/// Whether right operands are packed where the library has a packed layout that it likes better
/// (processors with AVX-512), or always: slower elsewhere, but it lets the packed path be tested on
/// any machine.
enum class GemmPacking { whereItPays, always };

/// Executes products; keeps what it prepared for each shape, so that a step after the first
/// prepares and allocates nothing. Not for use by several threads at once.
class GemmEngine {
public:
  explicit GemmEngine(ThreadPool &pool, GemmPacking packing = GemmPacking::whereItPays);
  ~GemmEngine();

  /// Runs the product on resolved addresses: `a`, `b` and `c` of batch element (0, 0). `workspace`
  /// has gemm.workspaceBytes bytes and is aligned to 64; it may be null where those are 0. Results
  /// are the same bits for any number of threads. A defect status names a descriptor that cannot be
  /// executed.
  Status run(const GradcGemm &gemm, const float *a, const float *b, float *c, std::byte *workspace);

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

} // namespace gradc::rt
