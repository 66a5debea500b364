// What passes decided and why, in lines for people: kept in the attribute `nn.explain` of a module
// or function, by topic, and shown by `gradc explain`.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace gradc {

/// Sets the lines of a topic.
void explain(mlir::Operation *holder, llvm::StringRef topic, llvm::ArrayRef<std::string> lines);

/// Calls `visit(topic, lines)` for each topic, in the order of their names.
void forEachExplanation(
    mlir::Operation *holder,
    llvm::function_ref<void(llvm::StringRef, llvm::ArrayRef<mlir::Attribute>)> visit);

/// Copies a topic from one holder to another, where it has it.
void copyExplanation(mlir::Operation *from, mlir::Operation *to, llvm::StringRef topic);

/// "49.12 MiB", as such lines have sizes.
std::string mebibytes(int64_t bytes);

/// Lines of which many are equal, as one line each: "12 x …", in the order of their first.
class Tally {
public:
  void add(const std::string &line) { ++counts[line]; }
  llvm::SmallVector<std::string> lines() const;

private:
  llvm::MapVector<std::string, int, std::map<std::string, unsigned>> counts;
};

} // namespace gradc
