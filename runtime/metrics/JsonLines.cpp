// Opens, cuts and appends to the metrics file.
#include "runtime/metrics/JsonLines.h"

#include "runtime/checkpoint/AtomicFile.h"
#include "runtime/data/FileError.h"
#include "runtime/data/InputFile.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

namespace gradc::rt {

using nlohmann::ordered_json;

std::string jsonLine(const StepMetrics &metrics) {
  ordered_json line = {{"step", metrics.step},
                       {"loss", metrics.loss},
                       {"grad_norm", metrics.gradNorm},
                       {"lr", metrics.learningRate},
                       {"tokens", metrics.tokens},
                       {"step_ms", metrics.stepMs},
                       {"tokens_per_s", metrics.tokensPerSecond},
                       {"flops_per_s", metrics.flopsPerSecond},
                       {"mfu", metrics.mfu ? ordered_json(*metrics.mfu) : ordered_json()},
                       {"skipped", metrics.skipped}};
  if (metrics.valLoss)
    line["val_loss"] = *metrics.valLoss;
  return line.dump() + "\n";
}

/// The step of one of our lines.
static std::optional<uint64_t> stepOf(std::string_view line) {
  auto value = ordered_json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object())
    return std::nullopt;
  auto step = value.find("step");
  if (step == value.end() || !step->is_number_unsigned())
    return std::nullopt;
  return step->get<uint64_t>();
}

/// Rewrites the file without the lines after `resumeStep`, or leaves it when there are none.
static Status cut(const std::string &path, uint64_t resumeStep) {
  GRADC_ASSIGN_OR_RETURN(std::string text, readText(path));
  std::string_view rest = text;
  std::string kept;
  for (uint64_t number = 1; !rest.empty(); ++number) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos)
      break; // a line that a kill cut short
    std::string_view line = rest.substr(0, end + 1);
    rest.remove_prefix(end + 1);
    std::optional<uint64_t> step = stepOf(line);
    if (!step)
      return Status::user(fmt::format("{}: line {} is not a line of metrics; name another file "
                                      "for --metrics",
                                      path, number));
    if (*step <= resumeStep)
      kept += line;
  }
  if (kept.size() == text.size())
    return {};
  GRADC_ASSIGN_OR_RETURN(AtomicFile shorter, AtomicFile::create(path, kept.size()));
  GRADC_RETURN_IF_ERROR(shorter.write(kept.data(), kept.size()));
  return shorter.commit().status();
}

Expected<JsonLines> JsonLines::open(const std::string &path, std::optional<uint64_t> resumeStep) {
  std::error_code ignored;
  if (resumeStep && std::filesystem::is_regular_file(path, ignored))
    GRADC_RETURN_IF_ERROR(cut(path, *resumeStep));
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (resumeStep ? 0 : O_TRUNC);
  int descriptor = ::open(path.c_str(), flags, 0644);
  if (descriptor < 0)
    return errno == ENOENT ? fileError(path, "create", ENOENT, "create its folder first")
                           : fileError(path, "open", errno);
  return JsonLines(path, descriptor);
}

JsonLines::~JsonLines() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Status JsonLines::append(const StepMetrics &metrics) {
  std::string line = jsonLine(metrics);
  std::string_view rest = line;
  while (!rest.empty()) {
    ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      return fileError(path_, "write", errno);
    rest.remove_prefix(written < 0 ? 0 : static_cast<size_t>(written));
  }
  return {};
}

} // namespace gradc::rt
