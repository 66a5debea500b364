// Files that are read by turns, of which there may be more than a process can have open.
#pragma once

#include "runtime/Status.h"
#include "runtime/data/InputFile.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gradc::rt {

/// Keeps the files used last open and opens the others again when they are asked for. Safe to use
/// from any thread.
class OpenFiles {
public:
  /// Descriptors that are kept. Up to so many files are opened once.
  static constexpr size_t most = 16;

  /// Takes the next index. Later opens of `path` must find this very file.
  void add(const std::string &path, InputFile file);

  /// File `index`, open for as long as the caller holds it. Opened again, a file that has become
  /// shorter or that another one replaced is a fault of the machine.
  Expected<std::shared_ptr<const InputFile>> use(size_t index);

private:
  struct Known {
    std::string path;
    uint64_t size;
    FileIdentity identity;
  };
  struct Open {
    size_t index;
    std::shared_ptr<const InputFile> file;
  };
  static Expected<InputFile> reopen(const Known &known);
  void keep(size_t index, std::shared_ptr<const InputFile> file);

  std::mutex mutex_;
  std::vector<Known> known_;
  std::vector<Open> open_; ///< at most `most`, the one used last at the end
};

} // namespace gradc::rt
