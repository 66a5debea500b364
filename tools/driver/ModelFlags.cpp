// See ModelFlags.h.
#include "tools/driver/ModelFlags.h"
#include "passes/Optimizers.h"
#include "tools/driver/ByteSize.h"
#include "tools/driver/LossChunk.h"
#include "tools/driver/Target.h"

#include <CLI/CLI.hpp>

namespace gradc {

void FixedFlags::add(CLI::App &app) {
  app.add_option("--mesh", mesh, "Devices, e.g. dp=1: one device in this version");
  app.add_option("--zero", zero, "Sharding of state: 0")->capture_default_str();
  app.add_option("--schedule", schedule, "Not in this version");
  app.add_flag("--deterministic", deterministic, "Results are bit-reproducible with or without it");
}

Failure FixedFlags::check() const {
  auto refuse = [](const std::string &flag, const std::string &mend) {
    return Failure{Exit::userError, flag + " is not implemented in this version; " + mend};
  };
  for (llvm::StringRef axis : llvm::split(mesh, ','))
    if (!axis.empty() && axis.split('=').second != "1")
      return refuse("--mesh " + mesh, "use one device: dp=1");
  if (zero != 0 || !schedule.empty())
    return refuse("sharding (--zero, --schedule)", "leave both out");
  return {};
}

void ModelFlags::add(CLI::App &app) {
  command = &app;
  addShape(app);
  addNumerics(app);
  addDocuments(app);
  addMemory(app);
  addCode(app);
  fixed.add(app);
}

void ModelFlags::addShape(CLI::App &app) {
  app.add_option("MODEL", request.model, "A config.json, a folder holding one, or an .mlir module")
      ->required();
  app.add_option("--micro-batch", microBatch, "Sequences of one microbatch (default 1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--seq", seq,
                 "Tokens of a sequence (default: the model's positions, at most 1024)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  app.add_option("--grad-accum", request.passes.gradAccum, "Microbatches of a step")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
}

void ModelFlags::addNumerics(CLI::App &app) {
  app.add_option(
         "--precision", request.passes.precision,
         "What matrix products and attention compute in: fp32; tf32: inputs rounded to 10 "
         "bits; bf16; fp16, with a dynamic loss scale; fp8: linear layers in fp8, the rest in "
         "bf16")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp8"}))
      ->capture_default_str();
  app.add_option("--fp8-scaling", request.passes.float8Scaling,
                 "Scales of fp8: current (each tensor's own magnitudes) or delayed (those of the "
                 "steps before)")
      ->check(CLI::IsMember({"current", "delayed"}))
      ->capture_default_str();
  app.add_option("--optimizer", request.passes.optimizer, "One of " + optimizerNames())
      ->capture_default_str();
  app.add_option("--fuse", fuse, "Fusion of row ops: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option(
         "--epilogues", epilogues,
         "Biases, GELU and sums of bias gradients as parts of a GPU library's products: on, "
         "where it has such products, or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--dropout", dropout, "config (what config.json says) or off")
      ->check(CLI::IsMember({"config", "off"}))
      ->capture_default_str();
}

void ModelFlags::addDocuments(CLI::App &app) {
  app.add_option("--document-mask", documentMask,
                 "on: rows hold documents one after another, which neither attention nor "
                 "positions cross, and the label at a document's last token is ignored; or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--document-separator", documentSeparator,
                 "The token that ends a document (default: \"eos_token_id\" of config.json)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
}

void ModelFlags::addMemory(CLI::App &app) {
  app.add_option("--recompute", request.recompute,
                 "Compute again in the backward instead of keeping: none; cheap: what needs no "
                 "matrix product; full: all but each layer's input; auto: as little as the budget "
                 "(by default this machine's memory) asks for")
      ->check(CLI::IsMember({"none", "cheap", "full", "auto"}))
      ->capture_default_str();
  app.add_option(
      "--memory-budget", budget,
      "Most bytes of planned peak, e.g. 900MiB, 1.5 GiB, 6GB; implies --recompute auto (default: "
      "none)");
  app.add_option("--weight-panels", request.weightPanels,
                 "Keep weights a second and third time, in the panels that products multiply, "
                 "instead of packing them for each product: off; on; auto: where a step has "
                 "several microbatches and no budget is in the way")
      ->check(CLI::IsMember({"off", "on", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--streams", request.streams,
         "Commands of a GPU in one order, or in two streams: gradients of weights beside the "
         "chain of the others, for which some memory is kept longer: 1; 2; auto: 2 where no "
         "budget is in the way")
      ->check(CLI::IsMember({"1", "2", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--loss-chunk", lossChunk,
         "Rows whose logits are computed at a time, with their loss and gradients: a "
         "number; auto: as many as keep them within 64 MiB, on GPUs up to 4096; 0 or off: all")
      ->capture_default_str();
}

void ModelFlags::addCode(CLI::App &app) {
  app.add_option("--init", request.init,
                 "Initialisation: family, normal, xavier, kaiming, orthogonal")
      ->check(CLI::IsMember({"family", "normal", "xavier", "kaiming", "orthogonal"}))
      ->capture_default_str();
  app.add_option("--target", request.target,
                 "What to compile for, the CPU or an NVIDIA GPU: one of " + targetNames())
      ->capture_default_str();
  app.add_flag("--emulate", request.emulate,
               "An executable that runs a GPU's kernels on the host, thread by thread, and checks "
               "every access: slow");
  app.add_option(
         "--gemm", request.gemm,
         "Matrix products: generated kernels; library (oneDNN); auto: for each shape what is "
         "faster on this machine, measured once and kept in a cache ($GRADC_CACHE_DIR, else "
         "~/.cache/gradc)")
      ->check(CLI::IsMember({"generated", "library", "auto"}))
      ->capture_default_str();
  app.add_option("--threads", request.threads,
                 "Threads that matrix products are cut for (default: this machine's processors). "
                 "The executable runs on any number, with the same bits")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
}

std::string ModelFlags::firstGiven() const {
  for (const CLI::Option *option : command->get_options())
    if (option->count() > 0 && !option->get_positional() && option->get_single_name() != "json")
      return "--" + option->get_single_name();
  return "";
}

Failure ModelFlags::finish() {
  if (Failure failure = fixed.check())
    return failure;
  for (const CLI::Option *option : command->get_options())
    if (option->count() > 0)
      request.given.insert(option->get_single_name());
  if (request.passes.float8Scaling != "current" && request.passes.precision != "fp8")
    return {Exit::userError, "--fp8-scaling " + request.passes.float8Scaling +
                                 " needs --precision fp8; add it or leave both out"};
  if (!findOptimizer(request.passes.optimizer))
    return {Exit::userError, "--optimizer " + request.passes.optimizer +
                                 " is not known; use one of " + optimizerNames()};
  if (Failure failure = finishMemory())
    return failure;
  if (Failure failure = finishDocuments())
    return failure;
  if (microBatch > 0)
    request.import.microBatch = microBatch;
  if (seq > 0)
    request.import.seq = seq;
  request.import.dropout = dropout == "off" ? DropoutPolicy::off : DropoutPolicy::asConfigured;
  request.passes.fuse = fuse == "on";
  request.passes.epilogues = epilogues == "on";
  return {};
}

Failure ModelFlags::finishMemory() {
  if (!budget.empty()) {
    std::optional<int64_t> bytes = parseByteSize(budget);
    if (!bytes)
      return {Exit::userError,
              "--memory-budget " + budget + " is no size; give bytes, or e.g. 900MiB or 6GiB"};
    if (request.recompute != "auto" && request.recompute != "none")
      return {Exit::userError, "--memory-budget chooses what to recompute; leave out --recompute " +
                                   request.recompute};
    request.recompute = "auto";
    request.given.insert("recompute");
    request.memoryBudget = *bytes;
  }
  std::optional<int64_t> rows = parseLossChunk(lossChunk);
  if (!rows)
    return {Exit::userError, "--loss-chunk " + lossChunk +
                                 " is no number of rows; give one, 0 or off for all, or auto"};
  request.passes.lossChunk = *rows;
  return {};
}

Failure ModelFlags::finishDocuments() {
  request.import.documentMask = documentMask == "on";
  request.import.documentSeparator = documentSeparator;
  if (documentSeparator && documentMask == "off")
    return {Exit::userError, "--document-separator ends no document without --document-mask on; "
                             "pass both, or leave it out"};
  return {};
}

} // namespace gradc
