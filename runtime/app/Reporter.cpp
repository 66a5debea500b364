// Reporter: one StepMetrics a step for all channels, and the estimate of the whole run's time.
#include "runtime/app/Reporter.h"

#include <fmt/format.h>

namespace gradc::rt {
namespace {

constexpr int64_t estimateSteps = 3;

double microseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch()).count();
}

} // namespace

Expected<std::unique_ptr<Reporter>> Reporter::create(const TrainOptions &options,
                                                     const Metadata &metadata,
                                                     const std::optional<DevicePeak> &peak,
                                                     int64_t doneSteps) {
  ProgressOptions progress;
  progress.firstStep = uint64_t(doneSteps + 1);
  progress.totalSteps = uint64_t(options.steps);
  std::unique_ptr<Reporter> reporter(new Reporter(
      options, metadata, peak ? peak->flopsPerSecond : 0, doneSteps, Progress(progress)));
  if (!options.metrics.empty()) {
    std::optional<uint64_t> resumeStep;
    if (doneSteps > 0)
      resumeStep = uint64_t(doneSteps);
    GRADC_ASSIGN_OR_RETURN(auto lines, JsonLines::open(options.metrics, resumeStep));
    reporter->jsonLines_.emplace(std::move(lines));
  }
  if (!options.tensorboard.empty()) {
    GRADC_ASSIGN_OR_RETURN(auto board, TensorBoard::create(options.tensorboard));
    reporter->tensorBoard_.emplace(std::move(board));
  }
  if (!options.trace.empty()) {
    GRADC_ASSIGN_OR_RETURN(reporter->trace_, ChromeTrace::create(options.trace));
    reporter->trace_->nameThread(0, "launches");
    reporter->trace_->nameThread(1, "steps");
  }
  return reporter;
}

void Reporter::attachTrace(Session &session) {
  if (!trace_)
    return;
  session.observe([this](const LaunchRecord &launch) {
    double duration = microseconds(launch.times.end) - microseconds(launch.times.begin);
    auto rate = [&](int64_t amount) { return duration > 0 ? double(amount) / duration / 1e3 : 0; };
    trace_->complete(launch.name ? launch.name : "?",
                     launch.kind == LaunchKind::gemm ? "matmul" : "kernel",
                     microseconds(launch.times.begin), duration, 0,
                     {{"flops", launch.flops},
                      {"bytes", launch.bytes},
                      {"gflops_per_s", rate(launch.flops)},
                      {"gbytes_per_s", rate(launch.bytes)}});
  });
}

void Reporter::estimate(const StepResult &result) {
  // The first step prepares the matrix products and is no measure where there are others.
  if (result.step == doneSteps_ + 1 || measuredSteps_ >= estimateSteps)
    return;
  measuredSeconds_ += result.seconds;
  if (++measuredSteps_ == estimateSteps)
    progress_.note(fmt::format(
        "estimated total time {} for {} steps, validation and checkpoints not counted",
        shortDuration(measuredSeconds_ / estimateSteps * double(options_.steps - doneSteps_)),
        options_.steps - doneSteps_));
}

Status Reporter::report(Session &session, const StepResult &result) {
  StepMetrics metrics;
  metrics.step = uint64_t(result.step);
  metrics.loss = result.loss;
  metrics.gradNorm = result.gradNorm;
  metrics.learningRate = result.learningRate;
  metrics.tokens = uint64_t(metadata_.tokensPerStep());
  metrics.stepMs = result.seconds * 1e3;
  metrics.tokensPerSecond = double(metadata_.tokensPerStep()) / result.seconds;
  metrics.flopsPerSecond = metadata_.flopsPerStep / result.seconds;
  if (peakFlops_ > 0)
    metrics.mfu = metrics.flopsPerSecond / peakFlops_;
  metrics.valLoss = result.valLoss;
  metrics.skipped = result.skipped;
  progress_.update(metrics);
  estimate(result);
  if (jsonLines_)
    GRADC_RETURN_IF_ERROR(jsonLines_->append(metrics));
  if (tensorBoard_)
    GRADC_RETURN_IF_ERROR(tensorBoard_->append(metrics));
  if (trace_) {
    double now = microseconds(std::chrono::steady_clock::now());
    trace_->complete(fmt::format("step {}", result.step), "step", now - result.seconds * 1e6,
                     result.seconds * 1e6, 1);
    if (result.step >= doneSteps_ + options_.traceSteps)
      return endTrace(session);
  }
  return Status();
}

Status Reporter::endTrace(Session &session) {
  session.observe(nullptr);
  if (!trace_)
    return Status();
  Status status = trace_->close();
  trace_.reset();
  return status;
}

Status Reporter::finish(Session &session) {
  progress_.finish();
  return endTrace(session);
}

} // namespace gradc::rt
