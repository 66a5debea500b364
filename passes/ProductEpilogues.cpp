// Makes a cluster part of the product before it, where it is what the target's library does to a
// result as it writes it.
#include "ir/Explanation.h"
#include "passes/EpilogueProducts.h"
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_PRODUCTEPILOGUESPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// A cluster as the steps of an epilogue. Values of the cluster's body are those that it gives;
/// bias and aux are what the cluster is given.
class ClusterSteps {
public:
  ClusterSteps(FusedOp cluster, Value product) : cluster(cluster), product(product) {
    auto inputs = cluster.getInputs();
    passed = bodyOf(llvm::find(inputs, product) - inputs.begin());
  }

  /// False where the cluster does something else as well.
  bool read() {
    Block &body = cluster.getBody().front();
    for (Operation &op : body.without_terminator()) {
      auto step = dyn_cast<EpilogueOpInterface>(op);
      std::optional<EpilogueStep> kind = step ? step.getEpilogueStep() : std::nullopt;
      if (!kind || op.getOperand(0) != passed || !take(*kind, op))
        return false;
    }
    return llvm::all_of(body.getTerminator()->getOperands(), [&](Value given) {
      return given == passed || (gelu && bias && given == geluInput);
    });
  }

  Epilogue kind(bool keepsInput) const {
    if (aux)
      return Epilogue::GeluGradient;
    if (!gelu)
      return Epilogue::Bias;
    if (bias)
      return keepsInput ? Epilogue::GeluAuxBias : Epilogue::GeluBias;
    return keepsInput ? Epilogue::GeluAux : Epilogue::Gelu;
  }

  bool givesInput() {
    return gelu && bias &&
           llvm::is_contained(cluster.getBody().front().getTerminator()->getOperands(), geluInput);
  }
  bool isBareGelu() const { return gelu && !bias; }

  /// Replaces what the cluster gives.
  void replaceBy(EpilogueMatmulOp made) {
    ValueRange given = cluster.getBody().front().getTerminator()->getOperands();
    for (auto [value, result] : llvm::zip(given, cluster.getResults()))
      result.replaceAllUsesWith(value == passed ? made.getResult() : made.getExtra());
    cluster.erase();
  }

  Value bias, aux;

private:
  bool take(EpilogueStep step, Operation &op) {
    switch (step) {
    case EpilogueStep::addBias:
      if (bias || gelu || aux)
        return false;
      bias = given(op.getOperand(1));
      break;
    case EpilogueStep::gelu:
      if (gelu || aux)
        return false;
      gelu = true;
      geluInput = passed;
      break;
    case EpilogueStep::geluGradient:
      if (bias || gelu || aux)
        return false;
      aux = given(op.getOperand(1));
      break;
    default:
      return false;
    }
    passed = op.getResult(0);
    return step == EpilogueStep::gelu || bias || aux;
  }

  Value bodyOf(int64_t input) { return cluster.getBody().front().getArgument(input); }
  /// What the cluster is given for a value of its body; null for one that it makes, and for the
  /// product itself.
  Value given(Value inner) {
    auto argument = dyn_cast<BlockArgument>(inner);
    Value outer = argument ? cluster.getInputs()[argument.getArgNumber()] : Value();
    return outer == product ? Value() : outer;
  }

  FusedOp cluster;
  Value product, passed, geluInput;
  bool gelu = false;
};

class ProductEpiloguesPass : public gradc::impl::ProductEpiloguesPassBase<ProductEpiloguesPass> {
public:
  explicit ProductEpiloguesPass(const KernelLibrary &library) : library(library) {}
  ProductEpiloguesPass(const ProductEpiloguesPass &other)
      : ProductEpiloguesPassBase(other), library(other.library) {}

private:
  void runOnOperation() override {
    SmallVector<FusedOp> clusters;
    getOperation().walk([&](FusedOp cluster) { clusters.push_back(cluster); });
    Tally lines;
    for (FusedOp cluster : clusters)
      if (std::optional<Epilogue> kind = absorb(cluster))
        lines.add(("in a product: " + stringifyEpilogue(*kind)).str());
    if (SmallVector<std::string> said = lines.lines(); !said.empty())
      explain(getOperation(), "epilogues", said);
  }

  /// Which epilogue the cluster became; none where it stays.
  std::optional<Epilogue> absorb(FusedOp cluster) {
    for (Value input : cluster.getInputs()) {
      auto product = input.getDefiningOp<ProductOpInterface>();
      if (!product || product->getBlock() != cluster->getBlock() || product.getAccumulator())
        continue;
      if (std::optional<Epilogue> kind = join(product, cluster))
        return kind;
    }
    return std::nullopt;
  }

  std::optional<Epilogue> join(ProductOpInterface product, FusedOp cluster) {
    Value result = product->getResult(0);
    ClusterSteps steps(cluster, result);
    if (!steps.read())
      return std::nullopt;
    // Who else reads the product reads what a bare GELU is of, which the library can keep.
    bool isKept = !result.hasOneUse();
    if (isKept && (!steps.isBareGelu() || !standsBeforeOthers(cluster, result)))
      return std::nullopt;
    bool keepsInput = isKept || steps.givesInput();
    OpBuilder builder(cluster);
    EpilogueChange change{steps.kind(keepsInput), steps.bias, steps.aux,
                          keepsInput ? result.getType() : Type()};
    EpilogueMatmulOp made = withEpilogue(builder, product, change, library);
    if (!made)
      return std::nullopt;
    steps.replaceBy(made);
    if (isKept)
      result.replaceAllUsesWith(made.getExtra());
    product->erase();
    return change.kind;
  }

  static bool standsBeforeOthers(FusedOp cluster, Value product) {
    return llvm::all_of(product.getUsers(), [&](Operation *user) {
      Operation *there = cluster->getBlock()->findAncestorOpInBlock(*user);
      return there && (there == cluster || cluster->isBeforeInBlock(there));
    });
  }

  const KernelLibrary &library;
};

} // namespace

std::unique_ptr<Pass> gradc::createProductEpiloguesPass(const KernelLibrary &library) {
  return std::make_unique<ProductEpiloguesPass>(library);
}
