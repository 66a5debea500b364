// The safetensors reader: what is sound is read exactly, whatever lies is refused by name.
#include "runtime/checkpoint/Safetensors.h"

#include "tests/runtime/DataFixture.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace gradc::rt {
namespace {

std::string image(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header + data;
}

Expected<SafetensorsFile> parse(const std::string &image) {
  return SafetensorsFile::parse(FileBytes(std::as_bytes(std::span(image))), "w.safetensors");
}

std::string tensor(const char *dtype, const char *shape, const char *offsets) {
  return std::string("{\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, ReadsNamesShapesAndBytes) {
  std::string file = image("{\"b\":" + tensor("F32", "[2]", "[4,12]") +
                               ",\"a\":" + tensor("I16", "[1,2]", "[0,4]") +
                               ",\"__metadata__\":{\"format\":\"pt\"}}   ",
                           "abcdefghijkl");
  auto parsed = parse(file);
  ASSERT_OK(parsed.status());
  ASSERT_EQ(parsed->tensors().size(), 2u);
  EXPECT_EQ(parsed->tensors()[0].name, "a");
  EXPECT_EQ(parsed->tensors()[0].dtype, FileDtype::i16);
  EXPECT_EQ(parsed->tensors()[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(parsed->metadata().at("format"), "pt");
  const StoredTensor *b = parsed->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->elementCount(), 2u);
  std::string bytes(b->bytes.size(), '\0');
  ASSERT_OK(b->bytes.read(std::as_writable_bytes(std::span(bytes))));
  EXPECT_EQ(bytes, "efghijkl");
  EXPECT_EQ(parsed->find("c"), nullptr);
}

TEST(Safetensors, AllowsEmptyAndRankZero) {
  std::string file = image("{\"e\":" + tensor("F64", "[0,3]", "[0,0]") +
                               ",\"f\":" + tensor("F64", "[3,0]", "[8,8]") +
                               ",\"s\":" + tensor("F64", "[]", "[0,8]") + "}",
                           "12345678");
  auto parsed = parse(file);
  ASSERT_OK(parsed.status());
  EXPECT_EQ(parsed->find("s")->elementCount(), 1u);
  EXPECT_EQ(parsed->find("e")->elementCount(), 0u);
  EXPECT_TRUE(parse(image("{}", "")).ok());
}

struct BadCase {
  const char *name;
  std::string image;
  std::vector<std::string> words;
};

class SafetensorsBad : public ::testing::TestWithParam<BadCase> {};

TEST_P(SafetensorsBad, IsRefused) {
  Status status = parse(GetParam().image).status();
  EXPECT_ERROR(status, ExitCode::userError, "w.safetensors");
  for (const std::string &word : GetParam().words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

std::vector<BadCase> badCases() {
  std::string good = "{\"a\":" + tensor("U8", "[4]", "[0,4]") + "}";
  std::string deep = "{\"a\":" + std::string(100000, '[');
  return {
      {"NoBytes", "", {"too few"}},
      {"ShortPrefix", "1234567", {"too few"}},
      {"HugeHeader", std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), {"limit"}},
      {"HeaderBeyondFile", image(good, "abcd").substr(0, 20), {"truncated"}},
      {"EmptyHeader", image("", ""), {"'{'"}},
      {"LeadingSpace", image(" " + good, "abcd"), {"'{'"}},
      {"NotJson", image("{\"a\":", ""), {"JSON at byte"}},
      {"NulInHeader", image(good + std::string("\0 junk", 6), "abcd"), {"NUL"}},
      {"BadUtf8", image("{\"\xff\":1}", ""), {"JSON"}},
      {"Deep", image(deep, ""), {"deeper"}},
      {"DuplicateTensor",
       image("{\"a\":" + tensor("U8", "[4]", "[0,4]") + ",\"a\":" + tensor("U8", "[4]", "[0,4]") +
                 "}",
             "abcd"),
       {"\"a\"", "twice"}},
      {"DuplicateField",
       image("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"shape\":[4],\"data_offsets\":[0,4]}}",
             "abcd"),
       {"\"shape\"", "twice"}},
      {"MetadataNotStrings", image("{\"__metadata__\":{\"x\":1}}", ""), {"\"x\""}},
      {"MetadataNotObject", image("{\"__metadata__\":[]}", ""), {"__metadata__"}},
      {"EntryNotObject", image("{\"a\":3}", ""), {"\"a\""}},
      {"UnknownDtype", image("{\"a\":" + tensor("F99", "[4]", "[0,4]") + "}", "abcd"), {"F99"}},
      {"NoDtype", image("{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", "abcd"), {"dtype"}},
      {"NoShape", image("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", "abcd"), {"shape"}},
      {"NoOffsets", image("{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", "abcd"), {"data_offsets"}},
      {"NegativeDim",
       image("{\"a\":" + tensor("U8", "[-4]", "[0,4]") + "}", "abcd"),
       {"dimension"}},
      {"FractionalDim",
       image("{\"a\":" + tensor("U8", "[4.0]", "[0,4]") + "}", "abcd"),
       {"dimension"}},
      {"SizeOverflow",
       image("{\"a\":" + tensor("U8", "[4294967296,4294967296,16]", "[0,0]") + "}", ""),
       {"overflows"}},
      {"SpanTooShort", image("{\"a\":" + tensor("F32", "[2]", "[0,4]") + "}", "abcd"), {"8", "4"}},
      {"HalfByte", image("{\"a\":" + tensor("F4", "[3]", "[0,2]") + "}", "ab"), {"whole byte"}},
      {"Backwards", image("{\"a\":" + tensor("U8", "[4]", "[4,0]") + "}", "abcd"), {"backwards"}},
      {"Hole",
       image("{\"a\":" + tensor("U8", "[1]", "[0,1]") + ",\"b\":" + tensor("U8", "[2]", "[2,4]") +
                 "}",
             "abcd"),
       {"\"b\"", "hole"}},
      {"Overlap",
       image("{\"a\":" + tensor("U8", "[3]", "[0,3]") + ",\"b\":" + tensor("U8", "[2]", "[2,4]") +
                 "}",
             "abcd"),
       {"\"b\"", "overlap"}},
      {"FirstNotZero", image("{\"a\":" + tensor("U8", "[3]", "[1,4]") + "}", "abcd"), {"hole"}},
      {"BytesBehind", image(good, "abcde"), {"behind"}},
      {"Truncated", image(good, "abc"), {"truncated"}},
      {"NewlineInName", image("{\"a\\nb\":3}", ""), {"a\\nb"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Files, SafetensorsBad, ::testing::ValuesIn(badCases()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Safetensors, EveryTruncationIsRefused) {
  std::string whole = image("{\"a\":" + tensor("F32", "[2]", "[0,8]") + "}", "abcdefgh");
  ASSERT_TRUE(parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse(whole.substr(0, size)).ok()) << size;
}

std::vector<float> floatsOf(const char *dtype, const std::string &bytes, size_t count) {
  // One odd byte in front makes the view unaligned.
  std::string header = "{\"pad\":" + tensor("U8", "[1]", "[0,1]") + ",\"t\":" +
                       tensor(dtype, ("[" + std::to_string(count) + "]").c_str(),
                              ("[1," + std::to_string(1 + bytes.size()) + "]").c_str()) +
                       "}";
  std::string file = image(header, "p" + bytes);
  auto parsed = parse(file);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  std::vector<float> out(count);
  EXPECT_TRUE(toFloats(*parsed->find("t"), out.data()).ok());
  return out;
}

template <typename Element> std::string bytesOf(std::vector<Element> values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Element)};
}

TEST(Safetensors, ConvertsFloatTypes) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(floatsOf("F32", bytesOf<float>({1.5f, -inf}), 2), (std::vector<float>{1.5f, -inf}));
  EXPECT_EQ(floatsOf("F64", bytesOf<double>({0.1, -3}), 2), (std::vector<float>{0.1f, -3}));
  EXPECT_EQ(floatsOf("BF16", bytesOf<uint16_t>({0x3fc0, 0xff80}), 2),
            (std::vector<float>{1.5f, -inf}));
  EXPECT_EQ(floatsOf("F16", bytesOf<uint16_t>({0x3e00, 0x7c00, 0x0001, 0x83ff, 0x7bff, 0x0400}), 6),
            (std::vector<float>{1.5f, inf, 0x1p-24f, -1023 * 0x1p-24f, 65504, 0x1p-14f}));
  EXPECT_TRUE(std::isnan(floatsOf("F16", bytesOf<uint16_t>({0x7e00}), 1)[0]));
  EXPECT_TRUE(std::signbit(floatsOf("F16", bytesOf<uint16_t>({0x8000}), 1)[0]));
}

TEST(Safetensors, RefusesToConvertIntegers) {
  std::string file = image("{\"ids\":" + tensor("I64", "[1]", "[0,8]") + "}", "12345678");
  auto parsed = parse(file);
  ASSERT_OK(parsed.status());
  float out;
  EXPECT_ERROR(toFloats(parsed->tensors()[0], &out), ExitCode::userError, "\"ids\"", "I64");
}

} // namespace
} // namespace gradc::rt
