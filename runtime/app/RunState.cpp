// RunState to and from a checkpoint's manifest.
#include "runtime/app/RunState.h"

#include <fmt/format.h>

namespace gradc::rt {
namespace {

const char *orderName(DataOrder order) {
  return order == DataOrder::shuffled ? "shuffled" : "sequential";
}

} // namespace

Expected<RunState> readRunState(const Checkpoint &checkpoint, const Metadata &metadata,
                                const TrainOptions &options) {
  const Manifest &manifest = checkpoint.manifest;
  const auto &extra = manifest.extra;
  auto integer = [&](const char *key) -> int64_t {
    return extra.contains(key) && extra[key].is_number_integer() ? extra[key].get<int64_t>() : -1;
  };
  std::string order = extra.contains("data_order") && extra["data_order"].is_string()
                          ? extra["data_order"].get<std::string>()
                          : "";
  if (order != "shuffled" && order != "sequential")
    return Status::user(fmt::format("{}: the manifest names no data order; it was not saved by "
                                    "`train`, start afresh in another folder",
                                    checkpoint.path));
  RunState state;
  state.step = int64_t(manifest.step);
  state.dataCursor = manifest.dataCursor;
  state.seed = manifest.rngSeed;
  state.dataOrder = order == "shuffled" ? DataOrder::shuffled : DataOrder::sequential;
  // Checkpoints of before there was a loss scale have none of these.
  if (extra.contains("skipped"))
    state.skipped = integer("skipped");
  if (extra.contains("loss_scale"))
    state.lossScale = {extra["loss_scale"].is_number() ? extra["loss_scale"].get<double>() : 0.0,
                       integer("loss_scale_finite_steps")};
  bool sound = state.skipped >= 0 && state.skipped <= state.step &&
               state.lossScale.scale >= LossScale::least &&
               state.lossScale.scale <= LossScale::most && state.lossScale.finiteSteps >= 0 &&
               integer("micro_batch") > 0 && integer("seq") > 0;
  if (!sound)
    return Status::user(fmt::format("{}: its manifest is damaged (skipped, loss_scale, "
                                    "loss_scale_finite_steps, micro_batch or seq); start afresh in "
                                    "another folder, or use its weights with --init-weights",
                                    checkpoint.path));
  if (options.seedGiven && options.seed != state.seed)
    return Status::user(fmt::format("--seed {}: {} was trained with {}; drop --seed, or start "
                                    "afresh in another folder",
                                    options.seed, checkpoint.path, state.seed));
  if (options.dataOrderGiven && options.dataOrder != state.dataOrder)
    return Status::user(fmt::format("--data-order {}: {} was trained with {}; drop --data-order, "
                                    "or start afresh in another folder",
                                    orderName(options.dataOrder), checkpoint.path, order));
  int64_t microBatch = integer("micro_batch"), seq = integer("seq");
  if (microBatch != metadata.microBatch || seq != metadata.seq)
    return Status::user(fmt::format(
        "{}: was trained with microbatches of {} x {} tokens and this executable has {} x {}; "
        "compile with --micro-batch {} --seq {}, or use its weights with --init-weights",
        checkpoint.path, microBatch, seq, metadata.microBatch, metadata.seq, microBatch, seq));
  return state;
}

std::string savedPrecision(const Checkpoint &checkpoint) {
  const auto &extra = checkpoint.manifest.extra;
  return extra.contains("precision") && extra["precision"].is_string()
             ? extra["precision"].get<std::string>()
             : "";
}

Status saveRunState(Session &session, const RunState &state, const TrainOptions &options) {
  const Metadata &metadata = session.metadata();
  Manifest manifest;
  manifest.step = uint64_t(state.step);
  manifest.fingerprint = metadata.fingerprint;
  manifest.dataCursor = state.dataCursor;
  manifest.rngSeed = state.seed;
  manifest.extra["precision"] = metadata.precision;
  manifest.extra["data_order"] = orderName(state.dataOrder);
  manifest.extra["micro_batch"] = metadata.microBatch;
  manifest.extra["seq"] = metadata.seq;
  manifest.extra["skipped"] = state.skipped;
  manifest.extra["loss_scale"] = state.lossScale.scale;
  manifest.extra["loss_scale_finite_steps"] = state.lossScale.finiteSteps;
  auto views = session.parameterViews(true);
  return saveCheckpoint(options.checkpointDir, manifest, views, unsigned(options.keep));
}

} // namespace gradc::rt
