// See ForwardGraph.h.
#include "passes/recompute/ForwardGraph.h"

#include "passes/LowCopies.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <string>

using namespace mlir;

namespace gradc::recompute {

Value baseOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto fusion = dyn_cast<nn::FusionOpInterface>(op);
    if (!fusion || fusion.getFusionRole() != nn::FusionRole::view || op->getNumOperands() != 1)
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool isPersistent(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>() || getElementTypeOrSelf(value).isInteger())
    return true;
  return makesLowCopy(op, nn::isParameter);
}

bool isStatistic(Value value) {
  constexpr int64_t timesSmaller = 4;
  Operation *op = value.getDefiningOp();
  int64_t largest = 0;
  for (Value operand : op->getOperands())
    largest = std::max(largest, nn::byteSize(operand.getType()));
  return nn::byteSize(value.getType()) * timesSmaller <= largest && !isPersistent(value) &&
         llvm::any_of(op->getOperands(), [](Value operand) { return !isPersistent(operand); });
}

ForwardGraph::ForwardGraph(func::FuncOp function) : body(function.getBody().front()) {
  ofGradient.insert(body.getArguments().back());
  for (Operation &op : body.without_terminator()) {
    bool depends =
        llvm::any_of(op.getOperands(), [&](Value value) { return ofGradient.contains(value); });
    (depends ? backwardOps : forwardOps).push_back(&op);
    if (depends)
      ofGradient.insert(op.result_begin(), op.result_end());
  }
  findNeeded();
  findStretches();
  findKinds();
}

void ForwardGraph::findNeeded() {
  for (Operation *op : backwardOps)
    for (Value operand : op->getOperands())
      if (Value base = baseOf(operand); !isBackward(base) && !isPersistent(base))
        neededValues.insert(base);
}

/// Cuts after each op behind which only one value is still read by forward ops.
void ForwardGraph::findStretches() {
  DenseMap<Operation *, size_t> position;
  for (auto [i, op] : llvm::enumerate(forwardOps))
    position[op] = i;
  DenseMap<Value, size_t> lastRead; // by forward ops, of base values
  for (auto [i, op] : llvm::enumerate(forwardOps))
    for (Value operand : op->getOperands())
      lastRead[baseOf(operand)] = i;
  ValueSet live;
  parts.emplace_back();
  for (auto [i, op] : llvm::enumerate(forwardOps)) {
    parts.back().ops.push_back(op);
    for (Value result : op->getResults())
      if (baseOf(result) == result && !isPersistent(result) && lastRead.count(result))
        live.insert(result);
    live.remove_if([&, now = i](Value value) { return lastRead.lookup(value) <= now; });
    if (live.size() != 1 || live.front().getDefiningOp() != op)
      continue;
    parts.back().output = live.front();
    parts.emplace_back();
  }
  if (parts.back().ops.empty())
    parts.pop_back();
}

namespace {

/// What tells one stretch's ops from another's, where they read from aside.
std::string describe(const Stretch &stretch) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation *op : stretch.ops) {
    stream << op->getName();
    for (Type type : op->getOperandTypes())
      stream << " " << type;
    stream << ";";
  }
  return text;
}

} // namespace

/// A layer is the shortest run of stretches that comes again right after itself, e.g. attention and
/// feed-forward; runs equal to it are joined to one stretch each and are of one kind.
void ForwardGraph::findKinds() {
  std::vector<std::string> texts;
  for (const Stretch &part : parts)
    texts.push_back(describe(part));
  std::vector<Stretch> joined;
  std::map<std::string, int> kinds;
  auto join = [&](size_t first, size_t count) {
    std::string text;
    Stretch layer;
    for (size_t i = first; i < first + count; ++i) {
      layer.ops.append(parts[i].ops);
      layer.output = parts[i].output;
      text += texts[i];
    }
    layer.kind = kinds.try_emplace(text, static_cast<int>(kinds.size())).first->second;
    joined.push_back(std::move(layer));
  };
  auto repeats = [&](size_t first, size_t count) {
    return first + 2 * count <= texts.size() &&
           std::equal(texts.begin() + first, texts.begin() + first + count,
                      texts.begin() + first + count);
  };
  constexpr size_t longest = 4; // stretches of a layer
  for (size_t i = 0; i < parts.size();) {
    size_t count = 1;
    while (count <= longest && !repeats(i, count))
      ++count;
    if (count > longest) {
      join(i++, 1);
      continue;
    }
    size_t end = i;
    for (; repeats(end, count); end += count)
      join(end, count);
    join(end, count);
    i = end + count;
  }
  if (!joined.empty() && !joined.back().output)
    joined.back().kind = -1;
  parts = std::move(joined);
}

} // namespace gradc::recompute
