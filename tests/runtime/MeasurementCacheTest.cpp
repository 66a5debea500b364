// Caches of measurements: what is kept, and what a file that is none does.
#include "runtime/MeasurementCache.h"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "AppRun.h"

namespace gradc::rt {
namespace {

class MeasurementCacheTest : public testing::Test {
protected:
  MeasurementCache open(const std::string &machine = "this") const {
    return MeasurementCache(folder.path("caches"), "times.json", machine);
  }
  /// What saving a new measurement says.
  std::string saved() const {
    MeasurementCache cache = open();
    EXPECT_FALSE(cache.find("a").has_value());
    cache.add("a", 1.5);
    Status status = cache.save();
    EXPECT_TRUE(status.ok() || status.code() == ExitCode::machineFault);
    return status.message();
  }

  TemporaryFolder folder;
  std::string file = folder.path("caches/times.json");
};

TEST_F(MeasurementCacheTest, KeepsWhatEachMachineMeasured) {
  EXPECT_EQ(saved(), "");
  EXPECT_EQ(open().find("a"), 1.5);
  MeasurementCache other = open("other");
  EXPECT_FALSE(other.find("a").has_value());
  other.add("a", 2.5);
  EXPECT_TRUE(other.save().ok());
  EXPECT_EQ(open().find("a"), 1.5);
  EXPECT_EQ(open("other").find("a"), 2.5);
}

TEST_F(MeasurementCacheTest, ReplacesAFileThatHoldsNone) {
  std::filesystem::create_directory(folder.path("caches"));
  std::string deep(3'000'000, '[');
  for (const std::string &text : {std::string("rubbish"), std::string(), std::string("[1]"), deep,
                                  "{\"this\": " + deep + std::string(deep.size(), ']') + "}"}) {
    writeFile(file, text);
    EXPECT_EQ(saved(), "") << text.substr(0, 20);
    EXPECT_EQ(open().find("a"), 1.5);
  }
}

TEST_F(MeasurementCacheTest, LeavesWhatIsNoFileOfMeasurements) {
  std::string note = "; what was measured will be measured again; set GRADC_CACHE_DIR to a folder "
                     "that can be written";
  auto expectLeft = [&](const std::string &why) {
    std::string said = saved();
    EXPECT_TRUE(said.starts_with(file + why)) << said;
    EXPECT_TRUE(said.ends_with(note)) << said;
  };
  std::filesystem::create_directories(file);
  expectLeft(": is not a regular file");
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expectLeft(": is not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(file));
  std::filesystem::remove(file);
  writeFile(file, "{}");
  ASSERT_EQ(truncate(file.c_str(), (16 << 20) + 1), 0);
  expectLeft(": has 16777217 bytes, which no file of measurements has");
  EXPECT_EQ(std::filesystem::file_size(file), (16u << 20) + 1);
}

TEST_F(MeasurementCacheTest, SaysWhereAFolderCannotBeMade) {
  writeFile(folder.path("caches"), "a file");
  std::string said = saved();
  EXPECT_TRUE(said.starts_with(file + ": cannot be written: ")) << said;
  MeasurementCache nowhere("", "times.json", "this");
  nowhere.add("a", 1.5);
  EXPECT_NE(nowhere.save().message().find("set GRADC_CACHE_DIR"), std::string::npos);
}

} // namespace
} // namespace gradc::rt
