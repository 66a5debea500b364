// Reading the metadata: every field is checked for presence, type and range, because an executable
// may be damaged and the offsets end up in memory accesses.
#include "runtime/Metadata.h"

#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/StrictJson.h"

namespace gradc::rt {
namespace {

using nlohmann::json;

/// Reads fields of one object; remembers the first failure and yields empty values after it.
class Reader {
public:
  Reader(const json &object, std::string where, std::string &error)
      : object_(object), where_(std::move(where)), error_(error) {
    if (!object.is_object())
      fail("", "an object");
  }

  int64_t integer(const char *key, int64_t least = 0) {
    const json *value = find(key);
    if (value && value->is_number_unsigned() &&
        value->get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max())) {
      fail(key, "an integer of 64 bits");
      return least;
    }
    if (!value || !value->is_number_integer() || value->get<int64_t>() < least) {
      fail(key, fmt::format("an integer not below {}", least));
      return least;
    }
    return value->get<int64_t>();
  }
  /// An integer not below 0; -1 of "none".
  int64_t integerOrNone(const char *key) {
    const json *value = find(key);
    return value && *value == "none" ? -1 : integer(key);
  }
  double number(const char *key) {
    const json *value = find(key);
    if (!value || !value->is_number()) {
      fail(key, "a number");
      return 0;
    }
    return value->get<double>();
  }
  std::string string(const char *key) {
    const json *value = find(key);
    if (!value || !value->is_string()) {
      fail(key, "a string");
      return {};
    }
    return value->get<std::string>();
  }
  bool boolean(const char *key) {
    const json *value = find(key);
    if (!value || !value->is_boolean()) {
      fail(key, "true or false");
      return false;
    }
    return value->get<bool>();
  }
  const json &object(const char *key) { return container(key, json::value_t::object); }
  const json &array(const char *key) { return container(key, json::value_t::array); }

  template <std::size_t N>
  std::size_t oneOf(const char *key, const std::array<const char *, N> &names) {
    std::string word = string(key);
    for (std::size_t i = 0; i < N; ++i)
      if (word == names[i])
        return i;
    fail(key, fmt::format("a known word, not `{}`", word));
    return 0;
  }

  void fail(std::string_view key, std::string_view expected) {
    if (error_.empty())
      error_ = fmt::format("{}{}{}: expected {}", where_, where_.empty() || key.empty() ? "" : ".",
                           key, expected);
  }

private:
  const json *find(const char *key) const {
    if (!object_.is_object())
      return nullptr;
    auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const json &container(const char *key, json::value_t type) {
    static const json emptyObject = json::object(), emptyArray = json::array();
    const json *value = find(key);
    if (value && value->type() == type)
      return *value;
    bool isObject = type == json::value_t::object;
    fail(key, isObject ? "an object" : "an array");
    return isObject ? emptyObject : emptyArray;
  }

  const json &object_;
  std::string where_;
  std::string &error_;
};

constexpr std::array roleNames{"parameter", "optimizer", "low_parameter",
                               "input",     "scalar",    "output"};
constexpr std::array typeNames{"f32", "bf16", "f16", "i32", "f8e4m3", "f8e5m2"};
constexpr std::array classNames{"matrix", "embedding", "bias", "norm"};
constexpr std::array kindNames{"normal", "constant"};

/// Reads what parameters, gradients and all other slots share.
Slot readPlace(Reader &reader, int64_t spaceBytes) {
  Slot slot;
  slot.name = reader.string("name");
  slot.type = SlotType(reader.oneOf("dtype", typeNames));
  slot.offset = reader.integer("offset");
  slot.bytes = reader.integer("bytes");
  int64_t needed = byteSize(slot.type);
  for (const json &dimension : reader.array("shape")) {
    int64_t size = dimension.is_number_integer() ? dimension.get<int64_t>() : -1;
    if (size < 0 || __builtin_mul_overflow(needed, size, &needed)) {
      reader.fail("shape", "dimensions not below 0 whose product fits 64 bits");
      return slot;
    }
    slot.shape.push_back(size);
  }
  if (slot.bytes != needed)
    reader.fail("bytes", fmt::format("{} by dtype and shape", needed));
  if (slot.offset > spaceBytes || slot.bytes > spaceBytes - slot.offset || slot.offset % 4 != 0)
    reader.fail("offset", fmt::format("a place within {} bytes", spaceBytes));
  return slot;
}

Slot readState(const json &object, std::size_t index, int64_t stateBytes, std::string &error) {
  std::string where = fmt::format("state[{}]", index);
  Reader reader(object, where, error);
  Slot slot = readPlace(reader, stateBytes);
  slot.role = SlotRole(reader.oneOf("role", roleNames));
  if (slot.role == SlotRole::optimizer)
    slot.optimizerSlot = reader.string("slot");
  if (slot.role != SlotRole::parameter)
    return slot;
  slot.parameterClass = ParameterClass(reader.oneOf("class", classNames));
  slot.fanIn = reader.integer("fan_in");
  slot.fanOut = reader.integer("fan_out");
  Reader init(reader.object("init"), where + ".init", error);
  slot.init.kind = InitRule::Kind(init.oneOf("kind", kindNames));
  if (slot.init.kind == InitRule::Kind::normal)
    slot.init.deviation = init.number("std");
  else
    slot.init.value = init.number("value");
  return slot;
}

std::vector<std::string> enabledFeatures(std::string_view text) {
  std::vector<std::string> features;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.starts_with('+'))
      features.emplace_back(word.substr(1));
  }
  return features;
}

void readFlags(Reader flags, Metadata &metadata) {
  metadata.microBatch = flags.integer("micro_batch", 1);
  metadata.seq = flags.integer("seq", 1);
  metadata.gradAccum = flags.integer("grad_accum", 1);
  metadata.precision = flags.string("precision");
  metadata.optimizer = flags.string("optimizer");
  metadata.recompute = flags.string("recompute");
  metadata.mesh = flags.string("mesh");
  metadata.target = flags.string("target");
  metadata.emulate = flags.boolean("emulate");
  metadata.documentSeparator = flags.integerOrNone("document_separator");
  metadata.init = flags.string("init");
  metadata.cpuFeatures = enabledFeatures(flags.string("cpu_features"));
}

void readMemory(Reader memory, MemoryPlan &plan) {
  plan.parameters = memory.integer("parameters");
  plan.gradients = memory.integer("gradients");
  plan.optimizer = memory.integer("optimizer");
  plan.activations = memory.integer("activations");
  plan.workspace = memory.integer("workspace");
  plan.peak = memory.integer("peak");
}

} // namespace

const Slot *Metadata::find(std::string_view name) const {
  for (const Slot &slot : state)
    if (slot.name == name)
      return &slot;
  return nullptr;
}

int64_t byteSize(SlotType type) {
  switch (type) {
  case SlotType::f8e4m3:
  case SlotType::f8e5m2:
    return 1;
  case SlotType::bf16:
  case SlotType::f16:
    return 2;
  case SlotType::f32:
  case SlotType::i32:
    return 4;
  }
  return 0;
}

Expected<Metadata> parseMetadata(std::string_view text) {
  auto damaged = [](const std::string &why) {
    return Status::machine("the executable's metadata is damaged, " + why + "; compile it again");
  };
  auto parsed = parseStrictJson(text, "metadata");
  if (!parsed)
    return damaged(parsed.status().message());

  std::string error;
  Metadata metadata;
  Reader reader(*parsed, "", error);
  if (reader.integer("format") != 1)
    reader.fail("format", "1");
  Reader model(reader.object("model"), "model", error);
  metadata.family = model.string("family");
  metadata.vocab = model.integer("vocab", 1);
  metadata.maxPositions = model.integer("max_positions");
  readFlags(Reader(reader.object("flags"), "flags", error), metadata);
  metadata.parameters = reader.integer("parameters");
  metadata.fingerprint = reader.string("fingerprint");
  metadata.flopsPerToken = reader.number("flops_per_token");
  metadata.flopsPerStep = reader.number("flops_per_step");
  metadata.matmulFlopsPerStep = reader.number("matmul_flops_per_step");
  metadata.stateBytes = reader.integer("state_bytes");
  metadata.arenaBytes = reader.integer("arena_bytes");
  metadata.constantBytes = reader.integer("constant_bytes");
  readMemory(Reader(reader.object("memory"), "memory", error), metadata.memory);
  for (const json &entry : reader.array("kernels")) {
    Reader kernel(entry, "kernels", error);
    metadata.kernels.push_back({kernel.string("name"), kernel.integer("launches")});
  }
  for (const json &entry : reader.array("state"))
    metadata.state.push_back(readState(entry, metadata.state.size(), metadata.stateBytes, error));
  for (const json &entry : reader.array("gradients")) {
    Reader gradient(entry, fmt::format("gradients[{}]", metadata.gradients.size()), error);
    metadata.gradients.push_back(readPlace(gradient, metadata.arenaBytes));
    metadata.gradients.back().role = SlotRole::parameter;
  }
  if (!error.empty())
    return damaged(error);
  return metadata;
}

} // namespace gradc::rt
