// What runs report: the metrics file across a resume, the progress line, traces, event files.
#include "runtime/metrics/ChromeTrace.h"
#include "runtime/metrics/JsonLines.h"
#include "runtime/metrics/Progress.h"
#include "runtime/metrics/TensorBoard.h"

#include "tests/runtime/DataFileLimit.h"
#include "tests/runtime/DataFixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <thread>

namespace gradc::rt {
namespace {

using nlohmann::json;

StepMetrics step(uint64_t number, double loss = 2.5) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = loss;
  metrics.tokens = 512;
  metrics.learningRate = 3e-4;
  metrics.tokensPerSecond = 1234;
  return metrics;
}

class MetricsTest : public DataFixture {
protected:
  std::vector<json> lines(const std::string &name) {
    std::vector<json> values;
    std::istringstream text(read(path(name)));
    for (std::string line; std::getline(text, line);)
      values.push_back(json::parse(line, nullptr, false));
    return values;
  }
  std::vector<uint64_t> steps(const std::string &name) {
    std::vector<uint64_t> numbers;
    for (const json &line : lines(name))
      numbers.push_back(line.is_object() ? line.value("step", uint64_t(0)) : 0);
    return numbers;
  }
  /// Appends `count` steps from `first` on, as a run does.
  void run(std::optional<uint64_t> resume, uint64_t first, int count) {
    auto file = JsonLines::open(path("m.jsonl"), resume);
    ASSERT_OK(file.status());
    for (int i = 0; i < count; ++i)
      ASSERT_OK(file->append(step(first + i)));
  }
};

TEST_F(MetricsTest, EachStepIsOneLineWithEveryField) {
  auto file = JsonLines::open(path("m.jsonl"));
  ASSERT_OK(file.status());
  StepMetrics first = step(1, 0.1);
  first.gradNorm = std::numeric_limits<double>::quiet_NaN();
  first.flopsPerSecond = std::numeric_limits<double>::infinity();
  first.skipped = true;
  ASSERT_OK(file->append(first));
  StepMetrics second = step(2);
  second.valLoss = 3.25;
  ASSERT_OK(file->append(second));

  std::vector<json> read = lines("m.jsonl"); // while the file is still open
  ASSERT_EQ(read.size(), 2u);
  for (const char *key : {"step", "loss", "grad_norm", "lr", "tokens", "step_ms", "tokens_per_s",
                          "flops_per_s", "mfu", "skipped"})
    EXPECT_TRUE(read[0].contains(key)) << key;
  EXPECT_EQ(read[0]["loss"], 0.1);
  EXPECT_TRUE(read[0]["grad_norm"].is_null());
  EXPECT_TRUE(read[0]["flops_per_s"].is_null());
  EXPECT_EQ(read[0]["skipped"], true);
  EXPECT_FALSE(read[0].contains("val_loss"));
  EXPECT_EQ(read[1]["val_loss"], 3.25);
}

TEST_F(MetricsTest, LossesKeepEveryBit) {
  for (float loss : {10.948212f, 1.0f / 3, 1e-30f, 16777217.0f}) {
    json line = json::parse(jsonLine(step(1, loss)));
    EXPECT_EQ(static_cast<float>(line["loss"].get<double>()), loss);
  }
}

TEST_F(MetricsTest, AFreshRunBeginsAnew) {
  run(std::nullopt, 1, 5);
  run(std::nullopt, 1, 2);
  EXPECT_EQ(steps("m.jsonl"), (std::vector<uint64_t>{1, 2}));
}

TEST_F(MetricsTest, AResumedRunHoldsEachStepOnce) {
  run(std::nullopt, 1, 7);
  run(4, 5, 4); // the checkpoint was at step 4
  EXPECT_EQ(steps("m.jsonl"), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  run(8, 9, 1); // nothing to cut
  EXPECT_EQ(steps("m.jsonl").back(), 9u);
  run(0, 1, 1);
  EXPECT_EQ(steps("m.jsonl"), (std::vector<uint64_t>{1}));
}

TEST_F(MetricsTest, ALineCutShortIsRemovedOnResume) {
  run(std::nullopt, 1, 3);
  std::string text = read(path("m.jsonl"));
  write("m.jsonl", text.substr(0, text.size() - 5));
  run(3, 4, 1);
  EXPECT_EQ(steps("m.jsonl"), (std::vector<uint64_t>{1, 2, 4}));
}

TEST_F(MetricsTest, AResumeWithoutAFileStartsOne) {
  run(3, 4, 2);
  EXPECT_EQ(steps("m.jsonl"), (std::vector<uint64_t>{4, 5}));
}

TEST_F(MetricsTest, OtherFilesAreNotCut) {
  write("m.jsonl", "dear diary\n");
  EXPECT_ERROR(JsonLines::open(path("m.jsonl"), 3).status(), ExitCode::userError, "line 1",
               "m.jsonl");
  EXPECT_EQ(read(path("m.jsonl")), "dear diary\n");
}

TEST_F(MetricsTest, ErrorsOfTheDiskAreReported) {
  auto full = JsonLines::open("/dev/full");
  ASSERT_OK(full.status());
  EXPECT_ERROR(full->append(step(1)), ExitCode::machineFault, "/dev/full", "No space");
  EXPECT_ERROR(JsonLines::open(path("no/m.jsonl")).status(), ExitCode::userError, "no/m.jsonl");
}

class MetricsProgress : public MetricsTest {
protected:
  std::string show(ProgressOptions options, uint64_t from, uint64_t to) {
    std::FILE *out = std::fopen(path("out").c_str(), "w+");
    double now = 100;
    options.out = out;
    options.secondsNow = [&] { return now; };
    Progress progress(options);
    for (uint64_t number = from; number <= to; ++number) {
      now += 0.01;
      progress.update(step(number));
    }
    progress.finish();
    progress.finish();
    std::fclose(out);
    return read(path("out"));
  }
};

TEST_F(MetricsProgress, PlainOutputHasSomeFortyLines) {
  auto countLines = [&](uint64_t first, uint64_t total) {
    ProgressOptions options;
    options.firstStep = first;
    options.totalSteps = total;
    options.terminal = false;
    std::string text = show(options, first, total);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_NE(text.find("step " + std::to_string(first) + "/"), std::string::npos);
    EXPECT_NE(text.find("step " + std::to_string(total) + "/"), std::string::npos);
    return std::count(text.begin(), text.end(), '\n');
  };
  for (uint64_t total : {999, 1000, 1001, 12345}) {
    EXPECT_GE(countLines(1, total), 20) << total;
    EXPECT_LE(countLines(1, total), 50) << total;
  }
  EXPECT_EQ(countLines(1, 10), 10);
  EXPECT_EQ(countLines(1, 1), 1);
  EXPECT_LE(countLines(901, 1000), 60);
}

TEST_F(MetricsProgress, ALineSaysWhereTheRunStands) {
  ProgressOptions options;
  options.totalSteps = 1000;
  options.terminal = false;
  std::string text = show(options, 1, 1);
  EXPECT_EQ(text, "step 1/1000  loss 2.5000  lr 3.00e-04  1234 tok/s  ETA 10s\n");
}

TEST_F(MetricsProgress, ATerminalsLineIsRewrittenTenTimesASecond) {
  ProgressOptions options;
  options.totalSteps = 100;
  options.terminal = true;
  std::string text = show(options, 1, 100); // one second
  auto rewrites = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(rewrites, 8);
  EXPECT_LE(rewrites, 13);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("step 100/100"), std::string::npos);
}

TEST_F(MetricsProgress, AValidatedStepStaysOnTheScreen) {
  std::FILE *out = std::fopen(path("out").c_str(), "w");
  ProgressOptions options;
  options.out = out;
  options.totalSteps = 2;
  options.terminal = true;
  Progress progress(options);
  progress.update(step(1));
  StepMetrics last = step(2);
  last.valLoss = 1.5;
  progress.update(last);
  progress.finish();
  std::fclose(out);
  std::string text = read(path("out"));
  EXPECT_NE(text.find("val_loss 1.5000\x1b[K\n"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

class MetricsEvalProgress : public MetricsTest {
protected:
  /// What is shown of `total` batches of 48 tokens, each of which takes `seconds`.
  std::string show(bool terminal, uint64_t total, double seconds) {
    std::FILE *out = std::fopen(path("out").c_str(), "w+");
    double now = 100;
    {
      EvalProgress progress(
          {.out = out, .totalSteps = total, .terminal = terminal, .secondsNow = [&] {
             return now;
           }});
      for (uint64_t batch = 1; batch <= total; ++batch) {
        now += seconds;
        progress.update(batch, 2.5, int64_t(batch) * 48);
      }
    }
    std::fclose(out);
    return read(path("out"));
  }
};

TEST_F(MetricsEvalProgress, PlainOutputHasALineEveryTenSeconds) {
  EXPECT_EQ(show(false, 8, 4), "batch 3/8  loss 2.5000  12 tok/s  ETA 20s\n"
                               "batch 6/8  loss 2.5000  12 tok/s  ETA 8s\n");
  EXPECT_EQ(show(false, 90, 0.1), "");
}

TEST_F(MetricsEvalProgress, ATerminalsLineIsRewrittenAndClearedAtTheEnd) {
  std::string text = show(true, 100, 0.03);
  EXPECT_TRUE(text.starts_with("\rbatch 4/100  loss 2.5000  1600 tok/s  ETA 3s\x1b[K\rbatch 8/100"))
      << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 26);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  EXPECT_EQ(show(true, 3, 0.03), "");
}

TEST_F(MetricsEvalProgress, BeforeTheFirstLabelThereIsNoLoss) {
  std::FILE *out = std::fopen(path("out").c_str(), "w+");
  double now = 0;
  EvalProgress progress(
      {.out = out, .totalSteps = 2, .terminal = false, .secondsNow = [&] { return now; }});
  now = 12;
  progress.update(1, 0, 0);
  std::fclose(out);
  EXPECT_EQ(read(path("out")), "batch 1/2  loss --  0 tok/s  ETA 12s\n");
}

TEST(MetricsDuration, IsShort) {
  EXPECT_EQ(shortDuration(0), "0s");
  EXPECT_EQ(shortDuration(59.6), "1m00s");
  EXPECT_EQ(shortDuration(187), "3m07s");
  EXPECT_EQ(shortDuration(7500), "2h05m");
  EXPECT_EQ(shortDuration(86400 * 4 + 3 * 3600), "4d03h");
  EXPECT_EQ(shortDuration(NAN), "--");
  EXPECT_EQ(shortDuration(HUGE_VAL), "--");
}

TEST_F(MetricsTest, TraceIsJsonThatViewersRead) {
  auto trace = ChromeTrace::create(path("t.json"));
  ASSERT_OK(trace.status());
  (*trace)->nameThread(1, "worker \"1\"");
  std::thread other([&] { (*trace)->complete("gemm", "kernel", 10.5, 2.25, 1, {{"flops", 64}}); });
  other.join();
  (*trace)->complete("step", "step", 0, 20, 0);
  ASSERT_OK((*trace)->close());
  (*trace)->complete("late", "step", 0, 20, 0);
  ASSERT_OK((*trace)->close());

  json value = json::parse(read(path("t.json")), nullptr, false);
  ASSERT_TRUE(value.is_object());
  const json &events = value["traceEvents"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["args"]["name"], "worker \"1\"");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["ts"], 10.5);
  EXPECT_EQ(events[1]["dur"], 2.25);
  EXPECT_EQ(events[1]["tid"], 1);
  EXPECT_EQ(events[1]["args"]["flops"], 64);
}

TEST_F(MetricsTest, TraceReportsAFullDisk) {
  auto trace = ChromeTrace::create("/dev/full");
  ASSERT_OK(trace.status());
  (*trace)->complete("step", "step", 0, 20, 0);
  EXPECT_ERROR((*trace)->close(), ExitCode::machineFault, "/dev/full");
  auto empty = ChromeTrace::create(path("e.json"));
  ASSERT_OK(empty.status());
  ASSERT_OK((*empty)->close());
  EXPECT_EQ(json::parse(read(path("e.json")))["traceEvents"].size(), 0u);
}

TEST(MetricsCrc, MatchesTheStandardsVectors) {
  // RFC 3720, appendix B.4, and the usual check value.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST_F(MetricsTest, EventFileHoldsCheckedRecords) {
  auto board = TensorBoard::create(path("tb/run"));
  ASSERT_OK(board.status());
  ASSERT_OK(board->scalar("train/loss", 300, 2.5));
  std::string bytes = read(board->path());
  EXPECT_NE(board->path().find("/events.out.tfevents."), std::string::npos);

  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size;
    ASSERT_LE(at + 16, bytes.size());
    std::memcpy(&size, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + size, bytes.size());
    auto masked = [&](size_t from, size_t length) {
      uint32_t crc = crc32c(std::string_view(bytes).substr(from, length));
      return (crc >> 15 | crc << 17) + 0xa282ead8u;
    };
    auto stored = [&](size_t from) {
      uint32_t crc;
      std::memcpy(&crc, bytes.data() + from, 4);
      return crc;
    };
    EXPECT_EQ(stored(at + 8), masked(at, 8));
    EXPECT_EQ(stored(at + 12 + size), masked(at + 12, size));
    events.push_back(bytes.substr(at + 12, size));
    at += 16 + size;
  }
  ASSERT_EQ(events.size(), 2u);
  // After the nine bytes of wall_time: file_version, then step 300 and the summary.
  EXPECT_EQ(events[0].substr(9), "\x1a\x0d"
                                 "brain.Event:2");
  EXPECT_EQ(events[1].substr(9), std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0a"
                                             "train/loss\x15\0\0\x20\x40",
                                             24));
}

} // namespace
} // namespace gradc::rt
