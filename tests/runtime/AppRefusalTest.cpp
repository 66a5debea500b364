// What an executable refuses: one line, and the exit code that says whose fault it is.
#include <csignal>
#include <filesystem>
#include <unistd.h>

#include "AppFixture.h"
#include "ToyExecutable.h"
#include "runtime/Device.h"

namespace gradc::rt {
namespace {

class AppRefusal : public AppTest {};

TEST_F(AppRefusal, RefusesToMixRuns) {
  std::string dir = folder.path("ckpt");
  ASSERT_EQ(runToy(train(5, {"--checkpoint-dir", dir})).exitCode, 0);
  expectError(runToy(train(5, {"--checkpoint-dir", dir})), 1, "--resume");
  expectError(runToy(train(9, {"--checkpoint-dir", dir, "--resume", "--seed", "7"})), 1,
              "--seed 7");
  expectError(runToy(train(9, {"--checkpoint-dir", dir, "--resume", "--data-order", "sequential"})),
              1, "--data-order sequential");
}

TEST_F(AppRefusal, RefusesWrongInputInOneLine) {
  expectError(runToy({}), 1, "subcommand");
  expectError(runToy({"train", "--steps", "3"}), 1, "--data");
  expectError(runToy(train(5, {"--no-such-flag"})), 1, "no-such-flag");
  expectError(runToy(train(5, {"--lr-decay", "square"})), 1, "square");
  expectError(runToy(train(5, {"--min-lr", "3"})), 1, "--min-lr");
  expectError(runToy(train(5, {"--resume"})), 1, "--checkpoint-dir");
  expectError(runToy(train(5, {"--init", "zeros"})), 1, "--init zeros");
  expectError(runToy(train(0)), 1, "--steps");
  expectError(runToy({"train", "--data", folder.path("none"), "--steps", "3"}), 1, "none");
  expectError(runToy(train(5, {"--save-weights", folder.path("no/such/file")})), 1, "no/such");
  expectError(runToy({"eval", "--data", data}), 1, "--init-weights");
  expectError(runToy({"eval", "--data", data, "--checkpoint-dir", folder.path("no")}), 1,
              "checkpoint");
}

TEST_F(AppRefusal, NumbersThatTheFlagDoesNotHold) {
  const char *beyond = "99999999999999999999";
  for (const char *flag : {"--warmup", "--seed", "--val-every", "--checkpoint-every", "--keep",
                           "--trace-steps", "--loss-scale-interval", "--threads"})
    expectError(runToy(train(5, {flag, beyond})), 1, flag);
  for (const char *steps :
       {beyond, "9223372036854775807", "1000000000001", "-1", "1.5", "0x10", ""})
    expectError(runToy({"train", "--data", data, "--steps", steps}), 1,
                "--steps: expected a whole number from 1 to 1000000000000, got: ");
  expectError(runToy(train(5, {"--seed", "-1"})), 1, "--seed");
  expectError(runToy({"bench", "--steps", beyond}), 1, "--steps");
  expectError(runToy({"eval", "--data", data, "--init-weights", data, "--batches", beyond}), 1,
              "--batches");
  expectError(runToy({"generate", "--prompt", "a", "--tokens", "1", "--top-k", beyond}), 1,
              "--top-k");
  EXPECT_EQ(runToy(train(1, {"--seed", "18446744073709551615"})).exitCode, 0);
}

TEST_F(AppRefusal, NumbersThatAreNone) {
  for (const char *flag : {"--eps", "--weight-decay", "--clip-grad"})
    for (const char *value : {"nan", "inf", "-1", "1e-4x", ""})
      expectError(runToy(train(5, {flag, value})), 1,
                  std::string(flag) + ": expected a number, 0 or more, got: " + value);
  for (const char *value : {"nan", "1", "-0.1"})
    expectError(runToy(train(5, {"--beta2", value})), 1,
                std::string("--beta2: expected a number, 0 to below 1, got: ") + value);
  for (const char *value : {"nan", "0.5", "16777217"})
    expectError(runToy(train(5, {"--loss-scale", value})), 1,
                std::string("--loss-scale: expected a number, 1 to 16777216, got: ") + value);
  expectError(runToy({"generate", "--prompt", "a", "--tokens", "1", "--temperature", "inf"}), 1,
              "--temperature: expected a number, 0 or more, got: inf");
  EXPECT_EQ(runToy(train(1, {"--eps", "1e-5", "--beta2", "0"})).exitCode, 0);
}

TEST_F(AppRefusal, RefusesATokenBeyondTheVocabulary) {
  std::string tokens(4000, '\0');
  tokens[2 * 777 + 1] = 1; // token 777 is 256
  std::string path = folder.path("tokens.bin");
  writeFile(path, tokens);
  expectError(runToy({"train", "--data", path, "--steps", "200", "--threads", "1"}), 1,
              "position 777");
}

TEST_F(AppRefusal, ReportsAFullDisk) {
  expectError(runToy(train(5, {"--save-weights", "/dev/full"})), 2, "/dev/full");
}

TEST_F(AppRefusal, OutputThatIsLost) {
  std::string weights = folder.path("weights"), lost = "standard output: cannot be written; ";
  auto trained = runToyWithFullOutput(train(5, {"--save-weights", weights}));
  EXPECT_EQ(trained.exitCode, 0) << trained.err;
  EXPECT_EQ(trained.err, "warning: " + lost + "lines of progress were dropped\n");
  EXPECT_GT(readFile(weights).size(), 16384u);
  for (const Arguments &command :
       {Arguments{"info"},
        {"info", "--json"},
        {"--help"},
        {"bench", "--steps", "1"},
        {"bench", "--steps", "1", "--json"},
        {"eval", "--data", data, "--init-weights", weights},
        {"eval", "--data", data, "--init-weights", weights, "--json"},
        {"generate", "--prompt", "a", "--tokens", "2", "--init-weights", weights}})
    expectError(runToyWithFullOutput(command), 2, lost + "free some disk space");
  EXPECT_EQ(runToyWithFullError({"info", "--no-such-flag"}).exitCode, 1);
}

TEST_F(AppRefusal, AlgorithmsWhereThereAreNone) {
  for (const Arguments &command : {train(5, {"--autotune"}), {"bench", "--autotune"}}) {
    auto refused = runToy(command);
    expectError(refused, 1, "--autotune: chooses among the algorithms of a GPU's library");
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(runToy({command.front(), "--help"}).out.find("--autotune"), std::string::npos);
  }
}

TEST_F(AppRefusal, AMachineWithoutItsDevice) {
  static constexpr GradcDeviceKind absent{
      nullptr, nullptr,
      [](const GradcExecutable &) { return Status::machine("no such device; plug one in"); }, true};
  GradcExecutable executable = toyExecutable();
  executable.device = &absent;
  std::string dir = folder.path("ckpt");
  auto refused = runApp(executable, train(5, {"--checkpoint-dir", dir}));
  expectError(refused, 2, "no such device; plug one in");
  EXPECT_EQ(refused.out, "");
  EXPECT_FALSE(std::filesystem::exists(dir));
  expectError(runApp(executable, train(0)), 1, "--steps");
  EXPECT_NE(runApp(executable, {"train", "--help"}).out.find("--autotune"), std::string::npos);
}

TEST_F(AppRefusal, EndsARunThatIsNotFinite) {
  std::string dir = folder.path("ckpt");
  auto result = runToy(train(500, {"--lr", "1e38", "--clip-grad", "0", "--checkpoint-dir", dir}));
  expectError(result, 1, "3 steps in a row");
  EXPECT_EQ(result.out.find("saved step"), std::string::npos) << result.out;
  expectError(runToy(train(500, {"--lr", "1e38", "--clip-grad", "0", "--check-nans"})), 1,
              "finite");
}

TEST_F(AppRefusal, RefusesWhatDoesNotFitTheMemory) {
  auto metadata = json::parse(toyMetadata());
  metadata["arena_bytes"] = int64_t(1) << 50;
  std::string text = metadata.dump();
  expectError(runApp(toyWithMetadata(text), train(5)), 2, "1048576.00 GiB");
}

TEST_F(AppRefusal, RefusesDamagedMetadataAndMissingInstructions) {
  auto changed = [&](auto change) {
    auto metadata = json::parse(toyMetadata());
    change(metadata);
    std::string text = metadata.dump();
    return runApp(toyWithMetadata(text), {"bench", "--steps", "1"});
  };
  expectError(changed([](json &m) { m["state"][0]["offset"] = 1 << 30; }), 2, "state[0].offset");
  expectError(changed([](json &m) { m["state"][0]["bytes"] = 4; }), 2, "state[0].bytes");
  expectError(changed([](json &m) { m["state"][0]["shape"] = {-1}; }), 2, "shape");
  expectError(changed([](json &m) { m.erase("flags"); }), 2, "flags");
  expectError(changed([](json &m) { m["memory"] = "much"; }), 2, "memory");
  expectError(changed([](json &m) { m["format"] = 2; }), 2, "format");
  expectError(changed([](json &m) { m["flags"]["emulate"] = "yes"; }), 2, "flags.emulate");
  expectError(changed([](json &m) {
                for (json &slot : m["state"])
                  if (slot["name"] == "train_step.tokens")
                    slot["name"] = "train_step.tokenz";
              }),
              2, "no slot train_step.tokens");
  std::string cut = toyMetadata().substr(0, 200);
  expectError(runApp(toyWithMetadata(cut), {"info"}), 2, "metadata");
  auto executable = toyExecutable();
  executable.abiVersion = 99;
  expectError(runApp(executable, {"bench"}), 70, "ABI 99");
}

TEST_F(AppRefusal, AFlagGivenTwice) {
  expectError(runToy(train(5, {"--warmup", "1", "--warmup", "2"})), 1, "--warmup");
  expectError(runToy({"eval", "--data", data, "--data", data, "--init-weights", data}), 1,
              "--data");
}

TEST_F(AppRefusal, ALossScaleWhereNoLossIsScaled) {
  for (const char *flag : {"--loss-scale", "--loss-scale-growth", "--loss-scale-interval"})
    expectError(runToy(train(5, {flag, "2"})), 1,
                std::string(flag) + ": this executable computes in fp32 and scales no loss; leave "
                                    "the flag out, or compile with --precision fp16");
  expectError(runToy(train(5, {"--loss-scale-backoff", "0.5"})), 1, "--loss-scale-backoff: ");
}

TEST_F(AppRefusal, DataThatIsCutShortMeanwhile) {
  std::string metricsPath = folder.path("m.jsonl");
  // More than what is read ahead and what the system keeps of a page.
  std::string text = readFile(data);
  while (text.size() < (1 << 20))
    text += text;
  writeFile(data, text);
  auto result = runToy(train(1000000, {"--metrics", metricsPath}), [&](pid_t child) {
    for (int i = 0; i < 20000 && readFile(metricsPath).empty(); ++i)
      usleep(500);
    if (::truncate(data.c_str(), 5000) != 0)
      kill(child, SIGKILL);
  });
  expectError(result, 2, "it was cut short meanwhile; restore the file");
  EXPECT_NE(result.err.find(data), std::string::npos) << result.err;
}

TEST_F(AppRefusal, AnotherPrecisionOfTheSameRunIsWarnedOf) {
  auto inPrecision = [](const char *precision) {
    auto metadata = json::parse(toyMetadata());
    metadata["flags"]["precision"] = precision;
    return metadata.dump();
  };
  std::string dir = folder.path("ckpt"), tf32 = inPrecision("tf32"), fp32 = inPrecision("fp32");
  auto first = runApp(toyWithMetadata(tf32), train(5, {"--checkpoint-dir", dir}));
  ASSERT_EQ(first.exitCode, 0) << first.err;
  auto same = runApp(toyWithMetadata(tf32), train(6, {"--checkpoint-dir", dir, "--resume"}));
  ASSERT_EQ(same.exitCode, 0) << same.err;
  EXPECT_EQ(same.err, "");
  auto other = runApp(toyWithMetadata(fp32), train(7, {"--checkpoint-dir", dir, "--resume"}));
  ASSERT_EQ(other.exitCode, 0) << other.err;
  EXPECT_EQ(other.err,
            "warning: " + dir + "/step-6 was trained in tf32; this executable goes on in fp32\n");
}

} // namespace
} // namespace gradc::rt
