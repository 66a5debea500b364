// TensorBoard event files with scalars.
#pragma once

#include "runtime/Status.h"
#include "runtime/metrics/StepMetrics.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace gradc::rt {

/// Appends to `FOLDER/events.out.tfevents.<time>.<host>.<pid>`; each record is flushed.
class TensorBoard {
public:
  /// Makes `folder` when it is missing.
  static Expected<TensorBoard> create(const std::string &folder);
  TensorBoard(TensorBoard &&other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}
  TensorBoard &operator=(TensorBoard &&) = delete;
  ~TensorBoard();

  Status scalar(std::string_view tag, uint64_t step, double value);
  /// The step's figures under the tags `train/...` and `val/loss`.
  Status append(const StepMetrics &metrics);
  const std::string &path() const { return path_; }

private:
  TensorBoard(std::string path, std::FILE *file) : path_(std::move(path)), file_(file) {}
  Status record(const std::string &event);

  std::string path_;
  std::FILE *file_;
};

/// CRC-32C (Castagnoli), which guards each record.
uint32_t crc32c(std::string_view bytes);

} // namespace gradc::rt
