// What the programs of a training step read besides parameters and optimizer state: the batch, the
// keys of its random numbers, and the hyper-parameters.
#pragma once

#include <vector>

#include "runtime/Session.h"
#include "runtime/app/Options.h"
#include "runtime/app/RunState.h"

namespace gradc::rt {

/// Holds the tokens and targets of one step, so that each of its programs can be given them. The
/// metadata must outlive it.
class StepInputs {
public:
  explicit StepInputs(const Metadata &metadata);

  /// Takes the microbatches of step `step` from the loader. A step without a single label is a user
  /// error: there is nothing to predict in it.
  Status next(BatchLoader &loader, int64_t step);

  /// Writes tokens, targets and, where it draws random numbers, what they are keyed by into the
  /// slots of `program`. `state` is that before the step.
  Status writeBatch(Session &session, const std::string &program, const RunState &state) const;

  /// Writes the step's scalars: `rate` (the learning rate), the optimizer's and the loss scale.
  static Status writeScalars(Session &session, const TrainOptions &options, const RunState &state,
                             double rate);

private:
  Status writeRandomKeys(Session &session, const std::string &program, const RunState &state) const;

  const Metadata &metadata_;
  std::vector<int32_t> tokens_, targets_; ///< microbatch after microbatch
};

} // namespace gradc::rt
