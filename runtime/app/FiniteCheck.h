// Numbers that stopped being numbers: when to end a run, and which tensor was the first.
#pragma once

#include "runtime/Session.h"

namespace gradc::rt {

/// A run ends after so many steps in a row whose loss or gradient norm is not finite.
inline constexpr int64_t nonFiniteStepLimit = 3;

/// Counts steps that are not finite.
class FiniteGuard {
public:
  /// A user status at the limit.
  Status note(int64_t step, double loss, double gradNorm);
  bool lastWasFinite() const { return inARow_ == 0; }

private:
  int64_t inARow_ = 0;
};

/// Runs the program `gradients` on the batch in train_step's inputs, whose copy must already be in
/// those of `gradients`. A user status names the first tensor that is not finite, in the order of
/// computation: a parameter, the loss, or the gradient made first.
Status findNonFinite(Session &session, int64_t step);

} // namespace gradc::rt
