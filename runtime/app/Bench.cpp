// `bench`: what a training step costs here, on random tokens, as shares of the machine's measured
// peak, and what it takes of the memory that was planned.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/Random.h"
#include "runtime/Session.h"
#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/app/PeakProbe.h"

namespace gradc::rt {
namespace {

constexpr int64_t warmupSteps = 2;

/// Seconds and operations in matrix products, and in all launches.
struct LaunchTotals {
  double matmulSeconds = 0, matmulFlops = 0;
};

struct Measured {
  double stepSeconds = 0; ///< median
  double matmulShare = 0; ///< of the time of all timed steps
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

/// Runs the steps; the arena's high water is that of the last warm-up step.
Expected<Measured> measure(Session &session, int64_t steps) {
  GRADC_RETURN_IF_ERROR(writeRandomBatch(session));
  GRADC_RETURN_IF_ERROR(writeHyperParameters(session));
  Measured measured;
  for (int64_t step = 0; step < warmupSteps; ++step) {
    session.arena().fillPattern(session.pool());
    GRADC_RETURN_IF_ERROR(session.run("train_step"));
    measured.arenaHighWater = session.arena().highWater();
  }
  LaunchTotals totals;
  session.observe([&](const LaunchRecord &launch) {
    if (launch.kind != LaunchKind::gemm)
      return;
    totals.matmulSeconds += std::chrono::duration<double>(launch.end - launch.begin).count();
    totals.matmulFlops += launch.flops;
  });
  std::vector<double> seconds;
  double total = 0;
  for (int64_t step = 0; step < steps; ++step) {
    auto begin = std::chrono::steady_clock::now();
    GRADC_RETURN_IF_ERROR(session.run("train_step"));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    total += seconds.back();
  }
  session.observe(nullptr);
  std::sort(seconds.begin(), seconds.end());
  std::size_t half = seconds.size() / 2;
  measured.stepSeconds =
      seconds.size() % 2 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
  measured.matmulShare = totals.matmulSeconds / total;
  measured.matmulFlopsPerSecond =
      totals.matmulSeconds > 0 ? totals.matmulFlops / totals.matmulSeconds : 0;
  measured.residentPeak = residentPeakBytes();
  GRADC_ASSIGN_OR_RETURN(measured.loss, session.readScalar("train_step.loss"));
  return measured;
}

void printJson(const Metadata &metadata, const BenchOptions &options, const PeakRates &peak,
               const Measured &measured) {
  double flops = metadata.flopsPerStep / measured.stepSeconds;
  nlohmann::json object{{"steps", options.steps},
                        {"threads", options.threads},
                        {"step_ms", measured.stepSeconds * 1e3},
                        {"tokens_per_s", double(metadata.tokensPerStep()) / measured.stepSeconds},
                        {"flops_per_s", flops},
                        {"mfu", flops / peak.flopsPerSecond},
                        {"matmul_share", measured.matmulShare},
                        {"matmul_flops_per_s", measured.matmulFlopsPerSecond},
                        {"matmul_of_peak", measured.matmulFlopsPerSecond / peak.flopsPerSecond},
                        {"peak_flops_per_s", peak.flopsPerSecond},
                        {"peak_memory_bytes_per_s", peak.bytesPerSecond},
                        {"isa", peak.isa},
                        {"planned_peak_bytes", metadata.memory.peak},
                        {"arena_bytes", metadata.arenaBytes},
                        {"arena_high_water_bytes", measured.arenaHighWater},
                        {"resident_peak_bytes", measured.residentPeak},
                        {"loss", measured.loss}};
  fmt::print("{}\n", object.dump());
}

void printText(const Metadata &metadata, const BenchOptions &options, const PeakRates &peak,
               const Measured &measured) {
  double flops = metadata.flopsPerStep / measured.stepSeconds;
  fmt::print("step            {:.1f} ms (median of {}, {} threads)\n", measured.stepSeconds * 1e3,
             options.steps, options.threads);
  fmt::print("tokens          {:.0f} a second\n",
             double(metadata.tokensPerStep()) / measured.stepSeconds);
  fmt::print("arithmetic      {:.1f} GFLOP/s, {:.1f} % of the measured peak of {:.1f} ({})\n",
             flops / 1e9, 100 * flops / peak.flopsPerSecond, peak.flopsPerSecond / 1e9, peak.isa);
  fmt::print("matrix products {:.1f} % of the step, at {:.1f} GFLOP/s, {:.1f} % of the peak\n",
             100 * measured.matmulShare, measured.matmulFlopsPerSecond / 1e9,
             100 * measured.matmulFlopsPerSecond / peak.flopsPerSecond);
  fmt::print("arena           planned {}, reached {}\n", formatBytes(metadata.arenaBytes),
             formatBytes(measured.arenaHighWater));
  fmt::print("peak memory     planned {}, resident {}\n", formatBytes(metadata.memory.peak),
             formatBytes(measured.residentPeak));
}

} // namespace

Status bench(const GradcExecutable &executable, const Metadata &metadata,
             const BenchOptions &options) {
  GRADC_ASSIGN_OR_RETURN(PeakRates peak, probePeak(options.threads));
  GRADC_ASSIGN_OR_RETURN(auto session, Session::open(executable, metadata, options.threads));
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
