// Weights from safetensors files or checkpoints into a session.
#pragma once

#include <string>

#include "runtime/Session.h"
#include "runtime/app/Options.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace gradc::rt {

/// Sets every parameter from `path` (what WeightSource::open takes), converting to f32. Names match
/// exactly or with the prefix `transformer.` added or removed. Refused by name: a missing
/// parameter, a tensor that is none (buffers known to be harmless are skipped), one that comes
/// twice, one of another shape, and a copy of tied weights that differs from the original.
Status loadWeights(Session &session, const std::string &path);

/// Sets every parameter, and with `withOptimizer` every optimizer slot, from a checkpoint.
Status restoreTensors(Session &session, const Checkpoint &checkpoint, bool withOptimizer);

/// The newest sound checkpoint of `folder`; reports skipped ones on standard error.
Expected<std::optional<Checkpoint>> openNewest(const std::string &folder, const Metadata &metadata);

/// Weights for eval and generate.
Status loadWeights(Session &session, const WeightOptions &options);

} // namespace gradc::rt
