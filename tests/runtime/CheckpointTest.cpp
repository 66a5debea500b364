// Checkpoints: round trip, damage of every kind, pruning, full disks.
#include "runtime/checkpoint/Checkpoint.h"

#include "tests/runtime/DataFileLimit.h"
#include "tests/runtime/DataFixture.h"

#include <cstring>
#include <fmt/format.h>

namespace gradc::rt {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public DataFixture {
protected:
  void SetUp() override {
    DataFixture::SetUp();
    store = path("run/checkpoints");
  }

  Status save(uint64_t step, unsigned keep = 3, const std::string &model = "model A") {
    std::vector<float> weights(1000, float(step));
    float count = float(step);
    std::vector<TensorView> tensors = {{"w", FileDtype::f32, {10, 100}, weights.data()},
                                       {"step", FileDtype::f32, {}, &count}};
    Manifest manifest{step, model, step * 7, uint64_t(-1), {{"lr", 0.1}, {"note", "x\ny"}}};
    return saveCheckpoint(store, manifest, tensors, keep);
  }

  LoadResult load() {
    auto result = loadNewestCheckpoint(store, "model A");
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : LoadResult();
  }

  /// The step of the checkpoint that is loaded, -1 for none. Its tensors must agree with it.
  int64_t loadedStep() {
    LoadResult result = load();
    if (!result.newest)
      return -1;
    std::vector<float> weights(1000);
    EXPECT_TRUE(toFloats(*result.newest->tensors.find("w"), weights.data()).ok());
    for (float weight : weights)
      EXPECT_EQ(weight, float(result.newest->manifest.step));
    return static_cast<int64_t>(result.newest->manifest.step);
  }

  std::vector<uint64_t> steps() {
    auto list = listCheckpoints(store);
    EXPECT_TRUE(list.ok());
    return *list;
  }

  std::string file(uint64_t step, const std::string &name) const {
    return fmt::format("{}/step-{}/{}", store, step, name);
  }

  std::string store;
};

TEST_F(CheckpointTest, RoundTrip) {
  ASSERT_OK(save(12));
  LoadResult result = load();
  ASSERT_TRUE(result.newest);
  EXPECT_TRUE(result.skipped.empty());
  const Manifest &manifest = result.newest->manifest;
  EXPECT_EQ(manifest.step, 12u);
  EXPECT_EQ(manifest.fingerprint, "model A");
  EXPECT_EQ(manifest.dataCursor, 84u);
  EXPECT_EQ(manifest.rngSeed, UINT64_MAX);
  EXPECT_EQ(manifest.extra["lr"], 0.1);
  EXPECT_EQ(manifest.extra["note"], "x\ny");
  EXPECT_EQ(result.newest->path, store + "/step-12");
  EXPECT_EQ(result.newest->tensors.find("w")->shape, (std::vector<int64_t>{10, 100}));
  EXPECT_EQ(loadedStep(), 12);
}

TEST_F(CheckpointTest, NothingThereIsNoError) {
  EXPECT_EQ(loadedStep(), -1);
  fs::create_directories(store);
  write("run/checkpoints/step-", "");
  write("run/checkpoints/step-x", "");
  write("run/checkpoints/step--1", "");
  write("run/checkpoints/step-99999999999999999999999", "");
  fs::create_directory(store + "/step-5.tmp");
  EXPECT_EQ(loadedStep(), -1);
  EXPECT_TRUE(steps().empty());
}

TEST_F(CheckpointTest, StepsAreOrderedAsNumbers) {
  ASSERT_OK(save(9));
  ASSERT_OK(save(10));
  EXPECT_EQ(loadedStep(), 10);
}

TEST_F(CheckpointTest, EveryFlippedBitIsFound) {
  ASSERT_OK(save(1));
  ASSERT_OK(save(2));
  for (const char *name : {"rank-0.safetensors", "manifest.json"}) {
    std::string target = file(2, name), sound = read(target);
    size_t checked = 0;
    for (size_t byte = 0; byte < sound.size(); byte += 1 + sound.size() / 97) {
      // Indentation of the manifest is the one thing that carries no meaning.
      if (std::isspace(static_cast<unsigned char>(sound[byte])))
        continue;
      flipBit(target, byte);
      LoadResult result = load();
      ASSERT_TRUE(result.newest);
      EXPECT_EQ(result.newest->manifest.step, 1u) << name << " byte " << byte;
      ASSERT_EQ(result.skipped.size(), 1u);
      EXPECT_NE(result.skipped[0].find(name), std::string::npos) << result.skipped[0];
      flipBit(target, byte);
      ++checked;
    }
    EXPECT_GT(checked, 30u);
  }
  EXPECT_EQ(loadedStep(), 2);
}

TEST_F(CheckpointTest, TruncatedAndMissingFilesAreSkipped) {
  ASSERT_OK(save(1));
  for (uint64_t step = 2; step <= 6; ++step)
    ASSERT_OK(save(step, 10));
  fs::resize_file(file(6, "rank-0.safetensors"), 100);
  fs::resize_file(file(5, "manifest.json"), 20);
  fs::remove(file(4, "manifest.json"));
  fs::remove(file(3, "rank-0.safetensors"));
  fs::rename(store + "/step-2", store + "/step-20"); // says step 2
  LoadResult result = load();
  ASSERT_TRUE(result.newest);
  EXPECT_EQ(result.newest->manifest.step, 1u);
  ASSERT_EQ(result.skipped.size(), 5u);
  EXPECT_NE(result.skipped[0].find("step-20"), std::string::npos);
  EXPECT_NE(result.skipped[1].find("100 bytes"), std::string::npos) << result.skipped[1];
}

TEST_F(CheckpointTest, AnotherModelIsRefusedByName) {
  ASSERT_OK(save(3, 3, "model B"));
  EXPECT_ERROR(loadNewestCheckpoint(store, "model A").status(), ExitCode::userError, "model A",
               "model B", "step-3");
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (uint64_t step = 1; step <= 6; ++step)
    ASSERT_OK(save(step, 3));
  EXPECT_EQ(steps(), (std::vector<uint64_t>{4, 5, 6}));
  ASSERT_OK(save(7, 0)); // at least two
  EXPECT_EQ(steps(), (std::vector<uint64_t>{6, 7}));
}

TEST_F(CheckpointTest, BrokenOnesAreNotCountedAsKept) {
  for (uint64_t step = 1; step <= 3; ++step)
    ASSERT_OK(save(step, 10));
  fs::resize_file(file(3, "rank-0.safetensors"), 100);
  ASSERT_OK(save(4, 2));
  EXPECT_EQ(steps(), (std::vector<uint64_t>{2, 3, 4}));
  fs::resize_file(file(4, "rank-0.safetensors"), 100);
  EXPECT_EQ(loadedStep(), 2);
}

TEST_F(CheckpointTest, SavingAgainReplaces) {
  ASSERT_OK(save(1));
  ASSERT_OK(save(2));
  flipBit(file(2, "rank-0.safetensors"), 3000);
  EXPECT_EQ(loadedStep(), 1);
  ASSERT_OK(save(2)); // as after a resume from step 1
  EXPECT_EQ(loadedStep(), 2);
  EXPECT_EQ(steps(), (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(fs::exists(store + "/step-2.tmp"));
}

TEST_F(CheckpointTest, NewerOnesAreLeftAlone) {
  ASSERT_OK(save(50));
  for (uint64_t step = 1; step <= 4; ++step)
    ASSERT_OK(save(step, 2));
  EXPECT_EQ(steps(), (std::vector<uint64_t>{3, 4, 50}));
}

TEST_F(CheckpointTest, LeftoversAreOverwrittenAndRemoved) {
  fs::create_directories(store + "/step-1.tmp");
  write("run/checkpoints/step-1.tmp/rank-0.safetensors", "half");
  write("run/checkpoints/step-1.tmp/other", "half");
  fs::create_directories(store + "/step-9.tmp");
  ASSERT_OK(save(1));
  EXPECT_EQ(loadedStep(), 1);
  EXPECT_FALSE(fs::exists(file(1, "other")));
  EXPECT_FALSE(fs::exists(store + "/step-9.tmp"));
}

TEST_F(CheckpointTest, FullDiskLosesNothing) {
  ASSERT_OK(save(1));
  ASSERT_OK(save(2));
  for (uint64_t step : {2, 3}) { // replacing an old one, and adding a new one
    Status status;
    {
      FileSizeLimit limit(2000);
      status = save(step);
    }
    EXPECT_ERROR(status, ExitCode::machineFault, "rank-0.safetensors", "bytes are needed");
    EXPECT_EQ(steps(), (std::vector<uint64_t>{1, 2}));
    EXPECT_EQ(loadedStep(), 2);
    EXPECT_FALSE(fs::exists(fmt::format("{}/step-{}.tmp", store, step)));
  }
}

TEST_F(CheckpointTest, AFolderThatCannotBeMadeIsTheUsersError) {
  write("run", "a file");
  EXPECT_ERROR(save(1), ExitCode::userError, "run/checkpoints");
}

TEST_F(CheckpointTest, TensorsOutliveTheirFolder) {
  ASSERT_OK(save(5));
  LoadResult result = load();
  fs::remove_all(store);
  std::vector<float> weights(1000);
  ASSERT_OK(toFloats(*result.newest->tensors.find("w"), weights.data()));
  EXPECT_EQ(weights[999], 5);
}

} // namespace
} // namespace gradc::rt
