// `bench`: what a training step costs here, on random tokens, as shares of the machine's measured
// peak, and what it takes of the memory that was planned.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/Random.h"
#include "runtime/Say.h"
#include "runtime/Session.h"
#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/cpu/Arena.h"

namespace gradc::rt {
namespace {

constexpr int64_t warmupSteps = 2;
constexpr int64_t mostObservedSteps = 3;

struct Measured {
  std::vector<std::string> choices; ///< of algorithms, by --autotune
  double stepSeconds = 0;           ///< median
  double matmulShare = 0;           ///< of the time of all launches
  double matmulFlopsPerSecond = 0;
  int64_t arenaHighWater = 0;
  int64_t residentPeak = 0;
  double loss = 0;
};

Status writeRandomBatch(Session &session) {
  const Metadata &metadata = session.metadata();
  std::vector<int32_t> tokens(std::size_t(metadata.tokensPerStep())), targets(tokens.size());
  RandomStream stream(42, "bench");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto bits = stream.bits(i);
    tokens[i] = int32_t(bits[0] % uint64_t(metadata.vocab));
    targets[i] = int32_t(bits[1] % uint64_t(metadata.vocab));
  }
  int64_t bytes = int64_t(tokens.size() * sizeof(int32_t));
  GRADC_RETURN_IF_ERROR(session.write("train_step.tokens", tokens.data(), bytes));
  GRADC_RETURN_IF_ERROR(session.write("train_step.targets", targets.data(), bytes));
  return fillPositions(session, "train_step");
}

Status writeHyperParameters(Session &session) {
  const std::pair<const char *, double> values[] = {
      {"learning_rate", 1e-4},   {"beta1", 0.9},
      {"beta2", 0.95},           {"eps", 1e-8},
      {"weight_decay", 0.1},     {"clip_grad", 1},
      {"bias_correction1", 0.1}, {"bias_correction2", 0.05}};
  for (auto &[name, value] : values)
    GRADC_RETURN_IF_ERROR(session.writeScalar(fmt::format("train_step.{}", name), value));
  return Status();
}

Expected<double> medianStep(Session &session, int64_t steps) {
  std::vector<double> seconds;
  for (int64_t step = 0; step < steps; ++step) {
    auto begin = std::chrono::steady_clock::now();
    GRADC_RETURN_IF_ERROR(session.run("train_step"));
    GRADC_RETURN_IF_ERROR(session.device().synchronize());
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::size_t half = seconds.size() / 2;
  return seconds.size() % 2 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

/// What share products have, in steps of their own: on some devices observed steps are slower.
Status observeProducts(Session &session, int64_t steps, Measured &measured) {
  double seconds = 0, flops = 0, total = 0;
  session.observe([&](const LaunchRecord &launch) {
    double taken = std::chrono::duration<double>(launch.times.end - launch.times.begin).count();
    total += taken;
    if (launch.kind != LaunchKind::gemm)
      return;
    seconds += taken;
    flops += double(launch.flops);
  });
  for (int64_t step = 0; step < steps; ++step)
    GRADC_RETURN_IF_ERROR(session.run("train_step"));
  session.observe(nullptr);
  measured.matmulShare = total > 0 ? seconds / total : 0;
  measured.matmulFlopsPerSecond = seconds > 0 ? flops / seconds : 0;
  return Status();
}

/// Runs the steps; the arena's high water is that of the last warm-up step.
Expected<Measured> measure(Session &session, int64_t steps) {
  GRADC_RETURN_IF_ERROR(writeRandomBatch(session));
  GRADC_RETURN_IF_ERROR(writeHyperParameters(session));
  Measured measured;
  for (int64_t step = 0; step < warmupSteps; ++step) {
    GRADC_RETURN_IF_ERROR(session.device().fillArena());
    GRADC_RETURN_IF_ERROR(session.run("train_step"));
    GRADC_ASSIGN_OR_RETURN(measured.arenaHighWater, session.device().arenaHighWater());
  }
  GRADC_ASSIGN_OR_RETURN(measured.stepSeconds, medianStep(session, steps));
  GRADC_RETURN_IF_ERROR(observeProducts(session, std::min(steps, mostObservedSteps), measured));
  measured.residentPeak = residentPeakBytes();
  measured.choices = session.device().choices();
  GRADC_ASSIGN_OR_RETURN(measured.loss, session.readScalar("train_step.loss"));
  return measured;
}

/// A share of the peak; null where the peak is not known.
nlohmann::json shareOf(double rate, double peak) {
  return peak > 0 ? nlohmann::json(rate / peak) : nlohmann::json();
}

void printJson(const Metadata &metadata, const BenchOptions &options, const DevicePeak &peak,
               const Measured &measured) {
  auto rate = [](double value) { return value > 0 ? nlohmann::json(value) : nlohmann::json(); };
  double flops = metadata.flopsPerStep / measured.stepSeconds;
  nlohmann::json object{
      {"steps", options.steps},
      {"threads", options.threads},
      {"step_ms", measured.stepSeconds * 1e3},
      {"tokens_per_s", double(metadata.tokensPerStep()) / measured.stepSeconds},
      {"flops_per_s", flops},
      {"mfu", shareOf(flops, peak.flopsPerSecond)},
      {"matmul_share", measured.matmulShare},
      {"matmul_flops_per_s", measured.matmulFlopsPerSecond},
      {"matmul_of_peak", shareOf(measured.matmulFlopsPerSecond, peak.flopsPerSecond)},
      {"peak_flops_per_s", rate(peak.flopsPerSecond)},
      {"peak_memory_bytes_per_s", rate(peak.bytesPerSecond)},
      {"device", peak.name},
      {"planned_peak_bytes", metadata.memory.peak},
      {"arena_bytes", metadata.arenaBytes},
      {"arena_high_water_bytes", measured.arenaHighWater},
      {"resident_peak_bytes", measured.residentPeak},
      {"algorithms", measured.choices},
      {"loss", measured.loss}};
  say(stdout, "{}\n", object.dump());
}

/// `, 70.1 % of the WHAT`; nothing where the peak is not known.
std::string percentOf(double rate, double peak, const char *what) {
  return peak > 0 ? fmt::format(", {:.1f} % of the {}", 100 * rate / peak, what) : "";
}

void printText(const Metadata &metadata, const BenchOptions &options, const DevicePeak &peak,
               const Measured &measured) {
  double flops = metadata.flopsPerStep / measured.stepSeconds;
  say(stdout, "step            {:.1f} ms (median of {}, {} threads)\n", measured.stepSeconds * 1e3,
      options.steps, options.threads);
  say(stdout, "tokens          {:.0f} a second\n",
      double(metadata.tokensPerStep()) / measured.stepSeconds);
  say(stdout, "arithmetic      {:.1f} GFLOP/s{} ({})\n", flops / 1e9,
      percentOf(flops, peak.flopsPerSecond,
                fmt::format("measured peak of {:.1f}", peak.flopsPerSecond / 1e9).c_str()),
      peak.name);
  say(stdout, "matrix products {:.1f} % of the launches' time, at {:.1f} GFLOP/s{}\n",
      100 * measured.matmulShare, measured.matmulFlopsPerSecond / 1e9,
      percentOf(measured.matmulFlopsPerSecond, peak.flopsPerSecond, "peak"));
  say(stdout, "arena           planned {}, reached {}\n", formatBytes(metadata.arenaBytes),
      formatBytes(measured.arenaHighWater));
  say(stdout, "peak memory     planned {}, resident {}\n", formatBytes(metadata.memory.peak),
      formatBytes(measured.residentPeak));
  for (const std::string &choice : measured.choices)
    say(stdout, "algorithm       {}\n", choice);
}

} // namespace

Status bench(const GradcExecutable &executable, const Metadata &metadata,
             const BenchOptions &options) {
  GRADC_ASSIGN_OR_RETURN(DevicePeak peak, executable.device->peak(options.threads));
  GRADC_ASSIGN_OR_RETURN(auto session, Session::open(executable, metadata, options.threads));
  if (options.autotune)
    GRADC_RETURN_IF_ERROR(session->device().tune());
  GRADC_ASSIGN_OR_RETURN(InitKind init, parseInitKind(metadata.init));
  GRADC_RETURN_IF_ERROR(session->initialiseParameters(init, 42));
  GRADC_ASSIGN_OR_RETURN(Measured measured, measure(*session, options.steps));
  if (options.json)
    printJson(metadata, options, peak, measured);
  else
    printText(metadata, options, peak, measured);
  return Status();
}

} // namespace gradc::rt
