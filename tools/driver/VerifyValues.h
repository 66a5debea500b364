// Checks by value that passes keep the meaning of what they rewrite.
#pragma once

#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include <atomic>
#include <memory>

namespace gradc {

/// Adds an instrumentation that interprets every function before and after each pass, in f64 on the
/// same random arguments, and compares the results. Functions that a pass adds, removes or gives
/// another type are not compared. For each pass it prints to stderr how many functions it compared,
/// so that a check of nothing shows. A difference, or an op that cannot be evaluated, is an error
/// on the function, makes the pass fail where that is still possible, and sets `failed`.
///
/// Functions are read while their pass runs: turns the context's multithreading off.
void addValueVerification(mlir::PassManager &passes, std::shared_ptr<std::atomic<bool>> failed);

} // namespace gradc
