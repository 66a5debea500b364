// The instrumentation behind --verify-values.
#include "tools/driver/VerifyValues.h"
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// Arguments and results of a function before a pass.
struct Record {
  FunctionType type;
  SmallVector<HostTensor> arguments, results;
};

/// By function name, in the module's order.
using Snapshot = llvm::MapVector<StringAttr, Record>;

class ValueVerification : public PassInstrumentation {
public:
  explicit ValueVerification(std::shared_ptr<std::atomic<bool>> failedFlag)
      : failed(std::move(failedFlag)) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isAdaptor(pass))
      return;
    Snapshot &snapshot = snapshots[{pass, op}];
    snapshot.clear();
    forEachFunction(op, [&](func::FuncOp function) { record(function, snapshot, pass); });
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto found = snapshots.find({pass, op});
    if (found == snapshots.end())
      return;
    Snapshot before = std::move(found->second);
    snapshots.erase(found);
    unsigned compared = 0, retyped = 0, added = 0;
    forEachFunction(op, [&](func::FuncOp function) {
      auto entry = before.find(function.getSymNameAttr());
      if (entry == before.end())
        ++added;
      else if (entry->second.type != function.getFunctionType())
        ++retyped;
      else
        compared += compare(function, entry->second, pass);
    });
    unsigned removed = before.size() - compared - retyped;
    llvm::errs() << "verify-values: pass '" << nameOf(pass) << "': " << compared
                 << " functions compared";
    print(retyped, " of another type");
    print(added, " new");
    print(removed, " gone or not compared");
    llvm::errs() << "\n";
  }

  void runAfterPassFailed(Pass *pass, Operation *op) override { snapshots.erase({pass, op}); }

private:
  static StringRef nameOf(Pass *pass) {
    return pass->getArgument().empty() ? pass->getName() : pass->getArgument();
  }

  /// The pass that MLIR wraps around passes on nested ops: what it does is theirs.
  static bool isAdaptor(Pass *pass) { return pass->getName().ends_with("OpToOpPassAdaptor"); }

  template <typename Function> static void forEachFunction(Operation *op, Function f) {
    op->walk<WalkOrder::PreOrder>([&](func::FuncOp function) {
      if (!function.isExternal())
        f(function);
      return WalkResult::skip();
    });
  }

  static void print(unsigned count, StringRef what) {
    if (count > 0)
      llvm::errs() << ", " << count << what;
  }

  void fail(Pass *pass) {
    *failed = true;
    signalPassFailure(pass);
  }

  void record(func::FuncOp function, Snapshot &snapshot, Pass *pass) {
    constexpr uint64_t seed = 1;
    if (!llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<RankedTensorType>)) {
      function.emitOpError("verify-values: expected tensor arguments, got: ")
          << function.getFunctionType();
      return fail(pass);
    }
    SmallVector<HostTensor> arguments = randomArguments(function, seed);
    FailureOr<SmallVector<HostTensor>> results = interpret(function, arguments);
    if (llvm::failed(results))
      return fail(pass);
    snapshot.insert({function.getSymNameAttr(),
                     {function.getFunctionType(), std::move(arguments), std::move(*results)}});
  }

  /// Whether the function could be run again; reports what differs.
  bool compare(func::FuncOp function, const Record &before, Pass *pass) {
    // Passes may add in another order, but nothing of f64's precision should be lost in that.
    constexpr Tolerances tolerances{.norm = 1e-9, .absolute = 1e-14};
    FailureOr<SmallVector<HostTensor>> results = interpret(function, before.arguments);
    if (llvm::failed(results)) {
      fail(pass);
      return false;
    }
    for (auto [i, after] : llvm::enumerate(*results)) {
      Comparison comparison = compareValues(after, before.results[i], tolerances);
      if (comparison.passed)
        continue;
      function.emitError("verify-values: pass '")
          << nameOf(pass) << "' changed result #" << i << " of @" << function.getSymName() << ": "
          << comparison.report;
      fail(pass);
    }
    return true;
  }

  llvm::DenseMap<std::pair<Pass *, Operation *>, Snapshot> snapshots;
  std::shared_ptr<std::atomic<bool>> failed;
};

} // namespace

void gradc::addValueVerification(PassManager &passes, std::shared_ptr<std::atomic<bool>> failed) {
  passes.getContext()->disableMultithreading();
  passes.addInstrumentation(std::make_unique<ValueVerification>(std::move(failed)));
}
