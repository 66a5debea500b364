// The metrics file: one JSON object a line, one line a step, readable while the run goes on.
#pragma once

#include "runtime/Status.h"
#include "runtime/metrics/StepMetrics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gradc::rt {

/// Appends lines, each with a single write, so that a kill leaves at most the last one incomplete.
class JsonLines {
public:
  /// Without `resumeStep` a file that exists is begun anew. With it, lines of steps after it (and
  /// a last line cut short) are removed first, so that an interrupted run's file holds each step
  /// once; a file with any other content is refused untouched.
  static Expected<JsonLines> open(const std::string &path,
                                  std::optional<uint64_t> resumeStep = std::nullopt);

  JsonLines(JsonLines &&other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  JsonLines &operator=(JsonLines &&) = delete;
  ~JsonLines();

  Status append(const StepMetrics &metrics);

private:
  JsonLines(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

/// One line, newline included. JSON knows no NaN and no infinity: they become null.
std::string jsonLine(const StepMetrics &metrics);

} // namespace gradc::rt
