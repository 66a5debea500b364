// Keeps weights in the panels that products multiply, as state that the step makes anew.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/ProgramBuilder.h"

namespace gradc {
#define GEN_PASS_DEF_WEIGHTPANELSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

StringRef text(DictionaryAttr slot, StringRef key) {
  auto attribute = slot.getAs<StringAttr>(key);
  return attribute ? attribute.getValue() : StringRef();
}

DictionaryAttr slotOfArgument(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), "nn.slot");
}

/// A parameter, or the copy of one in a narrow type: what products read as a whole.
bool holdsWeight(DictionaryAttr slot) {
  StringRef role = text(slot, "role");
  return role == "parameter" || (role == "low_parameter" && text(slot, "slot").empty());
}

class WeightPanelsPass : public gradc::impl::WeightPanelsPassBase<WeightPanelsPass> {
public:
  explicit WeightPanelsPass(const KernelLibrary &library) : library(library) {}
  WeightPanelsPass(const WeightPanelsPass &other)
      : WeightPanelsPassBase(other), library(other.library) {}

private:
  /// The panels of one weight, of one layout each.
  struct Weight {
    RankedTensorType type;
    DictionaryAttr parameter; ///< nn.param, where the weight is one
    SmallVector<PanelsAttr> layouts;
    RankedTensorType panelsType(PanelsAttr layout) const {
      return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    }
  };

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      collect(function);
    if (weights.empty())
      return gradc::explain(getOperation(), "panels", {"no product reads a weight in panels"});
    for (auto &[slot, weight] : weights) // uses have no order of their own
      llvm::stable_sort(weight.layouts, [](PanelsAttr a, PanelsAttr b) {
        return std::pair(a.getTransposed(), a.getTf32()) <
               std::pair(b.getTransposed(), b.getTf32());
      });
    for (func::FuncOp function : functions)
      readPanels(function);
    for (func::FuncOp function : functions)
      returnPanels(function, /*onlyUpdated=*/true);
    returnPanels(programOfCopies(), /*onlyUpdated=*/false);
    describe();
    dropUnreadCopies();
  }

  /// The layout in which the product that reads a weight here takes panels, or null.
  PanelsAttr layoutOf(OpOperand &use) {
    auto reader = dyn_cast<PanelsOpInterface>(use.getOwner());
    if (!reader || reader.getPanelsOperand() != &use)
      return {};
    return cast_if_present<PanelsAttr>(library.panelsOf(reader));
  }

  void collect(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      DictionaryAttr slot = slotOfArgument(argument);
      if (!slot || !holdsWeight(slot))
        continue;
      for (OpOperand &use : argument.getUses()) {
        PanelsAttr layout = layoutOf(use);
        if (!layout)
          continue;
        Weight &weight = weights[slot];
        weight.type = cast<RankedTensorType>(argument.getType());
        weight.parameter =
            function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), "nn.param");
        if (!llvm::is_contained(weight.layouts, layout))
          weight.layouts.push_back(layout);
      }
    }
  }

  DictionaryAttr panelsSlot(DictionaryAttr weight, PanelsAttr layout) {
    Builder b(&getContext());
    std::string part = layout.getTransposed() ? "panels_transposed" : "panels";
    if (layout.getTf32())
      part += "_tf32";
    return b.getDictionaryAttr({b.getNamedAttr("role", b.getStringAttr("low_parameter")),
                                b.getNamedAttr("name", weight.get("name")),
                                b.getNamedAttr("slot", b.getStringAttr(part))});
  }

  /// Products read panels, which become arguments behind the weights.
  void readPanels(func::FuncOp function) {
    unsigned end = 0; // of the weights
    for (BlockArgument argument : function.getArguments())
      if (DictionaryAttr slot = slotOfArgument(argument);
          slot && (text(slot, "role") == "parameter" || text(slot, "role") == "low_parameter"))
        end = argument.getArgNumber() + 1;
    SmallVector<BlockArgument> arguments(function.getArguments());
    for (BlockArgument argument : arguments) {
      auto weight = weights.find(slotOfArgument(argument));
      if (weight == weights.end())
        continue;
      for (PanelsAttr layout : weight->second.layouts) {
        SmallVector<OpOperand *> uses;
        for (OpOperand &use : argument.getUses())
          if (layoutOf(use) == layout)
            uses.push_back(&use);
        if (uses.empty())
          continue;
        Value panels = addArgument(function, end++, weight->second.panelsType(layout),
                                   panelsSlot(weight->first, layout));
        for (OpOperand *use : uses)
          use->set(panels);
        products += static_cast<int64_t>(uses.size());
      }
    }
  }

  static Value addArgument(func::FuncOp function, unsigned at, Type type, DictionaryAttr slot,
                           DictionaryAttr parameter = {}) {
    Builder b(function.getContext());
    SmallVector<NamedAttribute> attributes{b.getNamedAttr("nn.slot", slot)};
    if (parameter)
      attributes.push_back(b.getNamedAttr("nn.param", parameter));
    (void)function.insertArgument(at, type, b.getDictionaryAttr(attributes), function.getLoc());
    return function.getArgument(at);
  }

  /// The number of the result of this slot; none where the function does not return it.
  static std::optional<unsigned> resultOf(func::FuncOp function, DictionaryAttr slot) {
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (function.getResultAttr(i, "nn.slot") == slot)
        return i;
    return std::nullopt;
  }

  /// A function that gives a weight a new value makes its panels of it, right behind.
  void returnPanels(func::FuncOp function, bool onlyUpdated) {
    Operation *end = function.getBody().front().getTerminator();
    for (auto &[slot, weight] : weights) {
      Value value;
      if (std::optional<unsigned> result = resultOf(function, slot))
        value = end->getOperand(*result);
      else if (!onlyUpdated)
        value =
            addArgument(function, function.getNumArguments(), weight.type, slot, weight.parameter);
      if (!value || resultOf(function, panelsSlot(slot, weight.layouts.front())))
        continue;
      SmallVector<Type> types;
      for (PanelsAttr layout : weight.layouts)
        types.push_back(weight.panelsType(layout));
      OpBuilder builder(end);
      if (Operation *maker = value.getDefiningOp())
        builder.setInsertionPointAfter(maker);
      auto pack = PackPanelsOp::create(builder, function.getLoc(), types, value);
      for (auto [layout, panels] : llvm::zip_equal(weight.layouts, pack.getResults())) {
        NamedAttribute attribute = builder.getNamedAttr("nn.slot", panelsSlot(slot, layout));
        (void)function.insertResult(function.getNumResults(), panels.getType(),
                                    builder.getDictionaryAttr(attribute));
        end->insertOperands(end->getNumOperands(), panels);
      }
    }
  }

  /// The program that makes copies of weights that were loaded; made where the module has none.
  func::FuncOp programOfCopies() {
    constexpr StringRef name = "low_parameters";
    if (auto program = getOperation().lookupSymbol<func::FuncOp>(name))
      return program;
    ProgramBuilder program(getOperation(), name);
    program.finish();
    return program.function;
  }

  /// What memory holds in panels, and instead of what.
  void describe() {
    int64_t bytes = 0, plain = 0, layouts = 0;
    for (auto &[slot, weight] : weights) {
      plain += byteSize(weight.type);
      for (PanelsAttr layout : weight.layouts) {
        bytes += byteSize(weight.panelsType(layout));
        ++layouts;
      }
    }
    gradc::explain(getOperation(), "panels",
                   {std::to_string(weights.size()) + " weights of " + mebibytes(plain) + " in " +
                    std::to_string(layouts) + " orders of panels, " + mebibytes(bytes) +
                    ": packed once a step for " + std::to_string(products) +
                    " products of the programs, which pack them no more"});
  }

  /// Narrow copies that only panels are made of are no state any more.
  void dropUnreadCopies() {
    for (auto &[slot, weight] : weights)
      if (text(slot, "role") == "low_parameter" && !isRead(slot))
        for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
          drop(function, slot);
  }

  bool isRead(DictionaryAttr slot) {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      for (BlockArgument argument : function.getArguments())
        if (slotOfArgument(argument) == slot && !argument.use_empty())
          return true;
    return false;
  }

  static void drop(func::FuncOp function, DictionaryAttr slot) {
    if (std::optional<unsigned> result = resultOf(function, slot)) {
      function.getBody().front().getTerminator()->eraseOperand(*result);
      (void)function.eraseResult(*result);
    }
    for (unsigned i = function.getNumArguments(); i-- > 0;)
      if (function.getArgAttr(i, "nn.slot") == slot)
        (void)function.eraseArgument(i);
  }

  const KernelLibrary &library;
  llvm::MapVector<DictionaryAttr, Weight> weights; ///< by their slots
  int64_t products = 0;
};

} // namespace

std::unique_ptr<Pass> gradc::createWeightPanelsPass(const KernelLibrary &library) {
  return std::make_unique<WeightPanelsPass>(library);
}
