// Writes {"traceEvents": [...]} one event a line.
#include "runtime/metrics/ChromeTrace.h"

#include "runtime/data/FileError.h"

#include <cerrno>
#include <unistd.h>

namespace gradc::rt {

using nlohmann::json;

Expected<std::unique_ptr<ChromeTrace>> ChromeTrace::create(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return fileError(path, "create", errno);
  std::unique_ptr<ChromeTrace> trace(new ChromeTrace(path, file));
  if (std::fputs("{\"traceEvents\": [", file) < 0)
    trace->error_ = errno;
  return trace;
}

ChromeTrace::~ChromeTrace() { (void)close(); }

void ChromeTrace::add(const json &event) {
  std::string text = event.dump(-1, ' ', false, json::error_handler_t::replace);
  std::lock_guard lock(mutex_);
  if (!file_ || error_ != 0)
    return;
  if (std::fprintf(file_, "%s\n%s", empty_ ? "" : ",", text.c_str()) < 0)
    error_ = errno;
  empty_ = false;
}

void ChromeTrace::complete(std::string_view name, std::string_view category,
                           double beginMicroseconds, double durationMicroseconds, uint64_t thread,
                           const json &arguments) {
  add({{"ph", "X"},
       {"name", name},
       {"cat", category},
       {"ts", beginMicroseconds},
       {"dur", durationMicroseconds},
       {"pid", ::getpid()},
       {"tid", thread},
       {"args", arguments}});
}

void ChromeTrace::nameThread(uint64_t thread, std::string_view name) {
  add({{"ph", "M"},
       {"name", "thread_name"},
       {"pid", ::getpid()},
       {"tid", thread},
       {"args", {{"name", name}}}});
}

Status ChromeTrace::close() {
  std::lock_guard lock(mutex_);
  if (file_) {
    if (error_ == 0 && std::fputs("\n]}\n", file_) < 0)
      error_ = errno;
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0)
      error_ = errno;
  }
  return error_ == 0 ? Status() : fileError(path_, "write", error_);
}

} // namespace gradc::rt
