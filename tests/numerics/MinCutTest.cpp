// The minimum cut against every subset of nodes, on small random graphs.
#include "passes/recompute/MinCut.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <utility>

namespace {

using gradc::recompute::MinCut;

struct Graph {
  std::vector<int64_t> capacities;
  std::vector<std::pair<int, int>> edges; ///< from a smaller to a larger number
  std::vector<int> sources, sinks;
};

/// Whether a path from a source to a sink avoids the nodes of the bit set.
bool leaks(const Graph &graph, unsigned cut) {
  std::vector<bool> reached(graph.capacities.size());
  for (int source : graph.sources)
    reached[source] = !(cut >> source & 1);
  for (auto [from, to] : graph.edges) // sorted by `from`
    if (reached[from] && !(cut >> to & 1))
      reached[to] = true;
  for (int sink : graph.sinks)
    if (reached[sink])
      return true;
  return false;
}

int64_t cost(const Graph &graph, unsigned cut) {
  int64_t sum = 0;
  for (size_t node = 0; node < graph.capacities.size(); ++node)
    sum += cut >> node & 1 ? graph.capacities[node] : 0;
  return sum;
}

unsigned solve(const Graph &graph) {
  MinCut problem;
  for (int64_t capacity : graph.capacities)
    problem.addNode(capacity);
  for (auto [from, to] : graph.edges)
    problem.addEdge(from, to);
  for (int node : graph.sources)
    problem.addSource(node);
  for (int node : graph.sinks)
    problem.addSink(node);
  unsigned cut = 0;
  for (int node : problem.solve())
    cut |= 1u << node;
  return cut;
}

TEST(MinCut, CostsWhatTheBestSubsetCosts) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    Graph graph;
    int count = 3 + static_cast<int>(random() % 8);
    for (int node = 0; node < count; ++node) {
      graph.capacities.push_back(1 + random() % 9);
      if (random() % 4 == 0)
        graph.sources.push_back(node);
      if (random() % 4 == 0)
        graph.sinks.push_back(node);
      for (int to = node + 1; to < count; ++to)
        if (random() % 3 == 0)
          graph.edges.push_back({node, to});
    }
    unsigned cut = solve(graph);
    EXPECT_FALSE(leaks(graph, cut)) << trial;
    int64_t best = std::numeric_limits<int64_t>::max();
    for (unsigned subset = 0; subset < 1u << count; ++subset)
      if (!leaks(graph, subset))
        best = std::min(best, cost(graph, subset));
    EXPECT_EQ(cost(graph, cut), best) << trial;
  }
}

TEST(MinCut, OfEqualCutsTakesTheOneNearestToTheSinks) {
  Graph chain{{5, 5, 5}, {{0, 1}, {1, 2}}, {0}, {2}};
  EXPECT_EQ(solve(chain), 1u << 2);
}

} // namespace
