// Token files: formats are detected and read exactly; truncated, lying and short ones are refused.
#include "runtime/data/TokenSource.h"

#include "tests/runtime/DataFileLimit.h"
#include "tests/runtime/DataFixture.h"

#include <cstring>
#include <thread>

namespace gradc::rt {
namespace {

template <typename Id> std::string raw(const std::vector<Id> &ids) {
  return {reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(Id)};
}

std::string llmcHeader(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return raw(header);
}

std::vector<int32_t> readAll(const TokenSource &source, int64_t vocab) {
  std::vector<int32_t> out(source.size());
  EXPECT_TRUE(source.read(0, source.size(), out.data(), vocab).ok());
  return out;
}

class DataTokenSource : public DataFixture {};

TEST_F(DataTokenSource, TextIsBytes) {
  auto source = openTokens(write("t.txt", "Az\xff\n"));
  ASSERT_OK(source.status());
  EXPECT_EQ((*source)->format(), TokenFormat::text);
  EXPECT_EQ(readAll(**source, 256), (std::vector<int32_t>{65, 122, 255, 10}));
}

TEST_F(DataTokenSource, NanoGptIs16Bit) {
  auto source = openTokens(write("train.bin", raw<uint16_t>({1, 50256, 65535})));
  ASSERT_OK(source.status());
  EXPECT_EQ((*source)->format(), TokenFormat::nanoGpt);
  EXPECT_EQ(readAll(**source, 65536), (std::vector<int32_t>{1, 50256, 65535}));
}

TEST_F(DataTokenSource, LlmcIsKnownByItsMagic) {
  auto narrow =
      openTokens(write("n.anything", llmcHeader(20240520, 1, 3) + raw<uint16_t>({7, 8, 50256})));
  ASSERT_OK(narrow.status());
  EXPECT_EQ((*narrow)->format(), TokenFormat::llmc16Bit);
  EXPECT_EQ(readAll(**narrow, 50257), (std::vector<int32_t>{7, 8, 50256}));

  auto wide = openTokens(write("w.bin", llmcHeader(20240801, 7, 2) + raw<uint32_t>({128255, 3})));
  ASSERT_OK(wide.status());
  EXPECT_EQ((*wide)->format(), TokenFormat::llmc32Bit);
  EXPECT_EQ(readAll(**wide, 128256), (std::vector<int32_t>{128255, 3}));
}

TEST_F(DataTokenSource, LlmcSizeMustMatchItsHeader) {
  std::string header = llmcHeader(20240520, 1, 3);
  for (const std::string &body : {raw<uint16_t>({1, 2}), raw<uint16_t>({1, 2, 3, 4}),
                                  raw<uint16_t>({1, 2, 3}) + "x", std::string()})
    EXPECT_ERROR(openTokens(write("l.bin", header + body)).status(), ExitCode::userError, "l.bin",
                 "3 tokens", "1030");
  EXPECT_ERROR(openTokens(write("l.bin", header.substr(0, 1000))).status(), ExitCode::userError,
               "1000", "header");
  EXPECT_ERROR(openTokens(write("l.bin", llmcHeader(20240520, 2, 1) + "ab")).status(),
               ExitCode::userError, "version 2");
  EXPECT_ERROR(openTokens(write("l.bin", llmcHeader(20240801, 1, 1) + "abcd")).status(),
               ExitCode::userError, "version 1", "expected 7");
  EXPECT_ERROR(openTokens(write("l.bin", llmcHeader(20240520, 1, -1) + "ab")).status(),
               ExitCode::userError, "4294967295");
}

TEST_F(DataTokenSource, BadFilesAreRefused) {
  EXPECT_ERROR(openTokens(folder).status(), ExitCode::userError, "no .bin");
  EXPECT_ERROR(openTokens(path("gone.txt")).status(), ExitCode::userError, "gone.txt");
  EXPECT_ERROR(openTokens(write("e.txt", "")).status(), ExitCode::userError, "e.txt", "empty");
  EXPECT_ERROR(openTokens(write("odd.bin", "abc")).status(), ExitCode::userError, "odd.bin",
               "3 bytes");
  write("m.bin", "abcd");
  write("m.idx", std::string("MMIDIDX\0\0rest", 13));
  EXPECT_ERROR(openTokens(path("m.bin")).status(), ExitCode::userError, "Megatron");
}

TEST_F(DataTokenSource, ShortDataSaysHowMuchIsNeeded) {
  std::string five = write("five.txt", "12345");
  EXPECT_TRUE(openTokens(five, 4).ok());
  EXPECT_ERROR(openTokens(five, 5).status(), ExitCode::userError, "five.txt", "5 tokens", "6 are");
  EXPECT_TRUE(openTokens(write("two.txt", "ab"), 1).ok());
  EXPECT_ERROR(openTokens(write("one.txt", "a"), 1).status(), ExitCode::userError, "2 are needed");
  EXPECT_ERROR(openTokens(five, 0).status(), ExitCode::userError, "sequence length");
  EXPECT_ERROR(openTokens(five, UINT64_MAX - 1).status(), ExitCode::userError, "five.txt");
}

TEST_F(DataTokenSource, IdsBeyondTheVocabNameFileAndPosition) {
  auto source = openTokens(write("v.bin", raw<uint16_t>({1, 2, 60000, 3})));
  ASSERT_OK(source.status());
  int32_t out[4];
  EXPECT_ERROR((*source)->read(1, 3, out, 50257), ExitCode::userError, "v.bin", "60000",
               "position 2", "50257", "retokenise");
  EXPECT_TRUE((*source)->read(0, 2, out, 50257).ok());
  EXPECT_TRUE((*source)->read(0, 4, out, 60001).ok());
  EXPECT_FALSE((*source)->read(0, 4, out, 60000).ok());

  auto wide = openTokens(write("w.bin", llmcHeader(20240801, 7, 2) + raw<uint32_t>({1, 1u << 31})));
  ASSERT_OK(wide.status());
  EXPECT_ERROR((*wide)->read(0, 2, out, INT64_MAX), ExitCode::userError, "2147483648");
  auto text = openTokens(write("t.txt", "a\x80"));
  ASSERT_OK(text.status());
  EXPECT_ERROR((*text)->read(0, 2, out, 128), ExitCode::userError, "128", "bytes");
}

TEST_F(DataTokenSource, RangesBeyondTheEndAreADefect) {
  auto source = openTokens(write("t.txt", "abcd"));
  ASSERT_OK(source.status());
  int32_t out[4];
  EXPECT_ERROR((*source)->read(2, 3, out, 256), ExitCode::defect, "t.txt");
  EXPECT_ERROR((*source)->read(UINT64_MAX, 2, out, 256), ExitCode::defect, "t.txt");
  EXPECT_TRUE((*source)->read(4, 0, out, 256).ok());
}

TEST_F(DataTokenSource, AFolderIsJoinedInSortedOrder) {
  write("b.bin", raw<uint16_t>({3, 4, 700}));
  write("a.bin", raw<uint16_t>({1, 2}));
  write("c.bin", llmcHeader(20240801, 7, 2) + raw<uint32_t>({5, 6}));
  write("z.txt", "ignored");
  auto source = openTokens(folder);
  ASSERT_OK(source.status());
  std::vector<int32_t> expected = {1, 2, 3, 4, 700, 5, 6};
  EXPECT_EQ(readAll(**source, 701), expected);
  for (uint64_t begin = 0; begin <= expected.size(); ++begin)
    for (uint64_t count = 0; begin + count <= expected.size(); ++count) {
      std::vector<int32_t> out(count);
      ASSERT_OK((*source)->read(begin, count, out.data(), 701));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), expected.begin() + begin));
    }
  int32_t out[7];
  EXPECT_ERROR((*source)->read(0, 7, out, 700), ExitCode::userError, "b.bin", "position 2");
}

TEST_F(DataTokenSource, AFolderOfTexts) {
  write("2.txt", "cd");
  write("1.txt", "ab");
  auto source = openTokens(folder);
  ASSERT_OK(source.status());
  EXPECT_EQ(readAll(**source, 256), (std::vector<int32_t>{'a', 'b', 'c', 'd'}));
  write("3.txt", "");
  EXPECT_ERROR(openTokens(folder).status(), ExitCode::userError, "3.txt", "empty");
}

TEST_F(DataTokenSource, AFolderOfBothSplitsGivesTheOneAskedFor) {
  // nanoGPT's names, llm.c's, and a file that names no split.
  write("train.bin", raw<uint16_t>({1, 2}));
  write("fineweb_train_000001.bin", raw<uint16_t>({3, 4}));
  write("val.bin", raw<uint16_t>({5, 6}));
  write("fineweb_val_000000.bin", raw<uint16_t>({7, 8}));
  write("more.bin", raw<uint16_t>({9, 10}));
  auto training = openTokens(folder, 1, DataSplit::training);
  ASSERT_OK(training.status());
  EXPECT_EQ(readAll(**training, 11), (std::vector<int32_t>{3, 4, 1, 2}));
  EXPECT_EQ((*training)->choice(), folder + ": reading fineweb_train_000001.bin, train.bin; left "
                                            "out by their names: fineweb_val_000000.bin, more.bin, "
                                            "val.bin");
  auto validation = openTokens(folder, 1, DataSplit::validation);
  ASSERT_OK(validation.status());
  EXPECT_EQ(readAll(**validation, 11), (std::vector<int32_t>{7, 8, 5, 6}));
  // A file is read whatever its name.
  auto file = openTokens(path("val.bin"), 1, DataSplit::training);
  ASSERT_OK(file.status());
  EXPECT_EQ((*file)->choice(), "");
}

TEST_F(DataTokenSource, AFolderWithoutTheSplitGivesWhatIsNotOfTheOther) {
  write("a.txt", "ab");
  write("evaluate-trainer.txt", "cd"); // neither word stands alone in it
  write("VALIDATION.txt", "ef");
  auto training = openTokens(folder, 1, DataSplit::training);
  ASSERT_OK(training.status());
  EXPECT_EQ(readAll(**training, 256), (std::vector<int32_t>{'a', 'b', 'c', 'd'}));
  EXPECT_NE((*training)->choice().find("VALIDATION.txt"), std::string::npos);

  write("test.bin", raw<uint16_t>({1, 2})); // where there is a .bin no .txt is read
  EXPECT_ERROR(openTokens(folder, 1, DataSplit::training).status(), ExitCode::userError,
               "for validation", "name a file");
  std::filesystem::rename(path("test.bin"), path("train.bin"));
  EXPECT_ERROR(openTokens(folder, 1, DataSplit::validation).status(), ExitCode::userError,
               "for training", "name a file");
}

TEST_F(DataTokenSource, AFileThatIsCutShortMeanwhile) {
  std::string file = write("cut.bin", raw(std::vector<uint16_t>(4000, 7)));
  auto source = openTokens(file);
  ASSERT_OK(source.status());
  std::filesystem::resize_file(file, 2001);
  std::vector<int32_t> out(4000);
  ASSERT_OK((*source)->read(0, 1000, out.data(), 8));
  EXPECT_EQ(out[999], 7);
  EXPECT_ERROR((*source)->read(0, 1001, out.data(), 8), ExitCode::machineFault, "cut.bin",
               "ends at byte 2001, of 8000 when it was opened");
  EXPECT_ERROR((*source)->read(3000, 1, out.data(), 8), ExitCode::machineFault, "cut.bin",
               "restore the file");
}

/// More files than a process may have open, of one token each.
class DataManyFiles : public DataTokenSource {
protected:
  static constexpr int count = 3 * static_cast<int>(OpenFiles::most);
  void SetUp() override {
    DataTokenSource::SetUp();
    for (int i = 0; i < count; ++i)
      write(name(i), raw<uint16_t>({static_cast<uint16_t>(i), 7}));
    DescriptorLimit limit(OpenFiles::most + 16);
    auto opened = openTokens(folder);
    ASSERT_OK(opened.status());
    source = std::move(*opened);
    for (int round = 0; round < 2; ++round)
      ASSERT_NO_FATAL_FAILURE(readThem());
  }
  static std::string name(int i) { return std::to_string(100 + i) + ".bin"; }
  void readThem() {
    std::vector<int32_t> tokens = readAll(*source, count);
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(tokens[2 * i], i);
  }
  /// Of file `i`'s first token; what was read last stays open, the first files do not.
  Status readOf(int i) {
    int32_t token;
    return source->read(2 * static_cast<uint64_t>(i), 1, &token, count);
  }

  std::unique_ptr<TokenSource> source;
};

TEST_F(DataManyFiles, FromManyThreads) {
  DescriptorLimit limit(OpenFiles::most + 16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { readThem(); });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(DataManyFiles, OneIsCutShortMeanwhile) {
  std::filesystem::resize_file(path(name(0)), 3);
  EXPECT_ERROR(readOf(0), ExitCode::machineFault, "100.bin", "has 3 bytes, of 4",
               "restore the file");
  ASSERT_OK(readOf(1));
}

TEST_F(DataManyFiles, OneIsReplacedMeanwhile) {
  write("new", raw<uint16_t>({9, 9}));
  std::filesystem::rename(path("new"), path(name(2)));
  EXPECT_ERROR(readOf(2), ExitCode::machineFault, "102.bin", "another file has taken its place");
  std::filesystem::remove(path(name(3)));
  EXPECT_ERROR(readOf(3), ExitCode::userError, "103.bin");
  std::ofstream(path(name(4)), std::ios::app) << "more"; // what was there is still there
  ASSERT_OK(readOf(4));
}

} // namespace
} // namespace gradc::rt
