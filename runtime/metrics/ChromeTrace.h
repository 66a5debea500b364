// A timeline in Chrome's trace format, for Perfetto or chrome://tracing.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gradc::rt {

/// Streams events to the file. Any thread may add them.
class ChromeTrace {
public:
  static Expected<std::unique_ptr<ChromeTrace>> create(const std::string &path);
  ~ChromeTrace();

  /// One interval on thread `thread`, in microseconds from any fixed origin.
  void complete(std::string_view name, std::string_view category, double beginMicroseconds,
                double durationMicroseconds, uint64_t thread,
                const nlohmann::json &arguments = nlohmann::json::object());
  /// The name shown for a thread's row.
  void nameThread(uint64_t thread, std::string_view name);
  /// Ends the JSON; reports the first write that failed. Events after it are dropped.
  Status close();

private:
  ChromeTrace(std::string path, std::FILE *file) : path_(std::move(path)), file_(file) {}
  void add(const nlohmann::json &event);

  std::string path_;
  std::mutex mutex_; ///< guards what follows
  std::FILE *file_;
  bool empty_ = true;
  int error_ = 0; ///< errno of the first failed write
};

} // namespace gradc::rt
