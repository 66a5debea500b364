// Descriptors, programs and metadata of the toy model.
#include "ToyExecutable.h"

#include <list>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/cpu/CpuDevice.h"
#include "tests/runtime/ToyKernels.h"

extern "C" {
void gradc_launch(GradcContext *context, const GradcLaunch *launch);
void gradc_gemm(GradcContext *context, const GradcGemm *gemm);
void gradc_begin_iteration(GradcContext *context, int64_t iteration);
}

namespace gradc::rt {
namespace {

using namespace toy_kernels;

constexpr int64_t V = toyVocab, D = toyWidth, N = toyMicroBatch * toySeq;

constexpr int64_t atX = 0, atLogits = atX + N * D * 4, atDx = atLogits + N * V * 4,
                  atRowLoss = atDx + N * D * 4, atGradE = atRowLoss + N * 4,
                  atGradH = atGradE + V * D * 4, arenaBytes = atGradH + V * D * 4;

/// A buffer of the arena; it may be shorter, which nothing here looks at.
GradcBuffer arena(int64_t offset) { return {GRADC_ARENA, offset, 0, arenaBytes - offset}; }

/// Metadata and descriptors in one: slots get their offsets as they are declared.
struct Toy {
  nlohmann::json state = nlohmann::json::array();
  int64_t stateBytes = 0;
  std::list<std::vector<GradcBuffer>> bufferLists;
  struct Command {
    bool isGemm;
    GradcLaunch launch;
    GradcGemm gemm;
  };
  struct Program {
    std::vector<Command> before, each, after; ///< `each` runs once a microbatch
    int64_t iterations = 1;
  };
  Program trainStep, gradients, evalLoss, logits;
  std::string metadata;

  GradcBuffer slot(const char *name, const char *role, const char *type, std::vector<int64_t> shape,
                   nlohmann::json more = nlohmann::json::object()) {
    int64_t bytes = 4;
    for (int64_t size : shape)
      bytes *= size;
    more.update({{"name", name},
                 {"role", role},
                 {"dtype", type},
                 {"shape", shape},
                 {"offset", stateBytes},
                 {"bytes", bytes}});
    state.push_back(more);
    GradcBuffer buffer{GRADC_STATE, stateBytes, 0, bytes};
    stateBytes += (bytes + 63) / 64 * 64;
    return buffer;
  }
  GradcBuffer scalar(const char *name, const char *role = "scalar") {
    return slot(name, role, "f32", {});
  }
  Command launch(const char *name, GradcKernelFn kernel, int64_t extent, int64_t tasks,
                 std::vector<GradcBuffer> buffers) {
    bufferLists.push_back(std::move(buffers));
    const auto &list = bufferLists.back();
    return {false,
            {name, kernel, nullptr, extent, tasks, int64_t(list.size()), list.data(),
             extent * tasks, 0, 0},
            {}};
  }
  static GradcMatrix matrix(GradcBuffer buffer, int64_t rowStride, int64_t columnStride) {
    return {buffer, rowStride, columnStride, {0, 0}, GRADC_F32};
  }
  static Command gemm(const char *name, int64_t m, int64_t n, int64_t k, GradcMatrix a,
                      GradcMatrix b, GradcMatrix c, bool accumulate) {
    GradcGemm gemm{};
    gemm.name = name;
    gemm.m = m, gemm.n = n, gemm.k = k;
    gemm.batch[0] = gemm.batch[1] = 1;
    gemm.a = a, gemm.b = b, gemm.c = c;
    gemm.accumulate = accumulate;
    gemm.flops = 2 * m * n * k;
    gemm.bytes = 4 * (m * k + k * n + m * n);
    return {true, {}, gemm};
  }

  GradcBuffer wE, wH, mE, mH;
  Toy();
  void addForward(Program &program, GradcBuffer tokens, GradcBuffer targets, GradcBuffer valid,
                  GradcBuffer loss);
  void addBackward(Program &program, GradcBuffer tokens);
  void addTrainStep();
  void addOthers();
  void print();
};

void Toy::addForward(Program &program, GradcBuffer tokens, GradcBuffer targets, GradcBuffer valid,
                     GradcBuffer loss) {
  program.before.push_back(launch("zero", zero, 1, 1, {loss}));
  program.before.push_back(
      launch("count_valid", countValid, N * program.iterations, 1, {targets, valid}));
  if (program.iterations > 1)
    tokens.loopStride = targets.loopStride = N * 4;
  program.each.push_back(launch("gather", gather, 0, N, {tokens, wE, arena(atX)}));
  program.each.push_back(gemm("logits", N, V, D, matrix(arena(atX), D, 1), matrix(wH, 1, D),
                              matrix(arena(atLogits), V, 1), false));
  program.each.push_back(launch("cross_entropy", crossEntropy, V, N,
                                {arena(atLogits), targets, valid, arena(atRowLoss)}));
  program.each.push_back(launch("add_losses", addLosses, N, 1, {arena(atRowLoss), loss}));
}

void Toy::addBackward(Program &program, GradcBuffer tokens) {
  tokens.loopStride = N * 4;
  program.before.push_back(launch("zero", zero, 2 * V * D, 1, {arena(atGradE)}));
  program.each.push_back(gemm("dx", N, D, V, matrix(arena(atLogits), V, 1), matrix(wH, D, 1),
                              matrix(arena(atDx), D, 1), false));
  program.each.push_back(gemm("dh", V, D, N, matrix(arena(atLogits), 1, V),
                              matrix(arena(atX), D, 1), matrix(arena(atGradH), D, 1), true));
  program.each.push_back(launch("scatter", scatter, N, 1, {tokens, arena(atDx), arena(atGradE)}));
}

void Toy::addTrainStep() {
  std::vector<int64_t> batch{toyAccumulation, toyMicroBatch, toySeq};
  auto tokens = slot("train_step.tokens", "input", "i32", batch);
  auto targets = slot("train_step.targets", "input", "i32", batch);
  auto rate = scalar("train_step.learning_rate"), beta = scalar("train_step.beta1"),
       clip = scalar("train_step.clip_grad");
  auto loss = scalar("train_step.loss", "output"), valid = scalar("train_step.valid", "output"),
       gradNorm = scalar("train_step.grad_norm", "output");
  trainStep.iterations = toyAccumulation;
  addForward(trainStep, tokens, targets, valid, loss);
  addBackward(trainStep, tokens);
  trainStep.after.push_back(launch("mean_loss", meanLoss, 1, 1, {loss, valid}));
  trainStep.after.push_back(launch("norm", norm, 2 * V * D, 1, {arena(atGradE), gradNorm}));
  trainStep.after.push_back(
      launch("update", update, D, V, {wE, mE, arena(atGradE), rate, beta, clip, gradNorm}));
  trainStep.after.push_back(
      launch("update", update, D, V, {wH, mH, arena(atGradH), rate, beta, clip, gradNorm}));
}

void Toy::addOthers() {
  std::vector<int64_t> batch{toyAccumulation, toyMicroBatch, toySeq};
  auto tokens = slot("gradients.tokens", "input", "i32", batch);
  auto targets = slot("gradients.targets", "input", "i32", batch);
  auto loss = scalar("gradients.loss", "output"), valid = scalar("gradients.valid", "output");
  gradients.iterations = toyAccumulation;
  addForward(gradients, tokens, targets, valid, loss);
  addBackward(gradients, tokens);
  gradients.after.push_back(launch("mean_loss", meanLoss, 1, 1, {loss, valid}));

  auto evalTokens = slot("eval_loss.tokens", "input", "i32", {toyMicroBatch, toySeq});
  auto evalTargets = slot("eval_loss.targets", "input", "i32", {toyMicroBatch, toySeq});
  addForward(evalLoss, evalTokens, evalTargets, scalar("eval_loss.valid", "output"),
             scalar("eval_loss.loss", "output"));

  auto prompt = slot("logits.tokens", "input", "i32", {1, toySeq});
  auto position = slot("logits.position", "input", "i32", {1});
  auto result = slot("logits.logits", "output", "f32", {V});
  logits.each.push_back(launch("gather", gather, 0, toySeq, {prompt, wE, arena(atX)}));
  logits.each.push_back(gemm("logits", toySeq, V, D, matrix(arena(atX), D, 1), matrix(wH, 1, D),
                             matrix(arena(atLogits), V, 1), false));
  logits.each.push_back(launch("pick_row", pickRow, 0, V, {arena(atLogits), position, result}));
}

void Toy::print() {
  auto gradient = [](const char *name, int64_t offset) {
    return nlohmann::json{{"name", name},
                          {"dtype", "f32"},
                          {"shape", {V, D}},
                          {"offset", offset},
                          {"bytes", V * D * 4}};
  };
  nlohmann::json json{
      {"format", 1},
      {"gradc", "test"},
      {"model",
       {{"family", "gpt2"},
        {"vocab", V},
        {"max_positions", toySeq},
        {"config", nlohmann::json::object()}}},
      {"flags",
       {{"micro_batch", toyMicroBatch},
        {"seq", toySeq},
        {"grad_accum", toyAccumulation},
        {"precision", "fp32"},
        {"optimizer", "sgd"},
        {"recompute", "none"},
        {"fuse", "on"},
        {"document_mask", "off"},
        {"document_separator", "none"},
        {"mesh", "dp=1,tp=1,pp=1,cp=1"},
        {"zero", 0},
        {"target", "cpu"},
        {"emulate", false},
        {"cpu", "generic"},
        {"cpu_features", "+sse4.2,-avx10"},
        {"init", "family"}}},
      {"parameters", 2 * V * D},
      {"fingerprint", "toy"},
      {"flops_per_token", 6 * V * D},
      {"flops_per_step", 6 * V * D * N * toyAccumulation},
      {"matmul_flops_per_step", 6 * V * D * N * toyAccumulation},
      {"state_bytes", stateBytes},
      {"arena_bytes", arenaBytes},
      {"constant_bytes", 0},
      {"memory",
       {{"parameters", 2 * V * D * 4},
        {"gradients", 2 * V * D * 4},
        {"optimizer", 2 * V * D * 4},
        {"activations", arenaBytes - 2 * V * D * 4},
        {"workspace", 0},
        {"peak", stateBytes + arenaBytes}}},
      {"kernels", {{{"name", "update"}, {"launches", 2}}}},
      {"state", state},
      {"gradients", {gradient("wte.weight", atGradE), gradient("head.weight", atGradH)}},
      {"exec", ""}};
  metadata = json.dump();
}

Toy::Toy() {
  nlohmann::json matrixRule{{"init", {{"kind", "normal"}, {"std", 0.5}}},
                            {"class", "embedding"},
                            {"fan_in", V},
                            {"fan_out", D},
                            {"decay", true}};
  wE = slot("wte.weight", "parameter", "f32", {V, D}, matrixRule);
  matrixRule["class"] = "matrix";
  wH = slot("head.weight", "parameter", "f32", {V, D}, matrixRule);
  mE = slot("wte.weight", "optimizer", "f32", {V, D}, {{"slot", "momentum"}});
  mH = slot("head.weight", "optimizer", "f32", {V, D}, {{"slot", "momentum"}});
  addTrainStep();
  addOthers();
  print();
}

Toy &toy() {
  static Toy instance;
  return instance;
}

void issue(GradcContext *context, const std::vector<Toy::Command> &commands) {
  for (const Toy::Command &command : commands)
    if (command.isGemm)
      gradc_gemm(context, &command.gemm);
    else
      gradc_launch(context, &command.launch);
}

void runProgram(GradcContext *context, const Toy::Program &program) {
  issue(context, program.before);
  for (int64_t i = 0; i < program.iterations; ++i) {
    gradc_begin_iteration(context, i);
    issue(context, program.each);
  }
  issue(context, program.after);
}

const GradcProgram programs[] = {
    {"train_step", [](GradcContext *context) { runProgram(context, toy().trainStep); }},
    {"gradients", [](GradcContext *context) { runProgram(context, toy().gradients); }},
    {"eval_loss", [](GradcContext *context) { runProgram(context, toy().evalLoss); }},
    {"logits", [](GradcContext *context) { runProgram(context, toy().logits); }},
};

} // namespace

const std::string &toyMetadata() { return toy().metadata; }

GradcExecutable toyWithMetadata(const std::string &metadata) {
  return {GRADC_ABI_VERSION, metadata.data(), int64_t(metadata.size()), nullptr, 0, 4, programs,
          &gradc_cpu_device, nullptr};
}

const GradcExecutable &toyExecutable() {
  static const GradcExecutable executable = toyWithMetadata(toyMetadata());
  return executable;
}

} // namespace gradc::rt
