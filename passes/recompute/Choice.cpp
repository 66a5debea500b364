// See Choice.h.
#include "passes/recompute/Choice.h"
#include "passes/recompute/MinCut.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace gradc::recompute {

namespace {

/// Levels of a model, about: each is planned when a budget is looked for.
constexpr int mostLevels = 24;
/// A layer's values of which every combination is tried; of more, the largest.
constexpr size_t mostDroppable = 12;

int64_t bytesOf(Value value) { return nn::byteSize(value.getType()); }

/// Whether an op is worth keeping the result of: matrix products and attention.
bool isCostly(Operation *op) {
  auto cost = dyn_cast<nn::CostOpInterface>(op);
  return cost && cost.isModelFlops();
}

std::string nameOf(const Stretch &stretch) {
  if (auto name = dyn_cast<NameLoc>(stretch.ops.front()->getLoc()))
    return name.getName().str();
  return stretch.ops.front()->getName().getStringRef().str();
}

} // namespace

Choices::Choices(const ForwardGraph &graph, MachineSpeed speed)
    : graph(graph), speed(speed), cut(freeCut()) {
  for (const Stretch &stretch : graph.stretches())
    if (stretch.kind == static_cast<int>(fronts.size()))
      fronts.push_back(frontOf(stretch));
  buildLevels();
}

/// Outputs of layers that come several times: kept, whatever the cut of bytes alone would say. From
/// a product's result, as large as the residual stream that it is added to, the backward's first op
/// would compute all layers' streams in a chain, and they would be there together.
ValueSet Choices::layerOutputs() const {
  std::map<int, int> count;
  for (const Stretch &stretch : graph.stretches())
    ++count[stretch.kind];
  ValueSet outputs;
  for (const Stretch &stretch : graph.stretches())
    if (stretch.kind >= 0 && count[stretch.kind] > 1)
      outputs.insert(stretch.output);
  return outputs;
}

ValueSet Choices::freeCut() const {
  ValueSet outputs = layerOutputs();
  MinCut problem;
  DenseMap<Value, int> nodes;
  std::vector<Value> values;
  for (Operation *op : graph.forward())
    for (Value result : op->getResults()) {
      if (baseOf(result) != result || isPersistent(result) || isStatistic(result) ||
          outputs.contains(result))
        continue;
      int node = problem.addNode(bytesOf(result));
      nodes[result] = node;
      values.push_back(result);
      if (isCostly(op))
        problem.addSource(node);
      else
        for (Value operand : op->getOperands())
          if (auto found = nodes.find(baseOf(operand)); found != nodes.end())
            problem.addEdge(found->second, node);
      if (graph.needed().contains(result))
        problem.addSink(node);
    }
  ValueSet cut = outputs;
  for (int node : problem.solve())
    cut.insert(values[node]);
  return cut;
}

SmallVector<Value> Choices::valuesOf(const Stretch &stretch) const {
  SmallVector<Value> values;
  for (Operation *op : stretch.ops)
    for (Value result : op->getResults())
      if ((graph.needed().contains(result) || cut.contains(result)) && !isStatistic(result))
        values.push_back(result);
  return values;
}

/// Time of the ops that make what the backward reads of the layer out of `kept` and what comes from
/// other stretches.
double Choices::secondsToRecompute(const Stretch &layer, const ValueSet &kept,
                                   int64_t &flops) const {
  DenseSet<Value> wanted;
  double seconds = 0;
  flops = 0;
  for (Operation *op : llvm::reverse(layer.ops)) {
    bool runs = llvm::any_of(op->getResults(), [&](Value result) {
      bool read = wanted.contains(result) || graph.needed().contains(result);
      return read && !kept.contains(result) && !isStatistic(result) && baseOf(result) == result;
    });
    auto cost = dyn_cast<nn::CostOpInterface>(op);
    if (!runs || !cost)
      continue;
    flops += cost.getFlops();
    seconds += std::max(static_cast<double>(cost.getFlops()) / speed.flopsPerSecond,
                        static_cast<double>(cost.getBytes()) / speed.bytesPerSecond);
    for (Value operand : op->getOperands())
      wanted.insert(baseOf(operand));
  }
  return seconds;
}

/// The hull of a layer's front, from everything kept over what is free to the fewest bytes.
SmallVector<Choices::Point> Choices::frontOf(const Stretch &layer) const {
  SmallVector<Value> values = valuesOf(layer);
  SmallVector<unsigned> droppable; // beyond what is free; a layer's output is the next one's input
  Point all, free;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (graph.needed().contains(value)) {
      all.kept.push_back(i);
      all.bytes += bytesOf(value);
    }
    if (cut.contains(value) && value != layer.output)
      droppable.push_back(i);
  }
  llvm::stable_sort(
      droppable, [&](unsigned a, unsigned b) { return bytesOf(values[a]) > bytesOf(values[b]); });
  droppable.resize(std::min(droppable.size(), mostDroppable));

  SmallVector<Point> points;
  for (unsigned dropped = 0; dropped < 1u << droppable.size(); ++dropped) {
    Point point;
    ValueSet kept;
    for (auto [i, value] : llvm::enumerate(values)) {
      const unsigned *place = llvm::find(droppable, i);
      bool isDropped = place != droppable.end() && (dropped >> (place - droppable.begin()) & 1);
      if (isDropped || !cut.contains(value))
        continue;
      kept.insert(value);
      point.kept.push_back(i);
      point.bytes += bytesOf(value);
    }
    int64_t flops;
    point.seconds = secondsToRecompute(layer, kept, flops);
    points.push_back(std::move(point));
  }
  // The front: fewer bytes for more time. Then its hull, "all" and "free" always being on it.
  Point freePoint = points.front();
  llvm::stable_sort(points, [](const Point &a, const Point &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.seconds < b.seconds;
  });
  SmallVector<Point> hull{freePoint};
  for (const Point &point : points) {
    if (point.bytes >= hull.back().bytes)
      continue;
    auto slope = [](const Point &a, const Point &b) {
      return (b.seconds - a.seconds) / static_cast<double>(a.bytes - b.bytes);
    };
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], point) <= slope(hull[hull.size() - 2], hull.back()))
      hull.pop_back();
    hull.push_back(point);
  }
  hull.insert(hull.begin(), std::move(all));
  return hull;
}

/// From level to level, earlier layers first: their second computation comes when the later layers'
/// values are gone already.
void Choices::buildLevels() {
  SmallVector<int> current(graph.stretches().size(), 0);
  levels.push_back(current);
  SmallVector<size_t> layers;
  size_t deepest = 1;
  for (auto [i, stretch] : llvm::enumerate(graph.stretches())) {
    if (stretch.kind < 0)
      continue;
    layers.push_back(i);
    deepest = std::max(deepest, fronts[stretch.kind].size());
  }
  size_t moves = layers.size() * (deepest - 1);
  size_t together = (moves + mostLevels - 1) / mostLevels;
  for (size_t point = 1; point < deepest; ++point) {
    size_t moved = 0;
    for (size_t layer : layers) {
      int last = static_cast<int>(fronts[graph.stretches()[layer].kind].size()) - 1;
      current[layer] = std::min(static_cast<int>(point), last);
      bool isDue = ++moved % together == 0 || moved == layers.size();
      if (isDue && levels.back() != current)
        levels.push_back(current);
    }
    if (point == 1) {
      // What is no layer drops what is free, too.
      for (auto [i, stretch] : llvm::enumerate(graph.stretches()))
        if (stretch.kind < 0)
          levels.back()[i] = current[i] = 1;
      cheap = static_cast<int>(levels.size()) - 1;
    }
  }
}

Choice Choices::at(int level) const {
  Choice choice;
  for (auto [i, stretch] : llvm::enumerate(graph.stretches())) {
    SmallVector<Value> values = valuesOf(stretch);
    int point = levels[level][i];
    ValueSet kept;
    if (stretch.kind >= 0)
      for (unsigned number : fronts[stretch.kind][point].kept)
        kept.insert(values[number]);
    else
      for (Value value : values)
        if (point == 0 ? graph.needed().contains(value) : cut.contains(value))
          kept.insert(value);
    StretchChoice made;
    made.name = nameOf(stretch);
    for (Value value : values) {
      bool isRead = graph.needed().contains(value);
      made.bytesKept += kept.contains(value) ? bytesOf(value) : 0;
      made.bytesDropped += isRead && !kept.contains(value) ? bytesOf(value) : 0;
    }
    secondsToRecompute(stretch, kept, made.flops);
    choice.stretches.push_back(std::move(made));
    choice.kept.insert(kept.begin(), kept.end());
  }
  return choice;
}

} // namespace gradc::recompute
