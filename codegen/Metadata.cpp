// The JSON that an executable carries.
#include "codegen/Metadata.h"
#include "codegen/KernelTable.h"
#include "ir/Exec.h"
#include "ir/Explanation.h"
#include "ir/Nn.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
namespace json = llvm::json;

namespace gradc::codegen {
namespace {

DictionaryAttr planOf(ModuleOp module) {
  return module->getAttrOfType<DictionaryAttr>("gradc.plan");
}
int64_t integer(DictionaryAttr dictionary, StringRef name) {
  auto attribute = dictionary.getAs<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}
StringRef string(DictionaryAttr dictionary, StringRef name) {
  auto attribute = dictionary.getAs<StringAttr>(name);
  return attribute ? attribute.getValue() : StringRef();
}
RankedTensorType typeOf(DictionaryAttr slot) {
  return cast<RankedTensorType>(slot.getAs<TypeAttr>("type").getValue());
}

json::Object describe(DictionaryAttr slot) {
  RankedTensorType type = nn::storedType(typeOf(slot));
  json::Array shape;
  for (int64_t dim : type.getShape())
    shape.push_back(dim);
  return json::Object{{"name", string(slot, "name")},
                      {"dtype", row::name(nn::rowDtype(type.getElementType()))},
                      {"shape", std::move(shape)},
                      {"offset", integer(slot, "offset")},
                      {"bytes", nn::byteSize(type)}};
}

void addParameter(json::Object &entry, DictionaryAttr parameter) {
  StringRef kind = string(parameter, "init_kind");
  json::Object init{{"kind", kind}};
  for (auto [key, attribute] : {std::pair("std", "init_std"), std::pair("value", "init_value")})
    if (auto number = parameter.getAs<FloatAttr>(attribute))
      init[key] = number.getValueAsDouble();
  entry["init"] = std::move(init);
  entry["class"] = string(parameter, "class");
  entry["fan_in"] = integer(parameter, "fan_in");
  entry["fan_out"] = integer(parameter, "fan_out");
  if (auto decay = parameter.getAs<BoolAttr>("decay"))
    entry["decay"] = decay.getValue();
}

json::Array stateSlots(ModuleOp module) {
  json::Array slots;
  for (Attribute attribute : planOf(module).getAs<ArrayAttr>("slots")) {
    auto slot = cast<DictionaryAttr>(attribute);
    json::Object entry = describe(slot);
    entry["role"] = string(slot, "role");
    if (auto part = slot.getAs<StringAttr>("slot"))
      entry["slot"] = part.getValue();
    if (auto parameter = slot.getAs<DictionaryAttr>("param"))
      addParameter(entry, parameter);
    slots.push_back(std::move(entry));
  }
  return slots;
}

/// Names, shapes and optimizer: a checkpoint of another model must not load.
std::string fingerprint(ModuleOp module, StringRef optimizer) {
  std::string text = optimizer.str();
  llvm::raw_string_ostream stream(text);
  for (Attribute attribute : planOf(module).getAs<ArrayAttr>("slots")) {
    auto slot = cast<DictionaryAttr>(attribute);
    if (string(slot, "role") == "parameter")
      stream << ";" << string(slot, "name") << ":" << typeOf(slot);
  }
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
}

json::Array kernelUses(ModuleOp module) {
  json::Array list;
  for (const KernelUse &use : kernelTable(module)) {
    json::Object entry{{"name", use.name},
                       {"launches", use.launches},
                       {"least_bytes", use.leastBytes},
                       {"least_flops", use.leastFlops},
                       {"library", use.isLibrary}};
    if (use.isCounted) {
      entry["bytes"] = use.bytes;
      entry["flops"] = use.flops;
    }
    if (!use.reason.empty())
      entry["reason"] = use.reason;
    list.push_back(std::move(entry));
  }
  return list;
}

/// Launches of a step: of each layer, in order, and of no layer.
json::Object launches(ModuleOp module) {
  json::Array layers;
  int64_t others = 0;
  for (auto [layer, count] : launchesByLayer(module)) {
    if (layer < 0)
      others = count;
    else
      layers.push_back(count);
  }
  return json::Object{{"layers", std::move(layers)}, {"others", others}};
}

/// What passes decided, by topic, in lines.
json::Object explanations(ModuleOp module) {
  json::Object topics;
  forEachExplanation(module, [&](StringRef topic, ArrayRef<Attribute> lines) {
    json::Array texts;
    for (Attribute line : lines)
      texts.push_back(cast<StringAttr>(line).getValue());
    topics[topic] = std::move(texts);
  });
  return topics;
}

std::string execText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto program : module.getOps<exec::ProgramOp>())
    stream << program << "\n";
  return text;
}

} // namespace

MemoryByKind memoryByKind(ModuleOp module) {
  DictionaryAttr plan = planOf(module);
  MemoryByKind memory;
  for (Attribute attribute : plan.getAs<ArrayAttr>("slots")) {
    auto slot = cast<DictionaryAttr>(attribute);
    int64_t bytes = nn::byteSize(typeOf(slot));
    if (string(slot, "role") == "parameter") {
      memory.parameters += bytes;
      memory.parameterCount += typeOf(slot).getNumElements();
    } else if (string(slot, "role") == "low_parameter") {
      memory.parameters += bytes;
    } else if (string(slot, "role") == "optimizer")
      memory.optimizer += bytes;
  }
  for (Attribute attribute : plan.getAs<ArrayAttr>("gradients"))
    memory.gradients += nn::byteSize(typeOf(cast<DictionaryAttr>(attribute)));
  memory.workspace = integer(plan, "workspace_bytes");
  int64_t arena = integer(plan, "arena_bytes");
  memory.activations = std::max<int64_t>(0, arena - memory.gradients - memory.workspace);
  memory.peak =
      integer(plan, "state_bytes") + arena + integer(plan, "constant_bytes") + runtimeBytes;
  return memory;
}

static json::Value describeModel(ModuleOp module) {
  auto model = module->getAttrOfType<DictionaryAttr>("nn.model");
  auto text = [&](StringRef name) { return model ? string(model, name) : StringRef(); };
  auto number = [&](StringRef name) { return model ? integer(model, name) : 0; };
  json::Value config = nullptr;
  if (llvm::Expected<json::Value> parsed = json::parse(text("config")))
    config = std::move(*parsed);
  else
    llvm::consumeError(parsed.takeError());
  return json::Object{{"family", text("family")},
                      {"vocab", number("vocab")},
                      {"max_positions", number("max_positions")},
                      {"prefix", text("prefix")},
                      {"config", std::move(config)}};
}

static json::Value describe(const CompileFlags &flags) {
  std::optional<int64_t> separator = flags.documentSeparator;
  return json::Object{{"micro_batch", flags.microBatch},
                      {"seq", flags.seq},
                      {"grad_accum", flags.gradAccum},
                      {"precision", flags.precision},
                      {"fp8_scaling", flags.float8Scaling},
                      {"optimizer", flags.optimizer},
                      {"recompute", flags.recompute},
                      {"fuse", flags.fuse ? "on" : "off"},
                      {"epilogues", flags.epilogues ? "on" : "off"},
                      {"loss_chunk", flags.lossChunk},
                      {"weight_panels", flags.weightPanels ? "on" : "off"},
                      {"streams", flags.streams},
                      {"document_mask", separator ? "on" : "off"},
                      {"document_separator", separator ? json::Value(*separator) : "none"},
                      {"gemm", flags.gemm},
                      {"mesh", "dp=1,tp=1,pp=1,cp=1"},
                      {"zero", 0},
                      {"target", flags.target},
                      {"emulate", flags.emulate},
                      {"cpu", flags.host.cpu},
                      {"cpu_features", flags.host.features},
                      {"init", flags.init}};
}

static json::Value describe(const MemoryByKind &memory) {
  return json::Object{{"parameters", memory.parameters}, {"gradients", memory.gradients},
                      {"optimizer", memory.optimizer},   {"activations", memory.activations},
                      {"workspace", memory.workspace},   {"peak", memory.peak}};
}

std::string executableMetadata(ModuleOp module, const CompileFlags &flags) {
  DictionaryAttr plan = planOf(module);
  MemoryByKind memory = memoryByKind(module);
  int64_t tokens = flags.microBatch * flags.seq * flags.gradAccum;
  json::Array gradients;
  for (Attribute attribute : plan.getAs<ArrayAttr>("gradients"))
    gradients.push_back(describe(cast<DictionaryAttr>(attribute)));
  json::Object root{{"format", 1},
                    {"gradc", GRADC_VERSION},
                    {"model", describeModel(module)},
                    {"flags", describe(flags)},
                    {"parameters", memory.parameterCount},
                    {"fingerprint", fingerprint(module, flags.optimizer)},
                    {"flops_per_token", integer(plan, "flops") / std::max<int64_t>(1, tokens)},
                    {"flops_per_step", integer(plan, "flops")},
                    {"matmul_flops_per_step", integer(plan, "matmul_flops")},
                    {"state_bytes", integer(plan, "state_bytes")},
                    {"arena_bytes", integer(plan, "arena_bytes")},
                    {"constant_bytes", integer(plan, "constant_bytes")},
                    {"memory", describe(memory)},
                    {"kernels", kernelUses(module)},
                    {"launches", launches(module)},
                    {"explain", explanations(module)},
                    {"state", stateSlots(module)},
                    {"gradients", std::move(gradients)},
                    {"exec", execText(module)}};
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(root));
  return text;
}

} // namespace gradc::codegen
