// What the tests of an executable's commands share: data, a usual command, and what an error is.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "AppRun.h"

namespace gradc::rt {

using nlohmann::json;
using Arguments = std::vector<std::string>;

class AppTest : public testing::Test {
protected:
  AppTest() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "the quick brown fox jumps over the lazy dog " + std::to_string(i * i % 97) + "\n";
    writeFile(data, text);
    writeFile(valData, text.substr(0, 1001));
  }

  /// `more` may give the usual flags otherwise.
  Arguments train(int steps, Arguments more = {}) const {
    Arguments arguments{"train", "--steps", std::to_string(steps)};
    const std::pair<const char *, std::string> usual[] = {
        {"--data", data}, {"--lr", "0.5"}, {"--threads", "2"}};
    for (const auto &[flag, value] : usual)
      if (std::find(more.begin(), more.end(), flag) == more.end())
        arguments.insert(arguments.end(), {flag, value});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::vector<json> metrics(const std::string &path) const {
    std::vector<json> lines;
    std::string text = readFile(path), line;
    std::stringstream stream(text);
    while (std::getline(stream, line))
      lines.push_back(json::parse(line));
    return lines;
  }

  /// Runs and checks that it is refused with one line.
  void expectError(const AppResult &result, int code, const std::string &part) {
    EXPECT_EQ(result.exitCode, code) << result.err;
    EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  TemporaryFolder folder;
  std::string data = folder.path("data.txt"), valData = folder.path("val.txt");
};

} // namespace gradc::rt
