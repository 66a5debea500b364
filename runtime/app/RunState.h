// What a training run is besides its tensors: how far it is and where in the data; saved in
// checkpoints and read back so that a resumed run goes on bit for bit.
#pragma once

#include "runtime/Session.h"
#include "runtime/app/Options.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace gradc::rt {

struct RunState {
  int64_t step = 0;        ///< optimizer steps done
  uint64_t dataCursor = 0; ///< microbatches consumed
  uint64_t seed = 42;
  DataOrder dataOrder = DataOrder::shuffled;
  int64_t skipped = 0; ///< steps whose update was skipped: they do not advance the schedule
  LossScale lossScale;

  /// Updates applied.
  int64_t updates() const { return step - skipped; }
};

/// The state in a checkpoint. The seed and the data order are the checkpoint's; a user status when
/// the command line gives others, or when the batch's shape has changed, because then the data
/// would not go on where it stopped.
Expected<RunState> readRunState(const Checkpoint &checkpoint, const Metadata &metadata,
                                const TrainOptions &options);

/// The --precision of the executable that saved it; empty in checkpoints of before it was noted.
std::string savedPrecision(const Checkpoint &checkpoint);

Status saveRunState(Session &session, const RunState &state, const TrainOptions &options);

} // namespace gradc::rt
