// Loss over a whole file: the sum over all predictions divided by their number, never a mean of
// means.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/Session.h"
#include "runtime/data/Batches.h"

namespace gradc::rt {

struct EvalResult {
  double loss = 0;    ///< nats a token
  int64_t tokens = 0; ///< predictions counted
};

/// Called after each batch with how many are done and the result of those.
using EvalObserver = std::function<void(uint64_t batches, const EvalResult &soFar)>;

/// One pass over a file with the program `eval_loss`.
class Evaluation {
public:
  /// Opens the data; `limit` is the most batches to use, 0 for all.
  static Expected<Evaluation> open(const Metadata &metadata, const std::string &path,
                                   int64_t limit);
  uint64_t batches() const; ///< that run() goes through
  Expected<EvalResult> run(Session &session, const EvalObserver &observe = {}) const;

private:
  Evaluation(ValidationBatches batches, int64_t limit)
      : batches_(std::move(batches)), limit_(limit) {}

  ValidationBatches batches_;
  int64_t limit_;
};

/// Fills the slot `program.positions`, where a program has one, with 0, 1, 2, … a row.
Status fillPositions(Session &session, const std::string &program);

} // namespace gradc::rt
