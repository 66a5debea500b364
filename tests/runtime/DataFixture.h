// A temporary folder for a test of files, and short ways to fill and read files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

namespace gradc::rt {

/// Each test has a folder of its own, removed after it.
class DataFixture : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "gradc-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(const std::string &name) const { return folder + "/" + name; }

  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  static std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static void flipBit(const std::string &path, size_t byte) {
    std::string content = read(path);
    ASSERT_LT(byte, content.size());
    content[byte] ^= 1;
    std::ofstream(path, std::ios::binary) << content;
  }

  std::string folder;
};

} // namespace gradc::rt

/// The call failed, and its message names everything it should.
#define EXPECT_ERROR(expression, exitCode, ...)                                                    \
  do {                                                                                             \
    ::gradc::rt::Status statusSeen = (expression);                                                 \
    EXPECT_EQ(statusSeen.code(), exitCode) << statusSeen.message();                                \
    for (std::string word : {__VA_ARGS__})                                                         \
      EXPECT_NE(statusSeen.message().find(word), std::string::npos)                                \
          << "\"" << word << "\" is not in: " << statusSeen.message();                             \
    EXPECT_EQ(statusSeen.message().find('\n'), std::string::npos);                                 \
  } while (false)

#define ASSERT_OK(expression)                                                                      \
  do {                                                                                             \
    ::gradc::rt::Status statusSeen = (expression);                                                 \
    ASSERT_TRUE(statusSeen.ok()) << statusSeen.message();                                          \
  } while (false)
