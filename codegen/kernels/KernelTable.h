// The kernels that a target can make: a table of families, each with its geometry, what its
// launches move and compute, and its emitter. A target lists its families in one place
// (codegen/cpu/KernelFamilies.cpp, codegen/gpu/ likewise).
#pragma once

#include "ir/Exec.h"
#include "ir/KernelLibrary.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>

namespace gradc::codegen {

/// `Asked`: what geometries depend on besides the op and its strides.
template <typename Target, typename... Asked> class KernelTable {
public:
  /// What an emitter is given: where to print and under which name, and the op's row strides.
  struct Emission {
    mlir::ModuleOp module;
    llvm::StringRef name;
    const Target &target;
    llvm::ArrayRef<int64_t> strides;
  };

  struct Family {
    llvm::StringRef opName;
    KernelGeometry (*geometry)(mlir::Operation *op, llvm::ArrayRef<int64_t> strides, Asked...);
    /// Null: the family does not count it.
    KernelWork (*work)(mlir::Operation *op, llvm::ArrayRef<int64_t> strides);
    void (*emit)(mlir::Operation *op, Emission &to);
    /// What the family cannot make of the op; empty where it can. Null: it makes all.
    std::string (*limits)(mlir::Operation *op, llvm::ArrayRef<int64_t> strides);
  };

  using Limits = std::string (*)(mlir::Operation *, llvm::ArrayRef<int64_t>);

  template <typename Op, KernelGeometry (*geometryOf)(Op, llvm::ArrayRef<int64_t>, Asked...),
            void (*emitOp)(Op, Emission &)>
  static Family family(Limits limits = nullptr) {
    return {Op::getOperationName(),
            [](mlir::Operation *op, llvm::ArrayRef<int64_t> strides, Asked... asked) {
              return geometryOf(llvm::cast<Op>(op), strides, asked...);
            },
            nullptr, [](mlir::Operation *op, Emission &to) { emitOp(llvm::cast<Op>(op), to); },
            limits};
  }

  template <typename Op, KernelGeometry (*geometryOf)(Op, llvm::ArrayRef<int64_t>, Asked...),
            KernelWork (*workOf)(Op, llvm::ArrayRef<int64_t>), void (*emitOp)(Op, Emission &)>
  static Family family(Limits limits = nullptr) {
    Family counted = family<Op, geometryOf, emitOp>(limits);
    counted.work = [](mlir::Operation *op, llvm::ArrayRef<int64_t> strides) {
      return workOf(llvm::cast<Op>(op), strides);
    };
    return counted;
  }

  /// `target` as messages name it. Both outlive the table.
  KernelTable(llvm::StringRef target, llvm::ArrayRef<Family> families)
      : target(target), families(families) {}

  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op, llvm::ArrayRef<int64_t> strides,
                                           Asked... asked) const {
    const Family *family = find(op, strides);
    if (!family)
      return mlir::failure();
    return family->geometry(op, strides, asked...);
  }

  std::optional<KernelWork> work(mlir::Operation *op, llvm::ArrayRef<int64_t> strides) const {
    const Family *family = find(op, strides);
    if (!family || !family->work)
      return std::nullopt;
    return family->work(op, strides);
  }

  /// Emits every exec.kernel of `module` into a new module of functions with the kernels' names;
  /// `finish` is called with each when its function is there.
  llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  emit(mlir::ModuleOp module, const Target &target,
       llvm::function_ref<void(exec::KernelOp, mlir::ModuleOp)> finish = nullptr) const {
    mlir::OwningOpRef<mlir::ModuleOp> kernels = mlir::ModuleOp::create(module.getLoc());
    for (auto kernel : module.getOps<exec::KernelOp>()) {
      mlir::Operation *op = &kernel.getBody().front().front();
      const Family *family = find(op, kernel.getRowStrides());
      if (!family)
        return mlir::failure();
      Emission to{*kernels, kernel.getSymName(), target, kernel.getRowStrides()};
      family->emit(op, to);
      if (finish)
        finish(kernel, *kernels);
    }
    return kernels;
  }

private:
  /// Null, with a diagnostic on the op, where no family makes it.
  const Family *find(mlir::Operation *op, llvm::ArrayRef<int64_t> strides) const {
    auto found = llvm::find_if(families, [&](const Family &candidate) {
      return candidate.opName == op->getName().getStringRef();
    });
    if (found == families.end()) {
      op->emitOpError("expected an op that the ") << target << " target has a kernel for";
      return nullptr;
    }
    if (std::string limits = found->limits ? found->limits(op, strides) : ""; !limits.empty()) {
      op->emitOpError(limits);
      return nullptr;
    }
    return found;
  }

  llvm::StringRef target;
  llvm::ArrayRef<Family> families;
};

} // namespace gradc::codegen
