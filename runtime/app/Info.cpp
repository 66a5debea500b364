// `info`: the metadata for people and, with --json, for programs.
#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/Say.h"
#include "runtime/app/Commands.h"
#include "runtime/cpu/Arena.h"

namespace gradc::rt {
namespace {

void printJson(const nlohmann::json &parsed, const Metadata &metadata) {
  nlohmann::json object;
  object["parameters"] = metadata.parameters;
  object["peak_bytes"] = metadata.memory.peak;
  object["memory"] = parsed["memory"];
  object["precision"] = metadata.precision;
  object["recompute"] = metadata.recompute;
  object["mesh"] = metadata.mesh;
  object["target"] = metadata.target;
  object["kernels"] = parsed["kernels"];
  object["flags"] = parsed["flags"];
  object["model"] = parsed["model"];
  object["flops_per_token"] = metadata.flopsPerToken;
  object["flops_per_step"] = metadata.flopsPerStep;
  object["fingerprint"] = metadata.fingerprint;
  say(stdout, "{}\n", object.dump());
}

void printText(const Metadata &metadata) {
  const MemoryPlan &memory = metadata.memory;
  int64_t launches = 0;
  for (const KernelUse &kernel : metadata.kernels)
    launches += kernel.launches;
  say(stdout, "model        {}, {} parameters, vocabulary {}\n",
      metadata.family.empty() ? "from a module" : metadata.family, metadata.parameters,
      metadata.vocab);
  say(stdout, "step         {} x {} tokens x {} microbatches, {}, {}\n", metadata.microBatch,
      metadata.seq, metadata.gradAccum, metadata.precision, metadata.optimizer);
  say(stdout, "target       {}{}, recompute {}, mesh {}\n", metadata.target,
      metadata.emulate ? ", emulated" : "", metadata.recompute, metadata.mesh);
  if (metadata.documentSeparator >= 0)
    say(stdout, "documents    masked, each up to a token {}\n", metadata.documentSeparator);
  say(stdout, "work         {:.4g} FLOP a step\n", metadata.flopsPerStep);
  say(stdout,
      "memory       peak {}: parameters {}, gradients {}, optimizer {}, activations {}, "
      "workspace {}\n",
      formatBytes(memory.peak), formatBytes(memory.parameters), formatBytes(memory.gradients),
      formatBytes(memory.optimizer), formatBytes(memory.activations),
      formatBytes(memory.workspace));
  say(stdout, "kernels      {} distinct, {} kernel launches a step\n", metadata.kernels.size(),
      launches);
}

} // namespace

Status info(const GradcExecutable &executable, const Metadata &metadata,
            const InfoOptions &options) {
  if (!options.json) {
    printText(metadata);
    return Status();
  }
  // parseMetadata accepted the text already.
  auto parsed = nlohmann::json::parse(
      std::string_view(executable.metadata, std::size_t(executable.metadataBytes)), nullptr, false);
  printJson(parsed, metadata);
  return Status();
}

} // namespace gradc::rt
