// Any bytes as a token file, under each extension: refused or read to the end, never a crash.
#include "runtime/data/Batches.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace gradc::rt;

/// A folder of this process, removed at its end.
struct Folder {
  Folder() {
    path = (std::filesystem::temp_directory_path() / "gradc-fuzz-XXXXXX").string();
    if (!::mkdtemp(path.data()))
      std::abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

static void readWhole(const std::string &path) {
  constexpr int64_t vocab = 50257;
  auto opened = openTokens(path);
  if (!opened)
    return;
  std::shared_ptr<const TokenSource> source = std::move(*opened);
  std::vector<int32_t> tokens(source->size());
  if (source->read(0, source->size(), tokens.data(), vocab).ok())
    for (int32_t token : tokens)
      if (token < 0 || token >= vocab)
        std::abort();
  // Several batches and a part of one, of most inputs: each costs calls of the system.
  constexpr int64_t rows = 2, length = 31;
  BatchOptions options{rows, length, DataOrder::shuffled, 1, vocab};
  auto validation = ValidationBatches::create(source, options);
  if (!validation)
    std::abort(); // two tokens are enough
  std::vector<int32_t> inputs(rows * length), targets(rows * length);
  for (uint64_t i = 0; i < validation->count(); ++i)
    (void)validation->batchAt(i, inputs.data(), targets.data());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  for (const char *name : {"/t.bin", "/t.txt"}) {
    std::string path = folder.path + name;
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(data), size);
    readWhole(path);
    // Writing over a file makes some file systems flush it each time; a new one stays in memory.
    std::filesystem::remove(path);
  }
  return 0;
}
