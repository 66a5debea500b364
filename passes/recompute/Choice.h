// Which forward values to keep for the backward: from keeping all to keeping a layer's input only.
//
// What the backward reads and is made of kept values by cheap ops (no matrix products, no
// attention) is free to drop; which values then have to stay, besides the layers' outputs, is a
// minimum cut by bytes. Beyond that
// each kind of layer has a front of (bytes kept, seconds to recompute), of whose lower convex hull
// the layers take neighbouring points: a step from one level to the next moves one layer (or, in
// deep models, a few) to its next point. So levels rise in time and fall in memory.
#pragma once

#include "passes/recompute/ForwardGraph.h"

namespace gradc::recompute {

/// Speeds that turn FLOPs and bytes into seconds. Only their ratio matters for what is chosen: a
/// processor of a few cores.
struct MachineSpeed {
  double flopsPerSecond = 150e9;
  double bytesPerSecond = 12e9;
};

/// What is recomputed in one stretch, for `explain`.
struct StretchChoice {
  std::string name; ///< of the layer: where its first op comes from
  int64_t bytesKept = 0, bytesDropped = 0;
  int64_t flops = 0; ///< of recomputing
};

struct Choice {
  ValueSet kept; ///< base values; whatever else the backward reads is computed again
  llvm::SmallVector<StretchChoice> stretches;
};

class Choices {
public:
  Choices(const ForwardGraph &graph, MachineSpeed speed);

  /// Levels 0 (keep all) to levelCount() - 1 (keep layer inputs).
  int levelCount() const { return static_cast<int>(levels.size()); }
  /// The level at which all that is free is dropped and nothing else.
  int cheapLevel() const { return cheap; }
  Choice at(int level) const;

private:
  /// One way to treat a layer: the values it keeps, and what computing the others costs.
  struct Point {
    llvm::SmallVector<unsigned> kept; ///< numbers of the layer's values, as `valuesOf` has them
    int64_t bytes = 0;
    double seconds = 0;
  };
  /// Values of a stretch that may be kept, in the order of its ops: equal layers number them alike.
  llvm::SmallVector<mlir::Value> valuesOf(const Stretch &stretch) const;
  ValueSet layerOutputs() const;
  ValueSet freeCut() const;
  llvm::SmallVector<Point> frontOf(const Stretch &layer) const;
  double secondsToRecompute(const Stretch &layer, const ValueSet &kept, int64_t &flops) const;
  void buildLevels();

  const ForwardGraph &graph;
  MachineSpeed speed;
  ValueSet cut; ///< what has to stay when all that is free is dropped
  std::vector<llvm::SmallVector<Point>> fronts; ///< a kind; from most bytes to fewest
  /// For each level, the point of each stretch.
  std::vector<llvm::SmallVector<int>> levels;
  int cheap = 0;
};

} // namespace gradc::recompute
