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

/// `Asked`: what geometries and work depend on besides the op and its layout.
template <typename Target, typename... Asked> class KernelTable {
public:
  /// What an emitter is given: where to print and under which name, and how the
  /// op's operands lie.
  struct Emission {
    mlir::ModuleOp module;
    llvm::StringRef name;
    const Target &target;
    KernelLayout layout;
  };

  struct Family {
    llvm::StringRef opName;
    KernelGeometry (*geometry)(mlir::Operation *op, const KernelLayout &layout, Asked...);
    /// Null: the family does not count it.
    KernelWork (*work)(mlir::Operation *op, const KernelLayout &layout, Asked...);
    void (*emit)(mlir::Operation *op, Emission &to);
    /// What the family cannot make of the op; empty where it can. Null: it makes all.
    std::string (*limits)(mlir::Operation *op);
  };

  using Limits = std::string (*)(mlir::Operation *);

  template <typename Op, KernelGeometry (*geometryOf)(Op, const KernelLayout &, Asked...),
            void (*emitOp)(Op, Emission &)>
  static Family family(Limits limits = nullptr) {
    return {Op::getOperationName(),
            [](mlir::Operation *op, const KernelLayout &layout, Asked... asked) {
              return geometryOf(llvm::cast<Op>(op), layout, asked...);
            },
            nullptr, [](mlir::Operation *op, Emission &to) { emitOp(llvm::cast<Op>(op), to); },
            limits};
  }

  template <typename Op, KernelGeometry (*geometryOf)(Op, const KernelLayout &, Asked...),
            KernelWork (*workOf)(Op, const KernelLayout &, Asked...),
            void (*emitOp)(Op, Emission &)>
  static Family family(Limits limits = nullptr) {
    Family counted = family<Op, geometryOf, emitOp>(limits);
    counted.work = [](mlir::Operation *op, const KernelLayout &layout, Asked... asked) {
      return workOf(llvm::cast<Op>(op), layout, asked...);
    };
    return counted;
  }

  /// `target` as messages name it. Both outlive the table.
  KernelTable(llvm::StringRef target, llvm::ArrayRef<Family> families)
      : target(target), families(families) {}

  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op, const KernelLayout &layout,
                                           Asked... asked) const {
    const Family *family = find(op);
    if (!family)
      return mlir::failure();
    return family->geometry(op, layout, asked...);
  }

  std::optional<KernelWork> work(mlir::Operation *op, const KernelLayout &layout,
                                 Asked... asked) const {
    const Family *family = find(op);
    if (!family || !family->work)
      return std::nullopt;
    return family->work(op, layout, asked...);
  }

  /// What a family of the table cannot make of the op; empty where it can, or where there is none.
  std::string limits(mlir::Operation *op) const {
    const Family *family = familyOf(op);
    return family && family->limits ? family->limits(op) : "";
  }

  /// Emits every exec.kernel of `module` into a new module of functions with the kernels' names;
  /// `finish` is called with each when its function is there.
  llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  emit(mlir::ModuleOp module, const Target &target,
       llvm::function_ref<void(exec::KernelOp, mlir::ModuleOp)> finish = nullptr) const {
    mlir::OwningOpRef<mlir::ModuleOp> kernels = mlir::ModuleOp::create(module.getLoc());
    for (auto kernel : module.getOps<exec::KernelOp>()) {
      mlir::Operation *op = &kernel.getBody().front().front();
      const Family *family = find(op);
      if (!family)
        return mlir::failure();
      Emission to{
          *kernels, kernel.getSymName(), target, {kernel.getRowStrides(), kernel.getAlignments()}};
      family->emit(op, to);
      if (finish)
        finish(kernel, *kernels);
    }
    return kernels;
  }

private:
  /// Null where there is none.
  const Family *familyOf(mlir::Operation *op) const {
    auto found = llvm::find_if(families, [&](const Family &candidate) {
      return candidate.opName == op->getName().getStringRef();
    });
    return found == families.end() ? nullptr : found;
  }

  /// Null, with a diagnostic on the op, where no family makes it.
  const Family *find(mlir::Operation *op) const {
    const Family *family = familyOf(op);
    if (!family) {
      op->emitOpError("expected an op that the ") << target << " target has a kernel for";
      return nullptr;
    }
    if (std::string limits = this->limits(op); !limits.empty()) {
      op->emitOpError(limits);
      return nullptr;
    }
    return family;
  }

  llvm::StringRef target;
  llvm::ArrayRef<Family> families;
};

} // namespace gradc::codegen
