// Computes logits, loss and their gradients a chunk of rows at a time.
//
// Every chunk reads the whole weight and adds to the whole of its gradient, so more chunks than the
// bound on the logits asks for would only cost time. Chunks of equal size are equal kernels. Sizes
// follow from shapes and flags alone: results do not depend on the number of threads.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/recompute/Rematerialise.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace gradc {
#define GEN_PASS_DEF_CHUNKLOSSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// Bytes of a chunk's logits in f32, at most, where the pass chooses.
constexpr int64_t mostBytes = int64_t{64} << 20;

/// Consecutive rows: `size` in each chunk, in the last what is left.
struct Chunks {
  int64_t rows = 0, size = 0;

  int64_t count() const { return llvm::divideCeilSigned(rows, size); }
  int64_t begin(int64_t chunk) const { return chunk * size; }
  int64_t length(int64_t chunk) const { return std::min(size, rows - begin(chunk)); }
};

/// The fewest chunks within the bound, or of the rows allowed whatever they take; rather up to
/// twice as many where those are equal.
Chunks chooseChunks(RowSpace logits, int64_t allowedRows) {
  constexpr int64_t bytesOfLogit = 4;
  int64_t most = std::max({mostBytes / (logits.columns * bytesOfLogit), allowedRows,
                           llvm::divideCeilSigned(logits.rows, mostLossChunks)});
  int64_t fewest = llvm::divideCeilSigned(logits.rows, most);
  for (int64_t count = fewest; count < std::min(2 * fewest, mostLossChunks + 1); ++count)
    if (logits.rows % count == 0)
      return {logits.rows, logits.rows / count};
  return {logits.rows, llvm::divideCeilSigned(logits.rows, fewest)};
}

/// Prints the ops of all chunks in front of the op that they replace.
class ChunkBuilder {
public:
  ChunkBuilder(Operation *op, Chunks chunks) : builder(op), loc(op->getLoc()), chunks(chunks) {}

  /// The chunk's rows: a view.
  Value part(Value whole, int64_t chunk) {
    auto type = cast<RankedTensorType>(whole.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.front() = chunks.length(chunk);
    return builder.createOrFold<SliceOp>(loc, type.clone(shape), whole, chunks.begin(chunk),
                                         /*rows=*/true);
  }

  Value join(ArrayRef<Value> parts, Type type) {
    return builder.createOrFold<ConcatOp>(loc, type, parts, /*rows=*/true);
  }

  /// The chunk's logits; `op` is the loss or its gradient.
  template <typename Op> MatmulOp logits(Op op, Value input) {
    return MatmulOp::create(builder, loc, input, op.getWeight(), /*transposeLhs=*/false,
                            op.getTransposeWeight(), op.getTf32());
  }

  CrossEntropyOp loss(Value logits, Value targets) {
    auto perRow =
        RankedTensorType::get({rowSpaceOf(logits.getType()).rows, 1}, builder.getF32Type());
    return CrossEntropyOp::create(builder, loc, perRow, perRow, logits, targets);
  }

  void expand(LinearCrossEntropyOp op) {
    SmallVector<Value> losses;
    for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
      Value scores = logits(op, part(op.getInput(), chunk));
      losses.push_back(loss(scores, part(op.getTargets(), chunk)).getLoss());
    }
    op.replaceAllUsesWith(join(losses, op.getType()));
    op.erase();
  }

  void expand(LinearCrossEntropyGradOp op) {
    bool isAgain = op.getLoss().use_empty(); // the forward has computed these logits before
    bool transposed = op.getTransposeWeight();
    Type inputSums = getElementTypeOrSelf(op.getInputGradient());
    auto sums = cast<RankedTensorType>(op.getWeight().getType()).clone(builder.getF32Type());
    Value weightGradient = op.getAccumulator();
    SmallVector<Value> losses, inputGradients;
    for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
      Value input = part(op.getInput(), chunk), targets = part(op.getTargets(), chunk);
      MatmulOp scores = logits(op, input);
      if (isAgain)
        scores->setDiscardableAttr(recompute::recomputedAttr, builder.getUnitAttr());
      CrossEntropyOp forward = loss(scores, targets);
      losses.push_back(forward.getLoss());
      Value gradient =
          CrossEntropyGradOp::create(builder, loc, scores.getType(), part(op.getGradient(), chunk),
                                     scores, targets, forward.getLse());
      inputGradients.push_back(MatmulOp::create(
          builder, loc, cast<RankedTensorType>(input.getType()).clone(inputSums), gradient,
          op.getWeight(), Value(), /*lhs_scale=*/Value(), /*rhs_scale=*/Value(),
          /*transpose_lhs=*/false, !transposed, op.getTf32()));
      Value left = transposed ? gradient : input, right = transposed ? input : gradient;
      weightGradient = MatmulOp::create(builder, loc, sums, left, right, weightGradient,
                                        /*lhs_scale=*/Value(), /*rhs_scale=*/Value(),
                                        /*transpose_lhs=*/true, false, op.getTf32());
    }
    op.getInputGradient().replaceAllUsesWith(join(inputGradients, op.getInputGradient().getType()));
    op.getWeightGradient().replaceAllUsesWith(
        castTo(builder, loc, weightGradient, getElementTypeOrSelf(op.getWeightGradient())));
    op.getLoss().replaceAllUsesWith(join(losses, op.getLoss().getType()));
    op.erase();
  }

private:
  OpBuilder builder;
  Location loc;
  Chunks chunks;
};

class ChunkLossPass : public gradc::impl::ChunkLossPassBase<ChunkLossPass> {
public:
  using ChunkLossPassBase::ChunkLossPassBase;

private:
  void runOnOperation() override {
    if (rows < -1) {
      getOperation().emitError() << "expected -1 or more rows of a chunk, got: " << rows.getValue();
      return signalPassFailure();
    }
    SmallVector<std::string> lines;
    getOperation().walk([&](CrossEntropyOp op) {
      RowSpace logits = rowSpaceOf(op.getLogits().getType());
      lines.push_back(shapeOf(logits) +
                      " whole: no product of its operands' type that the loss alone reads");
    });
    getOperation().walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op).Case<LinearCrossEntropyOp, LinearCrossEntropyGradOp>(
          [&](auto loss) {
            Chunks chunks = chunksOf(loss.getLogitsSpace());
            lines.push_back(
                describe(loss.getLogitsSpace(), chunks, getElementTypeOrSelf(loss.getInput())));
            ChunkBuilder(loss, chunks).expand(loss);
          });
    });
    if (!lines.empty())
      explain(getOperation(), "loss", lines);
  }

  Chunks chunksOf(RowSpace logits) const {
    if (rows < 0)
      return chooseChunks(logits, allowedRows);
    return {logits.rows, rows == 0 ? logits.rows : std::min<int64_t>(rows, logits.rows)};
  }

  static std::string shapeOf(RowSpace logits) {
    return "logits " + std::to_string(logits.rows) + " x " + std::to_string(logits.columns);
  }

  /// How many chunks and why, on one line.
  std::string describe(RowSpace logits, Chunks chunks, Type type) const {
    std::string line = shapeOf(logits);
    int64_t count = chunks.count(), last = chunks.length(count - 1);
    int64_t bytesOfRow = logits.columns * type.getIntOrFloatBitWidth() / 8;
    if (count == 1) {
      line += " whole: " + mebibytes(logits.rows * bytesOfRow);
    } else {
      line += " in " + std::to_string(count) + " chunks of " + std::to_string(chunks.size) +
              " rows" + (last == chunks.size ? "" : ", the last of " + std::to_string(last)) +
              ": " + mebibytes(chunks.size * bytesOfRow) + " at a time instead of " +
              mebibytes(logits.rows * bytesOfRow);
    }
    if (rows >= 0)
      return line + " (as asked for)";
    std::string orRows = allowedRows > 1 ? " or " + std::to_string(allowedRows) + " rows" : "";
    return line + " (auto: at most " + mebibytes(mostBytes) + " as f32" + orRows + ")";
  }
};

} // namespace
