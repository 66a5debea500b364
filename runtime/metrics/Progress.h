// The progress a person watches: one line that is rewritten on a terminal; elsewhere plain lines,
// of training about forty a run, of an evaluation one every ten seconds.
#pragma once

#include "runtime/metrics/StepMetrics.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gradc::rt {

struct ProgressOptions {
  std::FILE *out = stdout;
  uint64_t firstStep = 1; ///< the first step this run does: past 1 after a resume
  uint64_t totalSteps = 0;
  std::optional<bool> terminal = std::nullopt;  ///< asked of `out` when not given
  std::function<double()> secondsNow = nullptr; ///< a monotonic clock; the system's when not given
};

/// Not thread-safe; one a process, on rank 0. Lines that cannot be written are dropped.
class Progress {
public:
  explicit Progress(ProgressOptions options);

  /// On a terminal rewrites the line, at most ten times a second; elsewhere prints every step of a
  /// fixed stride, the first and the last one, and each that was validated or skipped.
  void update(const StepMetrics &metrics);
  /// Prints a line of its own, e.g. `saved step-100`, without tearing the progress line.
  void note(std::string_view text);
  /// Ends the line on a terminal. May be called more than once.
  void finish();

private:
  std::string line(const StepMetrics &metrics, double now) const;

  ProgressOptions options_;
  bool terminal_;
  uint64_t stride_;   ///< steps between plain lines
  double start_;      ///< seconds, when the first step began
  double shownAt_;    ///< seconds, when the terminal's line was last rewritten
  std::string shown_; ///< the line now on the terminal
};

/// How far an evaluation is. Not thread-safe.
class EvalProgress {
public:
  /// `totalSteps` is the number of batches; `firstStep` is not looked at.
  explicit EvalProgress(ProgressOptions options);
  EvalProgress(const EvalProgress &) = delete;
  EvalProgress &operator=(const EvalProgress &) = delete;
  ~EvalProgress() { finish(); }

  /// After a batch: how many are done, and the mean loss of the `tokens` counted so far. Rewrites a
  /// terminal's line at most ten times a second.
  void update(uint64_t batches, double loss, int64_t tokens);
  /// Clears a terminal's line, for the result to stand there. May be called more than once.
  void finish();

private:
  ProgressOptions options_;
  bool terminal_;
  double start_;   ///< seconds, when the first batch began
  double shownAt_; ///< seconds, when a line was last shown, or the start
  bool isShown_ = false;
};

/// E.g. "42s", "3m07s", "2h05m", "4d03h".
std::string shortDuration(double seconds);

} // namespace gradc::rt
