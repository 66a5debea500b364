// See RecordedFlags.h.
#include "tools/driver/RecordedFlags.h"
#include "tools/driver/LossChunk.h"

using namespace mlir;

namespace gradc {

namespace {

/// A flag that the module of a later phase depends on.
struct RecordedFlag {
  llvm::StringRef name;
  Phase decides;
  std::string *value;
};

std::string maskText(const ModelInfo &info) { return info.documentSeparator ? "on" : "off"; }
std::string separatorText(const ModelInfo &info) {
  return info.documentSeparator ? std::to_string(*info.documentSeparator) : "none";
}

} // namespace

void recordPhase(ModuleOp module, Phase phase, const CompileRequest &request,
                 const ModelInfo &info) {
  Builder b(module.getContext());
  auto text = [&](llvm::StringRef name, const std::string &value) {
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  const Options &passes = request.passes;
  module->setAttr("nn.phase", b.getStringAttr(nameOf(phase)));
  module->setAttr(
      "nn.flags",
      b.getDictionaryAttr(
          {text("precision", passes.precision), text("fp8-scaling", passes.float8Scaling),
           text("recompute", request.recompute), text("optimizer", passes.optimizer),
           text("grad-accum", std::to_string(passes.gradAccum)),
           text("loss-chunk", formatLossChunk(passes.lossChunk)),
           text("weight-panels", passes.weightPanels ? "on" : "off"),
           text("fuse", passes.fuse ? "on" : "off"),
           text("epilogues", passes.epilogues ? "on" : "off"),
           text("streams", std::to_string(passes.streams)), text("gemm", request.gemm),
           text("threads", std::to_string(request.threads)), text("target", request.target),
           text("document-mask", maskText(info)),
           text("document-separator", separatorText(info))}));
}

Failure restoreFlags(ModuleOp module, CompileRequest &request) {
  auto recorded = module->getAttrOfType<DictionaryAttr>("nn.flags");
  std::string accumulation = std::to_string(request.passes.gradAccum);
  std::string lossChunk = formatLossChunk(request.passes.lossChunk);
  std::string fuse = request.passes.fuse ? "on" : "off";
  std::string epilogues = request.passes.epilogues ? "on" : "off";
  std::string threads = std::to_string(request.threads);
  std::string mask = request.import.documentMask ? "on" : "off";
  std::optional<int64_t> given = request.import.documentSeparator;
  std::string separator = given ? std::to_string(*given) : "none";
  RecordedFlag flags[] = {{"precision", Phase::precision, &request.passes.precision},
                          {"fp8-scaling", Phase::precision, &request.passes.float8Scaling},
                          {"recompute", Phase::recompute, &request.recompute},
                          {"optimizer", Phase::trainingStep, &request.passes.optimizer},
                          {"grad-accum", Phase::trainingStep, &accumulation},
                          {"loss-chunk", Phase::chunkLoss, &lossChunk},
                          {"weight-panels", Phase::recompute, &request.weightPanels},
                          {"fuse", Phase::fusion, &fuse},
                          {"epilogues", Phase::autodiff, &epilogues},
                          {"streams", Phase::recompute, &request.streams},
                          {"gemm", Phase::memoryPlan, &request.gemm},
                          {"threads", Phase::memoryPlan, &threads},
                          {"target", Phase::autodiff, &request.target},
                          {"document-mask", Phase::import, &mask},
                          {"document-separator", Phase::import, &separator}};
  for (RecordedFlag &flag : flags) {
    if (flag.decides > *request.from)
      continue;
    auto value = recorded ? recorded.getAs<StringAttr>(flag.name) : StringAttr();
    if (!value)
      return {Exit::userError, request.model + ": does not say its --" + flag.name.str() +
                                   "; give a module that --compile-to wrote"};
    if (*flag.value != value.getValue() && request.given.count(flag.name.str()))
      return {Exit::userError, "--" + flag.name.str() + " " + *flag.value + ": " + request.model +
                                   " was compiled with " + value.getValue().str() +
                                   "; leave the flag out"};
    *flag.value = value.getValue().str();
  }
  request.passes.gradAccum = std::stoll(accumulation);
  std::optional<int64_t> rows = parseLossChunk(lossChunk);
  if (!rows)
    return {Exit::userError, request.model + ": --loss-chunk " + lossChunk +
                                 " is no number of rows; give a module that --compile-to wrote"};
  request.passes.lossChunk = *rows;
  request.passes.fuse = fuse == "on";
  request.passes.epilogues = epilogues == "on";
  if (llvm::StringRef(threads).getAsInteger(10, request.threads) || request.threads < 1)
    return {Exit::userError, request.model + ": --threads " + threads +
                                 " is no number; give a module that --compile-to wrote"};
  return {};
}

} // namespace gradc
