// What was read of a token file does not stay in the process's resident memory.
#include "runtime/data/Batches.h"

#include "tests/runtime/DataFixture.h"

#include <algorithm>

namespace gradc::rt {
namespace {

constexpr uint64_t mebi = 1024 * 1024, fileBytes = 200 * mebi;
/// The prefetch thread's last read and what the kernel maps around it, with room.
constexpr uint64_t allowedBytes = 12 * mebi;

/// Bytes of mapped files that are resident now. A file in memory (tmpfs) counts as shared.
uint64_t residentFileBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  uint64_t kibi = 0, found = 0;
  while (std::getline(status, line))
    if (line.starts_with("RssFile:") || line.starts_with("RssShmem:")) {
      kibi += std::stoull(line.substr(line.find(':') + 1));
      ++found;
    }
  EXPECT_EQ(found, 2u);
  return kibi * 1024;
}

class DataResident : public DataFixture {
protected:
  std::shared_ptr<const TokenSource> open() {
    std::string block(mebi, '\1');
    std::ofstream file(path("large.bin"), std::ios::binary);
    for (uint64_t written = 0; written < fileBytes; written += block.size())
      file << block;
    file.close();
    auto source = openTokens(path("large.bin"));
    EXPECT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ((*source)->size(), fileBytes / 2);
    return std::move(*source);
  }

  std::vector<int32_t> tokens = std::vector<int32_t>(8 * 1024), targets = tokens;
};

TEST_F(DataResident, ShuffledBatchesLeaveNothingBehind) {
  BatchOptions options{8, 1024, DataOrder::shuffled, 42, 65536};
  auto loader = BatchLoader::create(open(), options);
  ASSERT_OK(loader.status());
  uint64_t before = residentFileBytes(), most = 0;
  // Far enough apart that the pages mapped around each window would be most of the file.
  for (int batch = 0; batch < 750; ++batch) {
    ASSERT_OK((*loader)->next(tokens.data(), targets.data()));
    ASSERT_EQ(tokens.front(), 257);
    most = std::max(most, residentFileBytes());
  }
  EXPECT_LT(most, before + allowedBytes);
}

TEST_F(DataResident, AValidationPassLeavesNothingBehind) {
  auto batches = ValidationBatches::create(open(), {8, 1024, DataOrder::sequential, 42, 65536});
  ASSERT_OK(batches.status());
  uint64_t before = residentFileBytes(), most = 0;
  for (uint64_t batch = 0; batch < batches->count(); batch += 4) {
    ASSERT_OK(batches->batchAt(batch, tokens.data(), targets.data()).status());
    most = std::max(most, residentFileBytes());
  }
  EXPECT_LT(most, before + allowedBytes);
}

} // namespace
} // namespace gradc::rt
