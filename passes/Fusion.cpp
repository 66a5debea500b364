// Forms clusters of row ops that share rows and columns; each becomes one kernel.
//
// Greedy, in program order: an op joins the cluster of a producer, else of a sibling that reads the
// same matrix, else starts its own. Joining is legal when no path leaves the cluster and returns to
// it through the op: clusters count as single nodes on such paths. Ops that end up after their
// users are put right by one topological sort of the block.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/StableOrder.h"

#include "llvm/ADT/StringExtras.h"

#include <queue>

namespace gradc {
#define GEN_PASS_DEF_FUSIONPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;

namespace {

/// More matrices than this in one loop overrun the prefetchers and registers; and a chain that
/// grows with the depth of the model (the sum of the gradient norm) stays in kernels of one size.
constexpr size_t maxMatrices = 16;

struct Cluster {
  RowSpace space;
  SmallVector<RowOpInterface> ops;
};

/// Clusters of one block.
class BlockFusion {
public:
  BlockFusion(Block &block, bool enable) : block(block), enable(enable) {}

  /// `made` and `refused` take what was joined, and what was not and why.
  void run(Tally &made, Tally &refused) {
    int64_t count = 0;
    for (Operation &op : block)
      position[&op] = count++;
    straddling.assign(count, 0);
    for (Operation &op : block)
      if (auto rowOp = dyn_cast<RowOpInterface>(op))
        place(rowOp, refused);
    for (Cluster &cluster : clusters) {
      made.add(describe(cluster));
      outline(cluster);
    }
    sortStably(block);
  }

private:
  static std::string describe(const Cluster &cluster) {
    return "one kernel: " + llvm::join(llvm::map_range(cluster.ops,
                                                       [](RowOpInterface op) {
                                                         return op->getName().stripDialect().str();
                                                       }),
                                       ", ");
  }

  void place(RowOpInterface op, Tally &refused) {
    if (enable)
      for (size_t candidate : candidates(op)) {
        if (StringRef refusal = whyNot(candidate, op); !refusal.empty()) {
          Operation *last = clusters[candidate].ops.back();
          refused.add((op->getName().stripDialect() + " not with " +
                       last->getName().stripDialect() + ": " + refusal)
                          .str());
          continue;
        }
        join(candidate, op);
        return;
      }
    clusterOf[op] = clusters.size();
    clusters.push_back({op.getRowSpace(), {op}});
  }

  void join(size_t index, RowOpInterface op) {
    SmallVectorImpl<RowOpInterface> &ops = clusters[index].ops;
    for (int64_t i = position.lookup(ops.back()) + 1; i <= position.lookup(op); ++i)
      ++straddling[i];
    ops.push_back(op);
    clusterOf[op] = index;
  }

  /// The value and others that are it under another name (nn.after).
  static SmallVector<Value> sameMemory(Value value) {
    auto aliasOf = [](Operation *op) -> Value {
      auto fusion = dyn_cast_or_null<FusionOpInterface>(op);
      bool isAlias = fusion && fusion.getFusionRole() == FusionRole::view &&
                     op->getResult(0).getType() == op->getOperand(0).getType();
      return isAlias ? op->getOperand(0) : Value();
    };
    while (Value aliased = aliasOf(value.getDefiningOp()))
      value = aliased;
    SmallVector<Value> all{value};
    for (Operation *user : value.getUsers())
      if (aliasOf(user) == value)
        all.push_back(user->getResult(0));
    return all;
  }

  /// Clusters worth joining: of producers, latest first, then of siblings.
  SmallVector<size_t> candidates(RowOpInterface op) {
    SmallVector<size_t> producers, siblings;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        if (auto found = clusterOf.find(producer); found != clusterOf.end())
          producers.push_back(found->second);
    for (OpOperand &operand : op->getOpOperands())
      if (op.getOperandKind(operand.getOperandNumber()) == BufferKind::matrix)
        for (Value same : sameMemory(operand.get()))
          for (Operation *user : same.getUsers())
            if (auto found = clusterOf.find(user); found != clusterOf.end())
              siblings.push_back(found->second);
    llvm::sort(producers, std::greater<>());
    llvm::sort(siblings, std::greater<>());
    producers.append(siblings);
    SmallVector<size_t> unique;
    for (size_t cluster : producers)
      if (!llvm::is_contained(unique, cluster))
        unique.push_back(cluster);
    return unique;
  }

  /// Empty when `op` may join; else the reason against it.
  StringRef whyNot(size_t index, RowOpInterface op) {
    Cluster &cluster = clusters[index];
    if (!(cluster.space == op.getRowSpace()))
      return "rows or columns differ";
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (!producer || clusterOf.lookup_or(producer, noCluster) != index)
        continue;
      auto result = cast<OpResult>(operand.get()).getResultNumber();
      BufferKind written = cast<RowOpInterface>(producer).getResultKind(result);
      if (written != op.getOperandKind(operand.getOperandNumber()) ||
          written == BufferKind::columnPartial)
        return "reads a sum that is complete only after the last row";
    }
    if (returnsTo(index, op))
      return "another op stands between them";
    if (countMatrices(cluster, op) > maxMatrices)
      return "too many matrices in one loop";
    return {};
  }

  /// What stands for an op on paths: the first of its cluster, or itself.
  Operation *nodeOf(Operation *op) const {
    size_t own = clusterOf.lookup_or(op, noCluster);
    if (own != noCluster)
      op = clusters[own].ops.front();
    return op;
  }

  /// Values that a node, all ops of a cluster or one op with its regions, reads.
  void forEachOperand(Operation *node, function_ref<void(Value)> visit) const {
    auto visitAll = [&](Operation *op) { llvm::for_each(op->getOperands(), visit); };
    if (size_t own = clusterOf.lookup_or(node, noCluster); own != noCluster)
      llvm::for_each(clusters[own].ops, visitAll);
    else
      node->walk(visitAll);
  }

  /// Whether a path leads from the cluster through some node outside it to `op`. Goes back from
  /// `op`, on from the earliest node first: where there is a path, it is then met soon, however far
  /// behind the cluster `op` stands.
  bool returnsTo(size_t index, Operation *op) {
    Operation *target = clusters[index].ops.front();
    // Clusters lie on either side of here: what stands before depends on nothing behind.
    int64_t first = position.lookup(target);
    while (straddling[first] > 0)
      --first;
    using Entry = std::pair<int64_t, Operation *>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting;
    SmallPtrSet<Operation *, 32> seen;
    auto push = [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer->getBlock() != &block)
        return;
      Operation *last = producer;
      if (size_t own = clusterOf.lookup_or(producer, noCluster); own != noCluster)
        last = clusters[own].ops.back();
      if (Operation *node = nodeOf(producer);
          position.lookup(last) >= first && seen.insert(node).second)
        waiting.push({position.lookup(node), node});
    };
    for (Value operand : op->getOperands())
      // The op's own operands inside the cluster are direct edges, not a return.
      if (Operation *producer = operand.getDefiningOp(); producer && nodeOf(producer) != target)
        push(operand);
    while (!waiting.empty() && waiting.top().second != target) {
      Operation *node = waiting.top().second;
      waiting.pop();
      forEachOperand(node, push);
    }
    return !waiting.empty();
  }

  static size_t countMatrices(const Cluster &cluster, RowOpInterface joining) {
    SmallPtrSet<Value, 16> matrices;
    auto count = [&](RowOpInterface op) {
      for (OpOperand &operand : op->getOpOperands())
        if (op.getOperandKind(operand.getOperandNumber()) == BufferKind::matrix)
          matrices.insert(operand.get());
      for (OpResult result : op->getResults())
        if (op.getResultKind(result.getResultNumber()) == BufferKind::matrix)
          matrices.insert(result);
    };
    for (RowOpInterface op : cluster.ops)
      count(op);
    count(joining);
    return matrices.size();
  }

  /// Moves the cluster's ops into one fused op; splat constants go with their users.
  void outline(Cluster &cluster) {
    SmallPtrSet<Operation *, 16> members;
    for (RowOpInterface op : cluster.ops)
      members.insert(op);
    SmallVector<Value> inputs, outputs;
    SmallVector<Operation *> constants;
    for (RowOpInterface op : cluster.ops) {
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (producer && isSplatConstant(producer)) {
          if (!llvm::is_contained(constants, producer))
            constants.push_back(producer);
        } else if (!(producer && members.contains(producer)) &&
                   !llvm::is_contained(inputs, operand)) {
          inputs.push_back(operand);
        }
      }
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !members.contains(user); }))
          outputs.push_back(result);
    }
    OpBuilder builder(cluster.ops.back());
    Location loc = cluster.ops.back().getLoc();
    auto fused =
        FusedOp::create(builder, loc, llvm::to_vector(ValueRange(outputs).getTypes()), inputs);
    Block *body = builder.createBlock(&fused.getBody());
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (Operation *constant : constants)
      builder.clone(*constant, mapping);
    for (RowOpInterface op : cluster.ops)
      builder.clone(*op, mapping);
    YieldOp::create(builder, loc, llvm::map_to_vector(outputs, [&](Value output) {
                      return mapping.lookup(output);
                    }));
    for (auto [output, result] : llvm::zip(outputs, fused.getResults()))
      output.replaceAllUsesWith(result);
    for (RowOpInterface op : llvm::reverse(cluster.ops))
      op->erase();
  }

  /// Integers tell the uses of one kernel apart (streams of random numbers): they stay operands.
  static bool isSplatConstant(Operation *op) {
    DenseFPElementsAttr value;
    return matchPattern(op, m_Constant(&value)) && value.isSplat();
  }

  static constexpr size_t noCluster = ~size_t{0};
  Block &block;
  bool enable;
  std::vector<Cluster> clusters;
  DenseMap<Operation *, size_t> clusterOf;
  DenseMap<Operation *, int64_t> position;
  std::vector<int32_t> straddling; ///< clusters with ops before and ops at or behind a position
};

class FusionPass : public gradc::impl::FusionPassBase<FusionPass> {
public:
  using FusionPassBase::FusionPassBase;

private:
  void runOnOperation() override {
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](MicrobatchesOp loop) { blocks.push_back(&loop.getBody().front()); });
    Tally made, refused;
    for (Block *block : blocks)
      BlockFusion(*block, enable).run(made, refused);
    SmallVector<std::string> lines = made.lines();
    lines.append(refused.lines());
    explain(getOperation(), "fusion", lines);
  }
};

} // namespace
