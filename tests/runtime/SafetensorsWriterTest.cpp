// The safetensors writer and the opener of weights: round trips, atomic replacement, full disks,
// folders and indices.
#include "runtime/checkpoint/SafetensorsWriter.h"

#include "runtime/checkpoint/WeightSource.h"
#include "tests/runtime/DataFileLimit.h"
#include "tests/runtime/DataFixture.h"

#include <cstring>

namespace gradc::rt {
namespace {

class SafetensorsWriterTest : public DataFixture {
protected:
  /// Writes one F32 tensor of one element.
  std::string writeOne(const std::string &name, const std::string &tensor, float value) {
    std::vector<TensorView> tensors = {{tensor, FileDtype::f32, {1}, &value}};
    EXPECT_TRUE(writeSafetensors(path(name), tensors).ok());
    return path(name);
  }
};

TEST_F(SafetensorsWriterTest, RoundTrip) {
  std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  std::vector<uint8_t> mask = {1, 0, 1};
  double scalar = 0.25;
  std::vector<TensorView> tensors = {{"mask", FileDtype::u8, {3}, mask.data()},
                                     {"weights \"q\"", FileDtype::f32, {2, 3}, weights.data()},
                                     {"scalar", FileDtype::f64, {}, &scalar},
                                     {"empty", FileDtype::f32, {0, 7}, nullptr}};
  auto digest = writeSafetensors(path("w.safetensors"), tensors);
  ASSERT_OK(digest.status());

  auto file = SafetensorsFile::open(path("w.safetensors"));
  ASSERT_OK(file.status());
  EXPECT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  std::string image = read(path("w.safetensors"));
  EXPECT_EQ(image.size(), digest->bytes);
  EXPECT_EQ(digestOf(std::as_bytes(std::span(image))).hash, digest->hash);
  for (const TensorView &tensor : tensors) {
    const StoredTensor *stored = file->find(tensor.name);
    ASSERT_NE(stored, nullptr) << tensor.name;
    EXPECT_EQ(stored->dtype, tensor.dtype);
    EXPECT_EQ(stored->shape, tensor.shape);
    std::string bytes(stored->bytes.size(), '\0');
    ASSERT_OK(stored->bytes.read(std::as_writable_bytes(std::span(bytes))));
    if (!bytes.empty()) {
      ASSERT_OK(tensor.bytes.access([&](const void *expected) {
        EXPECT_EQ(std::memcmp(bytes.data(), expected, bytes.size()), 0);
        return Status();
      }));
      // The writer orders by element size, so each tensor is aligned in the file.
      EXPECT_EQ(image.rfind(bytes) % (dtypeBits(stored->dtype) / 8), 0u);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path("w.safetensors.tmp")));
}

TEST_F(SafetensorsWriterTest, ReplacesAndOverwritesStaleTemporary) {
  writeOne("w.safetensors", "a", 1);
  write("w.safetensors.tmp", "stale");
  writeOne("w.safetensors", "b", 2);
  auto file = SafetensorsFile::open(path("w.safetensors"));
  ASSERT_OK(file.status());
  EXPECT_NE(file->find("b"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(path("w.safetensors.tmp")));
}

TEST_F(SafetensorsWriterTest, FullDiskKeepsTheOldFile) {
  writeOne("w.safetensors", "old", 1);
  std::string before = read(path("w.safetensors"));
  std::vector<float> large(100000);
  std::vector<TensorView> tensors = {{"new", FileDtype::f32, {100000}, large.data()}};
  Status status;
  {
    FileSizeLimit limit(65536);
    status = writeSafetensors(path("w.safetensors"), tensors).status();
  }
  EXPECT_ERROR(status, ExitCode::machineFault, "w.safetensors", "bytes are needed");
  EXPECT_EQ(read(path("w.safetensors")), before);
  EXPECT_FALSE(std::filesystem::exists(path("w.safetensors.tmp")));
}

TEST_F(SafetensorsWriterTest, DevicesAreWrittenInPlace) {
  float value = 1;
  std::vector<TensorView> tensors = {{"a", FileDtype::f32, {1}, &value}};
  EXPECT_ERROR(writeSafetensors("/dev/full", tensors).status(), ExitCode::machineFault, "/dev/full",
               "No space left", "bytes are needed");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_TRUE(writeSafetensors("/dev/null", tensors).ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(SafetensorsWriterTest, BadPathsAreTheUsersError) {
  EXPECT_ERROR(writeSafetensors(path("no/such/w.safetensors"), {}).status(), ExitCode::userError,
               "no/such", "folder");
  EXPECT_ERROR(writeSafetensors(folder, {}).status(), ExitCode::userError, "folder");
}

TEST_F(SafetensorsWriterTest, BadTensorsAreADefect) {
  float value = 1;
  std::vector<TensorView> twice = {{"a", FileDtype::f32, {1}, &value},
                                   {"a", FileDtype::f32, {1}, &value}};
  EXPECT_ERROR(writeSafetensors(path("w"), twice).status(), ExitCode::defect, "\"a\"");
  std::vector<TensorView> negative = {{"n", FileDtype::f32, {-1}, &value}};
  EXPECT_ERROR(writeSafetensors(path("w"), negative).status(), ExitCode::defect, "\"n\"");
  EXPECT_FALSE(std::filesystem::exists(path("w")));
}

/// Read through a mapping, what is gone would be a signal.
TEST_F(SafetensorsWriterTest, FilesThatAreCutShortMeanwhile) {
  std::vector<float> values(100000, 1), out(values.size());
  std::vector<uint16_t> halves(values.size(), 0x3f80);
  std::vector<TensorView> tensors = {{"f", FileDtype::f32, {100000}, values.data()},
                                     {"h", FileDtype::bf16, {100000}, halves.data()}};
  ASSERT_OK(writeSafetensors(path("w.safetensors"), tensors).status());
  auto source = WeightSource::open(path("w.safetensors"));
  ASSERT_OK(source.status());
  for (const char *name : {"f", "h"}) {
    ASSERT_OK(toFloats(*source->find(name), out.data()));
    EXPECT_EQ(out, values);
  }
  std::filesystem::resize_file(path("w.safetensors"), 450000); // amid h
  ASSERT_OK(toFloats(*source->find("f"), out.data()));
  EXPECT_ERROR(toFloats(*source->find("h"), out.data()), ExitCode::machineFault, "w.safetensors",
               "ends at byte 450000", "cut short meanwhile");
  std::filesystem::resize_file(path("w.safetensors"), 20); // amid the header
  EXPECT_ERROR(toFloats(*source->find("f"), out.data()), ExitCode::machineFault,
               "cut short meanwhile");
}

TEST_F(SafetensorsWriterTest, SourceMergesAFolder) {
  writeOne("x-2.safetensors", "b", 2);
  writeOne("x-1.safetensors", "a", 1);
  auto source = WeightSource::open(folder);
  ASSERT_OK(source.status());
  ASSERT_EQ(source->tensors().size(), 2u);
  EXPECT_EQ(source->tensors()[0]->name, "a");
  EXPECT_EQ(source->fileOf("b"), path("x-2.safetensors"));
  float value = 0;
  ASSERT_OK(toFloats(*source->find("b"), &value));
  EXPECT_EQ(value, 2);

  writeOne("x-3.safetensors", "a", 3);
  EXPECT_ERROR(WeightSource::open(folder).status(), ExitCode::userError, "\"a\"", "x-1", "x-3");
  // model.safetensors stands for the whole model when it is there.
  writeOne("model.safetensors", "only", 4);
  source = WeightSource::open(folder);
  ASSERT_OK(source.status());
  EXPECT_EQ(source->tensors().size(), 1u);
}

TEST_F(SafetensorsWriterTest, SourceFollowsAnIndex) {
  writeOne("p1.safetensors", "a", 1);
  writeOne("p2.safetensors", "b", 2);
  writeOne("stray.safetensors", "a", 9);
  std::string index =
      write("model.safetensors.index.json",
            R"({"metadata":{},"weight_map":{"a":"p1.safetensors","b":"p2.safetensors"}})");
  for (const std::string &opened : {folder, index}) {
    auto source = WeightSource::open(opened);
    ASSERT_OK(source.status());
    EXPECT_EQ(source->tensors().size(), 2u);
    EXPECT_EQ(source->fileOf("a"), path("p1.safetensors"));
  }
}

TEST_F(SafetensorsWriterTest, SourceRefusesLyingIndices) {
  writeOne("p1.safetensors", "a", 1);
  writeOne("p2.safetensors", "b", 1);
  auto open = [&](const std::string &map) {
    return WeightSource::open(write("m.index.json", map)).status();
  };
  EXPECT_ERROR(open(R"({"weight_map":{"a":"../p1.safetensors"}})"), ExitCode::userError, "\"a\"",
               "same folder");
  EXPECT_ERROR(open(R"({"weight_map":{"a":"/etc/passwd"}})"), ExitCode::userError, "same folder");
  EXPECT_ERROR(open(R"({"weight_map":{"a":3}})"), ExitCode::userError, "\"a\"");
  EXPECT_ERROR(open(R"({"weight_map":{"a":"p2.safetensors","b":"p2.safetensors"}})"),
               ExitCode::userError, "\"a\"", "p2");
  EXPECT_ERROR(open(R"({"weight_map":{"a":"p1.safetensors","a":"p1.safetensors"}})"),
               ExitCode::userError, "twice");
  EXPECT_ERROR(open(R"({"weight_map":{"a":"gone.safetensors"}})"), ExitCode::userError, "gone");
  EXPECT_ERROR(open(R"({"maps":{}})"), ExitCode::userError, "weight_map");
  EXPECT_ERROR(open("[]"), ExitCode::userError, "weight_map");
  EXPECT_ERROR(open("{"), ExitCode::userError, "JSON");
  EXPECT_ERROR(open(""), ExitCode::userError, "m.index.json");
}

TEST_F(SafetensorsWriterTest, SourceNamesWhatIsMissing) {
  EXPECT_ERROR(WeightSource::open(path("gone.safetensors")).status(), ExitCode::userError, "gone",
               "No such file");
  EXPECT_ERROR(WeightSource::open(folder).status(), ExitCode::userError, "no safetensors file");
  EXPECT_ERROR(WeightSource::open(write("e.safetensors", "")).status(), ExitCode::userError,
               "too few");
  EXPECT_ERROR(WeightSource::open("/dev/null").status(), ExitCode::userError, "regular");
}

} // namespace
} // namespace gradc::rt
