// Formats and paces the progress line.
#include "runtime/metrics/Progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <unistd.h>

#include "runtime/Say.h"

namespace gradc::rt {

static constexpr double rewriteEvery = 0.1; // seconds
static constexpr uint64_t plainLines = 40;
static constexpr double evalLineEvery = 10; // seconds

static double steadySeconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

static bool isTerminal(const ProgressOptions &options) {
  return options.terminal.value_or(::isatty(::fileno(options.out)) == 1);
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)), terminal_(isTerminal(options_)) {
  if (!options_.secondsNow)
    options_.secondsNow = steadySeconds;
  uint64_t steps = options_.totalSteps - std::min(options_.totalSteps, options_.firstStep - 1);
  stride_ = std::max<uint64_t>(1, steps / plainLines);
  start_ = options_.secondsNow();
  shownAt_ = -HUGE_VAL;
}

std::string shortDuration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9)
    return "--";
  auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 60)
    return fmt::format("{}s", whole);
  if (whole < 3600)
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400)
    return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string Progress::line(const StepMetrics &metrics, double now) const {
  uint64_t done = metrics.step - std::min(metrics.step, options_.firstStep - 1);
  uint64_t left = options_.totalSteps - std::min(options_.totalSteps, metrics.step);
  double perStep = done > 0 ? (now - start_) / static_cast<double>(done) : NAN;
  std::string text =
      fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}  {:.0f} tok/s  ETA {}", metrics.step,
                  options_.totalSteps, metrics.loss, metrics.learningRate, metrics.tokensPerSecond,
                  shortDuration(perStep * static_cast<double>(left)));
  if (metrics.valLoss)
    text += fmt::format("  val_loss {:.4f}", *metrics.valLoss);
  if (metrics.skipped)
    text += "  skipped: non-finite gradients";
  return text;
}

void Progress::update(const StepMetrics &metrics) {
  double now = options_.secondsNow();
  bool last = metrics.step >= options_.totalSteps;
  bool notable = metrics.valLoss || metrics.skipped;
  if (!terminal_) {
    if (metrics.step == options_.firstStep || metrics.step % stride_ == 0 || last || notable) {
      say(options_.out, "{}\n", line(metrics, now));
      std::fflush(options_.out);
    }
    return;
  }
  if (notable) { // stays on the screen
    shown_.clear();
    note(line(metrics, now));
    return;
  }
  if (now - shownAt_ < rewriteEvery && !last)
    return;
  shownAt_ = now;
  shown_ = line(metrics, now);
  say(options_.out, "\r{}\x1b[K", shown_);
  std::fflush(options_.out);
}

void Progress::note(std::string_view text) {
  if (terminal_)
    say(options_.out, "\r{}\x1b[K\n{}", text, shown_);
  else
    say(options_.out, "{}\n", text);
  std::fflush(options_.out);
}

void Progress::finish() {
  if (terminal_ && !shown_.empty())
    say(options_.out, "\n");
  shown_.clear();
  std::fflush(options_.out);
}

EvalProgress::EvalProgress(ProgressOptions options)
    : options_(std::move(options)), terminal_(isTerminal(options_)) {
  if (!options_.secondsNow)
    options_.secondsNow = steadySeconds;
  start_ = shownAt_ = options_.secondsNow();
}

void EvalProgress::update(uint64_t batches, double loss, int64_t tokens) {
  double now = options_.secondsNow();
  if (now - shownAt_ < (terminal_ ? rewriteEvery : evalLineEvery))
    return;
  shownAt_ = now;
  double perBatch = (now - start_) / static_cast<double>(batches);
  uint64_t left = options_.totalSteps - std::min(options_.totalSteps, batches);
  std::string text = fmt::format(
      "batch {}/{}  loss {}  {:.0f} tok/s  ETA {}", batches, options_.totalSteps,
      tokens > 0 ? fmt::format("{:.4f}", loss) : "--", static_cast<double>(tokens) / (now - start_),
      shortDuration(perBatch * static_cast<double>(left)));
  fmt::print(options_.out, "{}{}{}", terminal_ ? "\r" : "", text, terminal_ ? "\x1b[K" : "\n");
  std::fflush(options_.out);
  isShown_ = true;
}

void EvalProgress::finish() {
  if (!terminal_ || !isShown_)
    return;
  fmt::print(options_.out, "\r\x1b[K");
  std::fflush(options_.out);
  isShown_ = false;
}

} // namespace gradc::rt
