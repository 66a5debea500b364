// The commands of an executable end to end, on the toy model: outputs, exit codes, interruption.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "AppFixture.h"
#include "ToyExecutable.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/SafetensorsWriter.h"

namespace gradc::rt {
namespace {

TEST_F(AppTest, TrainsAndReports) {
  auto result = runToy(
      train(200, {"--metrics", folder.path("m.jsonl"), "--val-data", valData, "--val-every", "100",
                  "--warmup", "10", "--trace", folder.path("trace.json"), "--trace-steps", "2"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("parameters 4096"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("tokens a step 32"), std::string::npos);
  EXPECT_NE(result.out.find("planned peak memory"), std::string::npos);
  EXPECT_NE(result.out.find("estimated total time"), std::string::npos);

  auto lines = metrics(folder.path("m.jsonl"));
  ASSERT_EQ(lines.size(), 200u);
  for (const char *key : {"step", "loss", "grad_norm", "lr", "tokens", "step_ms", "tokens_per_s",
                          "flops_per_s", "mfu", "skipped"})
    EXPECT_TRUE(lines[0].contains(key)) << key;
  EXPECT_GT(lines[0]["loss"].get<double>(), 5.0);
  EXPECT_LT(lines[199]["loss"].get<double>(), 3.0);
  EXPECT_NEAR(lines[4]["lr"].get<double>(), 0.25, 1e-9);
  EXPECT_TRUE(lines[99].contains("val_loss"));
  EXPECT_TRUE(lines[199].contains("val_loss"));
  EXPECT_FALSE(lines[50].contains("val_loss"));

  auto trace = json::parse(readFile(folder.path("trace.json")));
  int launches = 0, steps = 0;
  for (const auto &event : trace["traceEvents"]) {
    launches += event.value("cat", "") == "matmul" && event.value("name", "") == "dh";
    steps += event.value("cat", "") == "step";
  }
  EXPECT_EQ(launches, 2 * toyAccumulation);
  EXPECT_EQ(steps, 2);
}

TEST_F(AppTest, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const char *threads : {"1", "2", "3"})
    ASSERT_EQ(runToy({"train", "--data", data, "--steps", "30", "--lr", "0.5", "--threads", threads,
                      "--save-weights", folder.path(threads)})
                  .exitCode,
              0);
  EXPECT_EQ(readFile(folder.path("1")), readFile(folder.path("2")));
  EXPECT_EQ(readFile(folder.path("1")), readFile(folder.path("3")));
  EXPECT_GT(readFile(folder.path("1")).size(), 16384u);
}

TEST_F(AppTest, ResumesToTheBit) {
  for (const char *order : {"shuffled", "sequential"}) {
    std::string dir = folder.path(std::string("ckpt-") + order);
    ASSERT_EQ(
        runToy(train(40, {"--data-order", order, "--seed", "7", "--metrics",
                          folder.path("whole.jsonl"), "--save-weights", folder.path("whole")}))
            .exitCode,
        0);
    // The schedule knows only --steps, so the first part is cut short by losing what came later.
    ASSERT_EQ(runToy(train(40, {"--data-order", order, "--seed", "7", "--checkpoint-dir", dir,
                                "--checkpoint-every", "15", "--keep", "9"}))
                  .exitCode,
              0);
    for (const char *later : {"/step-40", "/step-30"})
      ASSERT_EQ(std::system(("rm -r " + dir + later).c_str()), 0);
    auto resumed =
        runToy(train(40, {"--checkpoint-dir", dir, "--resume", "--save-weights",
                          folder.path("resumed"), "--metrics", folder.path("resumed.jsonl")}));
    ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
    EXPECT_NE(resumed.out.find("resuming after step 15"), std::string::npos) << resumed.out;
    EXPECT_EQ(readFile(folder.path("whole")), readFile(folder.path("resumed")));
    auto whole = metrics(folder.path("whole.jsonl")), rest = metrics(folder.path("resumed.jsonl"));
    ASSERT_EQ(rest.size(), 25u);
    for (std::size_t i = 0; i < rest.size(); ++i)
      for (const char *key : {"step", "loss", "grad_norm", "lr"})
        EXPECT_EQ(rest[i][key], whole[15 + i][key]) << key << " " << i;
  }
}

TEST_F(AppTest, SavesAndEndsOnSigterm) {
  const int steps = 4000;
  ASSERT_EQ(runToy(train(steps, {"--save-weights", folder.path("whole")})).exitCode, 0);
  std::string metricsPath = folder.path("m.jsonl"), dir = folder.path("ckpt");
  auto killed =
      runToy(train(steps, {"--metrics", metricsPath, "--checkpoint-dir", dir}), [&](pid_t child) {
        for (int i = 0; i < 20000; ++i) {
          std::string text = readFile(metricsPath);
          if (std::count(text.begin(), text.end(), '\n') >= 5)
            break;
          usleep(500);
        }
        kill(child, SIGTERM);
      });
  ASSERT_EQ(killed.exitCode, 0) << killed.err;
  ASSERT_NE(killed.out.find("stopped by a signal"), std::string::npos) << killed.out;
  EXPECT_NE(killed.out.find("saved step"), std::string::npos);
  std::size_t done = metrics(metricsPath).size();
  ASSERT_LT(done, std::size_t(steps));

  auto resumed = runToy(train(steps, {"--metrics", metricsPath, "--checkpoint-dir", dir, "--resume",
                                      "--save-weights", folder.path("resumed")}));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_EQ(readFile(folder.path("whole")), readFile(folder.path("resumed")));
  auto lines = metrics(metricsPath);
  ASSERT_EQ(lines.size(), std::size_t(steps));
  EXPECT_EQ(lines[done]["step"], done + 1);
}

TEST_F(AppTest, ResumeWithoutACheckpointStartsAfresh) {
  std::string dir = folder.path("ckpt");
  auto result = runToy(train(5, {"--checkpoint-dir", dir, "--resume"}));
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(result.out.find("starting afresh"), std::string::npos) << result.out;
  result = runToy(train(5, {"--checkpoint-dir", dir, "--resume"}));
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(result.out.find("nothing to do"), std::string::npos) << result.out;
}

TEST_F(AppTest, DumpsTheLastStepsGradients) {
  // With plain SGD and no clipping the last update is -lr times the gradient.
  Arguments plain{"--beta1", "0", "--clip-grad", "0", "--lr-decay", "constant"};
  auto run = [&](int steps, Arguments more) {
    more.insert(more.end(), plain.begin(), plain.end());
    auto result = runToy(train(steps, more));
    ASSERT_EQ(result.exitCode, 0) << result.err;
  };
  run(3, {"--save-weights", folder.path("three")});
  run(4, {"--save-weights", folder.path("four"), "--dump-grads", folder.path("grads")});
  auto three = SafetensorsFile::open(folder.path("three")),
       four = SafetensorsFile::open(folder.path("four")),
       grads = SafetensorsFile::open(folder.path("grads"));
  ASSERT_TRUE(three.ok() && four.ok() && grads.ok());
  for (const char *name : {"wte.weight", "head.weight"}) {
    std::vector<float> before(2048), after(2048), gradient(2048);
    ASSERT_NE(grads->find(name), nullptr);
    ASSERT_TRUE(toFloats(*three->find(name), before.data()).ok());
    ASSERT_TRUE(toFloats(*four->find(name), after.data()).ok());
    ASSERT_TRUE(toFloats(*grads->find(name), gradient.data()).ok());
    double largest = 0;
    for (int i = 0; i < 2048; ++i) {
      EXPECT_NEAR(before[i] - 0.5 * gradient[i], after[i], 1e-6) << name << " " << i;
      largest = std::max(largest, std::abs(double(gradient[i])));
    }
    EXPECT_GT(largest, 1e-3);
  }
}

TEST_F(AppTest, EvaluatesSavedWeightsAndCheckpointsAlike) {
  std::string dir = folder.path("ckpt"), weights = folder.path("w.safetensors");
  auto trained = runToy(train(50, {"--checkpoint-dir", dir, "--save-weights", weights, "--val-data",
                                   valData, "--metrics", folder.path("m")}));
  ASSERT_EQ(trained.exitCode, 0) << trained.err;
  double trainLoss = metrics(folder.path("m")).back()["val_loss"];
  for (Arguments source : {Arguments{"--checkpoint-dir", dir}, {"--init-weights", weights}}) {
    Arguments arguments{"eval", "--data", valData, "--json"};
    arguments.insert(arguments.end(), source.begin(), source.end());
    auto result = runToy(arguments);
    ASSERT_EQ(result.exitCode, 0) << result.err;
    auto object = json::parse(result.out);
    EXPECT_EQ(object["loss"].get<double>(), trainLoss);
    EXPECT_EQ(object["tokens"], 1000);
    EXPECT_NEAR(object["perplexity"].get<double>(), std::exp(trainLoss), 1e-6);
  }
}

TEST_F(AppTest, ReadsTheSplitOfAFolder) {
  // The folder holds data.txt and val.txt.
  std::string both = folder.path("");
  auto trained = runToy(train(2, {"--data", both, "--val-data", both}));
  ASSERT_EQ(trained.exitCode, 0) << trained.err;
  EXPECT_NE(trained.out.find("reading data.txt; left out by their names: val.txt"),
            std::string::npos)
      << trained.out;
  EXPECT_NE(trained.out.find(std::to_string(readFile(data).size()) + " training tokens"),
            std::string::npos)
      << trained.out;
  EXPECT_NE(trained.err.find("reading val.txt; left out by their names: data.txt"),
            std::string::npos)
      << trained.err;
  std::string weights = folder.path("w");
  ASSERT_EQ(runToy(train(2, {"--save-weights", weights})).exitCode, 0);
  auto evaluated = runToy({"eval", "--data", both, "--json", "--init-weights", weights});
  ASSERT_EQ(evaluated.exitCode, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out)["tokens"], 1000);
}

TEST_F(AppTest, GeneratesTextAndIds) {
  std::string weights = folder.path("w");
  ASSERT_EQ(runToy(train(300, {"--save-weights", weights})).exitCode, 0);
  auto text = runToy({"generate", "--prompt", "the quick", "--tokens", "20", "--init-weights",
                      weights, "--temperature", "0"});
  ASSERT_EQ(text.exitCode, 0) << text.err;
  EXPECT_EQ(text.out.size(), 9u + 20u + 1u) << text.out;
  EXPECT_TRUE(text.out.starts_with("the quick")) << text.out;
  auto ids = runToy({"generate", "--prompt-ids", "116,104", "--tokens", "3", "--init-weights",
                     weights, "--top-k", "5"});
  ASSERT_EQ(ids.exitCode, 0) << ids.err;
  EXPECT_TRUE(ids.out.starts_with("116,104,")) << ids.out;
  EXPECT_EQ(std::count(ids.out.begin(), ids.out.end(), ','), 4);
  auto again = runToy({"generate", "--prompt-ids", "116,104", "--tokens", "3", "--init-weights",
                       weights, "--top-k", "5"});
  EXPECT_EQ(again.out, ids.out);
  expectError(
      runToy({"generate", "--prompt-ids", "300", "--tokens", "3", "--init-weights", weights}), 1,
      "300");
  expectError(runToy({"generate", "--tokens", "3", "--init-weights", weights}), 1, "--prompt");
}

TEST_F(AppTest, BenchesAndTellsWhatWasCompiled) {
  auto result = runToy({"bench", "--steps", "5", "--json"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  auto bench = json::parse(result.out);
  for (const char *key : {"step_ms", "tokens_per_s", "flops_per_s", "mfu", "matmul_share",
                          "matmul_of_peak", "planned_peak_bytes", "resident_peak_bytes"})
    EXPECT_GT(bench[key].get<double>(), 0) << key;
  EXPECT_EQ(bench["arena_high_water_bytes"], bench["arena_bytes"]);
  EXPECT_EQ(runToy({"bench", "--steps", "1"}).exitCode, 0);

  result = runToy({"info", "--json"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  auto info = json::parse(result.out);
  for (const char *key : {"parameters", "peak_bytes", "memory", "precision", "recompute", "mesh",
                          "target", "kernels", "flags"})
    EXPECT_TRUE(info.contains(key)) << key;
  EXPECT_EQ(info["parameters"], 4096);
  result = runToy({"info"});
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_NE(result.out.find("4096 parameters"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("target       cpu, recompute"), std::string::npos) << result.out;
}

TEST_F(AppTest, SaysThatAGpusProgramIsEmulated) {
  auto metadata = json::parse(toyMetadata());
  metadata["flags"]["target"] = "cuda:sm_90";
  metadata["flags"]["emulate"] = true;
  std::string text = metadata.dump(), info = runApp(toyWithMetadata(text), {"info"}).out;
  EXPECT_NE(info.find("target       cuda:sm_90, emulated, recompute"), std::string::npos) << info;
}

TEST_F(AppTest, ListsEveryOptionInItsHelp) {
  auto result = runToy({"train", "--help"});
  EXPECT_EQ(result.exitCode, 0);
  for (const char *flag : {"--data",
                           "--steps",
                           "--val-data",
                           "--val-every",
                           "--lr",
                           "--min-lr",
                           "--warmup",
                           "--lr-decay",
                           "--beta1",
                           "--beta2",
                           "--eps",
                           "--weight-decay",
                           "--clip-grad",
                           "--seed",
                           "--init-weights",
                           "--checkpoint-dir",
                           "--checkpoint-every",
                           "--keep",
                           "--resume",
                           "--metrics",
                           "--tensorboard",
                           "--trace",
                           "--threads",
                           "--check-nans",
                           "--dump-grads",
                           "--save-weights",
                           "--data-order"})
    EXPECT_NE(result.out.find(flag), std::string::npos) << flag;
  EXPECT_NE(result.out.find("0.0003"), std::string::npos) << result.out;
  EXPECT_EQ(runToy({"--help"}).exitCode, 0);
}

} // namespace
} // namespace gradc::rt
