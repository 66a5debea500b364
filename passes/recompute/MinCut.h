// The cheapest set of nodes whose removal cuts all paths from sources to sinks. Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace gradc::recompute {

class MinCut {
public:
  /// A node that costs `capacity` to cut; a negative one cannot be cut.
  int addNode(int64_t capacity);
  void addEdge(int from, int to);
  /// Paths begin here.
  void addSource(int node);
  /// Paths end here.
  void addSink(int node);

  /// The nodes of a cheapest cut: of several, the one nearest to the sinks. Every path must hold a
  /// node that can be cut.
  std::vector<int> solve();

private:
  struct Edge {
    int to;
    int64_t capacity;
    int reverse; ///< index in the edges of `to`
  };
  // Node n is split into 2 n + 2 (in) and 2 n + 3 (out); 0 and 1 are source and sink.
  static constexpr int source = 0, sink = 1;
  static int in(int node) { return 2 * node + 2; }
  static int out(int node) { return 2 * node + 3; }

  void connect(int from, int to, int64_t capacity);
  bool findLevels();
  std::vector<bool> reachesSink() const;
  int64_t push(int vertex, int64_t limit);

  std::vector<std::vector<Edge>> edges{2};
  std::vector<int> levels;
  std::vector<size_t> next;
};

} // namespace gradc::recompute
