// Matching of weight names, and copies that keep resident memory flat.
#include "runtime/app/Weights.h"

#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/Say.h"
#include "runtime/checkpoint/WeightSource.h"

namespace gradc::rt {
namespace {

constexpr std::string_view prefix = "transformer.";
constexpr std::string_view tiedHead = "lm_head.weight";
constexpr uint64_t chunkElements = uint64_t(1) << 22;

/// Names that model files carry beside their parameters.
bool isHarmlessBuffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

const Slot *findParameter(const Metadata &metadata, std::string_view name) {
  for (const Slot &slot : metadata.state)
    if (slot.role == SlotRole::parameter && slot.name == name)
      return &slot;
  return nullptr;
}

const Slot *matchParameter(const Metadata &metadata, const std::string &name) {
  if (const Slot *slot = findParameter(metadata, name))
    return slot;
  if (name.starts_with(prefix))
    return findParameter(metadata, name.substr(prefix.size()));
  return findParameter(metadata, std::string(prefix) + name);
}

/// The token embedding, which a tied head repeats; null when the model has its own head.
const Slot *tiedEmbedding(const Metadata &metadata) {
  if (findParameter(metadata, tiedHead))
    return nullptr;
  for (const char *name : {"wte.weight", "transformer.wte.weight", "model.embed_tokens.weight"})
    if (const Slot *slot = findParameter(metadata, name))
      return slot;
  return nullptr;
}

Status checkShape(const WeightSource &source, const StoredTensor &tensor, const Slot &slot) {
  if (tensor.shape == slot.shape)
    return Status();
  return Status::user(fmt::format("{}: {} has the shape [{}] and the model needs [{}]; compile the "
                                  "config that belongs to these weights",
                                  source.fileOf(tensor.name), tensor.name,
                                  fmt::join(tensor.shape, ", "), fmt::join(slot.shape, ", ")));
}

/// Calls use(chunk, first element, elements) for the tensor converted piece by piece.
template <typename Use> Status forChunks(const StoredTensor &tensor, Use use) {
  uint64_t count = tensor.elementCount();
  uint64_t elementBytes = dtypeBits(tensor.dtype) / 8;
  for (uint64_t first = 0; first < count; first += chunkElements) {
    uint64_t elements = std::min(chunkElements, count - first);
    StoredTensor chunk{tensor.name,
                       tensor.dtype,
                       {int64_t(elements)},
                       tensor.bytes.subspan(first * elementBytes, elements * elementBytes)};
    GRADC_RETURN_IF_ERROR(use(chunk, first, elements));
  }
  return Status();
}

/// Copies a tensor of a file, converted, to a slot of as many elements.
Status copyTensor(Session &session, const StoredTensor &tensor, const Slot &slot) {
  return session.accessFloats(slot, Access::write, [&](float *values) {
    return forChunks(tensor, [&](const StoredTensor &chunk, uint64_t first, uint64_t) {
      return toFloats(chunk, values + first);
    });
  });
}

/// Whether a tied head holds the same numbers as the embedding that was already set.
Status checkTied(Session &session, const WeightSource &source, const StoredTensor &head,
                 const Slot &embedding) {
  GRADC_RETURN_IF_ERROR(checkShape(source, head, embedding));
  std::vector<float> values;
  return session.accessFloats(embedding, Access::read, [&](const float *expected) {
    return forChunks(head, [&](const StoredTensor &chunk, uint64_t first, uint64_t elements) {
      values.resize(elements);
      GRADC_RETURN_IF_ERROR(toFloats(chunk, values.data()));
      if (std::memcmp(values.data(), expected + first, elements * sizeof(float)) != 0)
        return Status::user(
            fmt::format("{}: {} differs from {}, and this model ties them; compile a config whose "
                        "tie_word_embeddings is false",
                        source.fileOf(head.name), head.name, embedding.name));
      return Status();
    });
  });
}

} // namespace

Status loadWeights(Session &session, const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(WeightSource source, WeightSource::open(path));
  const Metadata &metadata = session.metadata();
  std::set<const Slot *> done;
  const StoredTensor *head = nullptr;
  const Slot *embedding = tiedEmbedding(metadata);
  for (const StoredTensor *tensor : source.tensors()) {
    const Slot *slot = matchParameter(metadata, tensor->name);
    if (!slot && tensor->name == tiedHead && embedding) {
      head = tensor;
      continue;
    }
    if (!slot && isHarmlessBuffer(tensor->name))
      continue;
    if (!slot)
      return Status::user(fmt::format("{}: {} is no parameter of this model; compile the config "
                                      "that belongs to these weights",
                                      source.fileOf(tensor->name), tensor->name));
    if (!done.insert(slot).second)
      return Status::user(fmt::format("{}: {} comes twice, with and without the prefix `{}`; "
                                      "remove one",
                                      source.fileOf(tensor->name), slot->name, prefix));
    GRADC_RETURN_IF_ERROR(checkShape(source, *tensor, *slot));
    GRADC_RETURN_IF_ERROR(copyTensor(session, *tensor, *slot));
  }
  for (const Slot &slot : metadata.state)
    if (slot.role == SlotRole::parameter && !done.count(&slot))
      return Status::user(fmt::format("{}: has no tensor {}; compile the config that belongs to "
                                      "these weights",
                                      path, slot.name));
  if (head)
    GRADC_RETURN_IF_ERROR(checkTied(session, source, *head, *embedding));
  return session.refreshLowParameters();
}

Expected<std::optional<Checkpoint>> openNewest(const std::string &folder,
                                               const Metadata &metadata) {
  GRADC_ASSIGN_OR_RETURN(LoadResult result, loadNewestCheckpoint(folder, metadata.fingerprint));
  for (const std::string &line : result.skipped)
    say(stderr, "warning: {}; not used\n", line);
  if (!result.newest && !result.skipped.empty())
    return Status::user(
        fmt::format("{}: none of its checkpoints is sound; choose another folder to "
                    "start afresh",
                    folder));
  return std::move(result.newest);
}

Status restoreTensors(Session &session, const Checkpoint &checkpoint, bool withOptimizer) {
  for (const Slot &slot : session.metadata().state) {
    bool wanted =
        slot.role == SlotRole::parameter || (withOptimizer && slot.role == SlotRole::optimizer);
    if (!wanted)
      continue;
    std::string name = checkpointName(slot);
    const StoredTensor *tensor = checkpoint.tensors.find(name);
    if (!tensor || tensor->shape != slot.shape)
      return Status::user(fmt::format("{}: has no tensor {} of the model's shape; resume with the "
                                      "executable that saved it",
                                      checkpoint.path, name));
    GRADC_RETURN_IF_ERROR(copyTensor(session, *tensor, slot));
  }
  return session.refreshLowParameters();
}

Status loadWeights(Session &session, const WeightOptions &options) {
  if (!options.initWeights.empty())
    return loadWeights(session, options.initWeights);
  if (options.checkpointDir.empty())
    return Status::user("expected --init-weights or --checkpoint-dir: which weights to use");
  GRADC_ASSIGN_OR_RETURN(auto checkpoint, openNewest(options.checkpointDir, session.metadata()));
  if (!checkpoint)
    return Status::user(fmt::format("{}: holds no valid checkpoint; give the folder that `train "
                                    "--checkpoint-dir` wrote",
                                    options.checkpointDir));
  return restoreTensors(session, *checkpoint, false);
}

} // namespace gradc::rt
