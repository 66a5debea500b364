// Where a training run's figures go: terminal, metrics file, TensorBoard, trace.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "runtime/Session.h"
#include "runtime/app/Options.h"
#include "runtime/metrics/ChromeTrace.h"
#include "runtime/metrics/JsonLines.h"
#include "runtime/metrics/Progress.h"
#include "runtime/metrics/TensorBoard.h"

namespace gradc::rt {

/// What a step yielded, before rates are worked out.
struct StepResult {
  int64_t step = 0;
  double loss = 0, gradNorm = 0, learningRate = 0;
  double seconds = 0;
  bool skipped = false; ///< gradients overflowed; nothing was updated
  std::optional<double> valLoss;
};

class Reporter {
public:
  /// Opens the files that the options name. `doneSteps` were done by earlier runs; `peak` is what
  /// utilisation is measured against, needed where a file shows it.
  static Expected<std::unique_ptr<Reporter>> create(const TrainOptions &options,
                                                    const Metadata &metadata,
                                                    const std::optional<DevicePeak> &peak,
                                                    int64_t doneSteps);

  /// Traces the session's launches until trace-steps steps were reported.
  void attachTrace(Session &session);
  /// Reports a step on all channels.
  Status report(Session &session, const StepResult &result);
  void note(std::string_view text) { progress_.note(text); }
  /// Ends the terminal's line and completes the trace.
  Status finish(Session &session);

private:
  Reporter(const TrainOptions &options, const Metadata &metadata, double peakFlops,
           int64_t doneSteps, Progress progress)
      : options_(options), metadata_(metadata), peakFlops_(peakFlops), doneSteps_(doneSteps),
        progress_(std::move(progress)) {}
  void estimate(const StepResult &result);
  Status endTrace(Session &session);

  const TrainOptions &options_;
  const Metadata &metadata_;
  double peakFlops_; ///< a second; 0 where no one asks for it, or it is not known
  int64_t doneSteps_;
  Progress progress_;
  std::optional<JsonLines> jsonLines_;
  std::optional<TensorBoard> tensorBoard_;
  std::unique_ptr<ChromeTrace> trace_;
  double measuredSeconds_ = 0; ///< of the steps the estimate rests on
  int64_t measuredSteps_ = 0;
};

} // namespace gradc::rt
