// Builds the programs of an executable: train_step, gradients and eval_loss.
#include "passes/Accumulation.h"
#include "passes/AmaxHistories.h"
#include "passes/LowCopies.h"
#include "passes/Optimizers.h"
#include "passes/Passes.h"
#include "passes/ProgramBuilder.h"

namespace gradc {
#define GEN_PASS_DEF_TRAININGSTEPPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

class TrainingStepPass : public gradc::impl::TrainingStepPassBase<TrainingStepPass> {
public:
  using TrainingStepPassBase::TrainingStepPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    loss = module.lookupSymbol<func::FuncOp>("loss");
    lossAndGradients = module.lookupSymbol<func::FuncOp>("loss_and_gradients");
    chosen = findOptimizer(optimizer);
    if (!loss || !lossAndGradients) {
      module.emitError("expected @loss and @loss_and_gradients; run the autodiff pass first");
      return signalPassFailure();
    }
    if (!chosen) {
      module.emitError() << "expected an optimizer of " << optimizerNames()
                         << ", got: " << optimizer;
      return signalPassFailure();
    }
    for (unsigned i = 0; i < loss.getNumArguments(); ++i)
      if (auto attribute = loss.getArgAttrOfType<DictionaryAttr>(i, "nn.param"))
        parameters.push_back({loss.getArgumentTypes()[i], attribute});
    SmallVector<func::FuncOp> functions{loss, lossAndGradients};
    if (auto logits = module.lookupSymbol<func::FuncOp>("logits"))
      functions.push_back(logits);
    records = recordsOf(loss);
    lowCopies = separateLowCopies(functions, parameters.size());
    buildTrainStep(module);
    buildGradients(module);
    buildEvalLoss(module);
    if (!lowCopies.list.empty())
      buildLowParameters(module);
    tagLogits(module);
    lowCopies.make.erase();
    loss.erase();
    lossAndGradients.erase();
  }

  struct Parameter {
    Type type;
    DictionaryAttr attributes;
    StringRef name() const { return attributes.getAs<StringAttr>("name").getValue(); }
    bool decay() const {
      auto flag = attributes.getAs<BoolAttr>("decay");
      return flag ? flag.getValue() : cast<RankedTensorType>(type).getRank() >= 2;
    }
  };

  DictionaryAttr lowSlot(ProgramBuilder &program, const LowCopy &copy) {
    return program.slot("low_parameter", parameters[copy.parameter].name(), copy.part);
  }

  SmallVector<Value> addMasters(ProgramBuilder &program) {
    return llvm::map_to_vector(parameters, [&](Parameter &parameter) {
      return program.argument(parameter.type, program.slot("parameter", parameter.name()),
                              parameter.attributes);
    });
  }

  SmallVector<Value> addMastersAndCopies(ProgramBuilder &program) {
    SmallVector<Value> values = addMasters(program);
    for (const LowCopy &copy : lowCopies.list)
      values.push_back(program.argument(copy.type, lowSlot(program, copy)));
    return values;
  }

  /// The first arguments of @loss: parameters, their low copies, and records of magnitudes, which
  /// are made of `histories`.
  SmallVector<Value> addParameters(ProgramBuilder &program, AmaxHistories &histories) {
    SmallVector<Value> values = addMastersAndCopies(program);
    histories.addArguments(program);
    llvm::append_range(values, histories.largest(program));
    return values;
  }

  /// The same for a program that evaluates, where nothing is recorded: scaleByOwnMagnitudes makes
  /// it not read its records.
  SmallVector<Value> addParameters(ProgramBuilder &program) {
    SmallVector<Value> values = addMastersAndCopies(program);
    auto scalar = RankedTensorType::get({}, program.builder.getF32Type());
    for (size_t i = 0; i < records.size(); ++i)
      values.push_back(splat(program.builder, program.location(), scalar, 0));
    return values;
  }

  size_t firstInput() const { return parameters.size() + lowCopies.list.size() + records.size(); }
  Type inputType(size_t index) { return loss.getArgumentTypes()[firstInput() + index]; }
  bool isRandom() { return inputCount(loss.getFunctionType()) > 2; }
  Accumulation accumulation() { return {lossAndGradients, gradAccum, parameters.size()}; }

  /// tokens, targets and what random numbers are keyed by, with a leading dimension of microbatches
  /// for all but seed and step.
  StepInputs addTrainingInputs(ProgramBuilder &program) {
    StepInputs inputs;
    auto argument = [&](Type type, StringRef name) {
      return program.argument(type, program.ownSlot("input", name));
    };
    for (auto [i, name] : llvm::enumerate(ArrayRef<StringRef>{"tokens", "targets"}))
      inputs.batch.push_back(argument(accumulation().stacked(inputType(i)), name));
    if (!isRandom())
      return inputs;
    for (auto [i, name] : llvm::enumerate(ArrayRef<StringRef>{"seed", "step"}))
      inputs.shared.push_back(argument(inputType(2 + i), name));
    inputs.batch.push_back(argument(accumulation().stacked(inputType(4)), "first_row"));
    return inputs;
  }

  /// Global norm over all gradients, from sums of fixed chunks added in order.
  Value globalNorm(OpBuilder &b, Location loc, ValueRange gradients) {
    SmallVector<Value> sums;
    int64_t all = 0;
    for (Value gradient : gradients) {
      int64_t elements = cast<RankedTensorType>(gradient.getType()).getNumElements();
      int64_t chunks = (elements + row::flatElementsPerTask - 1) / row::flatElementsPerTask;
      auto type = RankedTensorType::get({chunks}, b.getF32Type());
      sums.push_back(SquareSumsOp::create(b, loc, type, gradient));
      all += chunks;
    }
    auto type = RankedTensorType::get({all}, b.getF32Type());
    Value list = ConcatOp::create(b, loc, type, sums, /*rows=*/true);
    return SqrtOp::create(b, loc, SumOp::create(b, loc, list));
  }

  void buildTrainStep(ModuleOp module) {
    ProgramBuilder program(module, "train_step");
    OpBuilder &b = program.builder;
    Location loc = program.location();
    AmaxHistories histories(records);
    SmallVector<Value> values = addParameters(program, histories);
    SmallVector<SmallVector<Value>> state;
    for (Parameter &parameter : parameters) {
      state.emplace_back();
      for (StringRef part : chosen->stateSlots)
        state.back().push_back(
            program.argument(parameter.type, program.slot("optimizer", parameter.name(), part)));
    }
    StepInputs inputs = addTrainingInputs(program);
    auto scalarType = RankedTensorType::get({}, b.getF32Type());
    SmallVector<Value> scalars = llvm::map_to_vector(chosen->scalars, [&](StringRef name) {
      return program.argument(scalarType, program.ownSlot("scalar", name));
    });
    Value clip = program.argument(scalarType, program.ownSlot("scalar", "clip_grad"));
    Value lossScale = addLossScale(program);

    Value valid;
    SmallVector<Value> sums = accumulation().run(program, values, inputs, lossScale, valid);
    ValueRange gradients = ValueRange(sums).slice(1, parameters.size());
    Value norm = globalNorm(b, loc, gradients);
    if (lossScale)
      norm = DivOp::create(b, loc, norm, lossScale);
    Value factor = ClipCoefficientOp::create(b, loc, norm, clip);
    if (lossScale)
      factor = DivOp::create(b, loc, factor, lossScale);
    SmallVector<Value> masters;
    for (auto [i, parameter] : llvm::enumerate(parameters)) {
      SmallVector<Value> updated = chosen->update(b, loc, values[i], gradients[i], state[i], factor,
                                                  scalars, parameter.decay());
      if (lossScale)
        skipWhereNotFinite(b, loc, norm, values[i], state[i], updated);
      masters.push_back(updated[0]);
      program.result(updated[0], program.slot("parameter", parameter.name()));
      for (auto [part, value] : llvm::zip(chosen->stateSlots, llvm::drop_begin(updated)))
        program.result(value, program.slot("optimizer", parameter.name(), part));
    }
    returnLowCopies(program, masters);
    histories.returnNext(program, ArrayRef(sums).take_back(records.size()));
    program.result(sums[0], program.ownSlot("output", "loss"));
    program.result(norm, program.ownSlot("output", "grad_norm"));
    program.result(valid, program.ownSlot("output", "valid"));
    program.finish();
  }

  /// The run-time factor of the loss, or null.
  Value addLossScale(ProgramBuilder &program) {
    if (!scaleLoss)
      return {};
    auto type = RankedTensorType::get({}, program.builder.getF32Type());
    return program.argument(type, program.ownSlot("scalar", "loss_scale"));
  }

  /// Parameter and state stay as they are where the gradients overflowed.
  static void skipWhereNotFinite(OpBuilder &b, Location loc, Value norm, Value parameter,
                                 ValueRange state, MutableArrayRef<Value> updated) {
    updated[0] = SelectFiniteOp::create(b, loc, norm, updated[0], parameter);
    for (auto [value, old] : llvm::zip(updated.drop_front(), state))
      value = SelectFiniteOp::create(b, loc, norm, value, old);
  }

  void returnLowCopies(ProgramBuilder &program, ArrayRef<Value> masters) {
    SmallVector<Value> made = inlineCall(program.builder, lowCopies.make, masters);
    for (auto [copy, value] : llvm::zip_equal(lowCopies.list, made))
      program.result(value, lowSlot(program, copy));
  }

  void buildLowParameters(ModuleOp module) {
    ProgramBuilder program(module, "low_parameters");
    returnLowCopies(program, addMasters(program));
    program.finish();
  }

  void buildGradients(ModuleOp module) {
    ProgramBuilder program(module, "gradients");
    AmaxHistories histories(records);
    SmallVector<Value> values = addParameters(program, histories);
    StepInputs inputs = addTrainingInputs(program);
    Value lossScale = addLossScale(program);
    Value valid;
    SmallVector<Value> sums = accumulation().run(program, values, inputs, lossScale, valid);
    for (auto [parameter, gradient] : llvm::zip(parameters, llvm::drop_begin(sums))) {
      if (lossScale)
        gradient = DivOp::create(program.builder, program.location(), gradient, lossScale);
      program.result(gradient, program.slot("gradient", parameter.name()));
    }
    program.result(sums[0], program.ownSlot("output", "loss"));
    program.result(valid, program.ownSlot("output", "valid"));
    program.finish();
  }

  void buildEvalLoss(ModuleOp module) {
    ProgramBuilder program(module, "eval_loss");
    SmallVector<Value> arguments = addParameters(program);
    auto unread = llvm::to_vector(ArrayRef(arguments).take_back(records.size()));
    for (auto [i, name] : llvm::enumerate(ArrayRef<StringRef>{"tokens", "targets"}))
      arguments.push_back(program.argument(inputType(i), program.ownSlot("input", name)));
    Value targets = arguments.back();
    // Nothing is random in evaluation: what random numbers are keyed by is not read.
    for (size_t i = arguments.size(); i < loss.getNumArguments(); ++i)
      arguments.push_back(
          splat(program.builder, program.location(), loss.getArgumentTypes()[i], 0));
    Value total = inlineCall(program.builder, loss, arguments)[0];
    program.function.walk([](StochasticOpInterface op) { op.makeDeterministic(); });
    scaleByOwnMagnitudes(program.function, unread);
    Value valid = CountValidOp::create(program.builder, program.location(), targets);
    program.result(total, program.ownSlot("output", "loss"));
    program.result(valid, program.ownSlot("output", "valid"));
    program.finish();
  }

  /// @logits stays as the frontend built it; its arguments and result become slots.
  void tagLogits(ModuleOp module) {
    auto logits = module.lookupSymbol<func::FuncOp>("logits");
    if (!logits)
      return;
    ProgramBuilder program(module, "logits_tagged");
    SmallVector<Value> arguments = addParameters(program);
    auto unread = llvm::to_vector(ArrayRef(arguments).take_back(records.size()));
    for (auto [i, name] : llvm::enumerate(ArrayRef<StringRef>{"tokens", "position"}))
      arguments.push_back(program.argument(logits.getArgumentTypes()[firstInput() + i],
                                           program.slot("input", ("logits." + name).str())));
    Value result = inlineCall(program.builder, logits, arguments)[0];
    scaleByOwnMagnitudes(program.function, unread);
    program.result(result, program.slot("output", "logits.logits"));
    program.finish();
    logits.erase();
    program.function.setName("logits");
  }

  func::FuncOp loss, lossAndGradients;
  const Optimizer *chosen = nullptr;
  SmallVector<Parameter> parameters;
  SmallVector<DictionaryAttr> records; ///< nn.record of each
  LowCopies lowCopies;
};

} // namespace
