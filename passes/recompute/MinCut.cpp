// Dinic's algorithm: blocking flows in the graph of shortest residual paths.
#include "passes/recompute/MinCut.h"

#include <algorithm>
#include <limits>

namespace gradc::recompute {

namespace {
/// More than any sum of capacities: bytes of all values of a graph.
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;
} // namespace

void MinCut::connect(int from, int to, int64_t capacity) {
  edges[from].push_back({to, capacity, static_cast<int>(edges[to].size())});
  edges[to].push_back({from, 0, static_cast<int>(edges[from].size()) - 1});
}

int MinCut::addNode(int64_t capacity) {
  int node = static_cast<int>(edges.size()) / 2 - 1;
  edges.resize(edges.size() + 2);
  connect(in(node), out(node), capacity < 0 ? unlimited : capacity);
  return node;
}

void MinCut::addEdge(int from, int to) { connect(out(from), in(to), unlimited); }
void MinCut::addSource(int node) { connect(source, in(node), unlimited); }
void MinCut::addSink(int node) { connect(out(node), sink, unlimited); }

bool MinCut::findLevels() {
  levels.assign(edges.size(), -1);
  levels[source] = 0;
  std::vector<int> queue{source};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const Edge &edge : edges[queue[i]])
      if (edge.capacity > 0 && levels[edge.to] < 0) {
        levels[edge.to] = levels[queue[i]] + 1;
        queue.push_back(edge.to);
      }
  return levels[sink] >= 0;
}

int64_t MinCut::push(int vertex, int64_t limit) {
  if (vertex == sink)
    return limit;
  for (size_t &i = next[vertex]; i < edges[vertex].size(); ++i) {
    Edge &edge = edges[vertex][i];
    if (edge.capacity <= 0 || levels[edge.to] != levels[vertex] + 1)
      continue;
    int64_t pushed = push(edge.to, std::min(limit, edge.capacity));
    if (pushed > 0) {
      edge.capacity -= pushed;
      edges[edge.to][edge.reverse].capacity += pushed;
      return pushed;
    }
  }
  return 0;
}

/// Vertices from which the sink can be reached in the residual graph.
std::vector<bool> MinCut::reachesSink() const {
  std::vector<bool> reaches(edges.size(), false);
  reaches[sink] = true;
  std::vector<int> queue{sink};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const Edge &edge : edges[queue[i]])
      if (!reaches[edge.to] && edges[edge.to][edge.reverse].capacity > 0) {
        reaches[edge.to] = true;
        queue.push_back(edge.to);
      }
  return reaches;
}

std::vector<int> MinCut::solve() {
  while (findLevels()) {
    next.assign(edges.size(), 0);
    while (push(source, unlimited) > 0) {
    }
  }
  std::vector<bool> reaches = reachesSink();
  std::vector<int> cut;
  for (int node = 0; in(node) < static_cast<int>(edges.size()); ++node)
    if (!reaches[in(node)] && reaches[out(node)])
      cut.push_back(node);
  return cut;
}

} // namespace gradc::recompute
