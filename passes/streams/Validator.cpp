// See Validator.h.
#include "passes/streams/Validator.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <optional>

using namespace mlir;

namespace gradc::streams {
namespace {

/// A buffer as a command uses it.
struct Use {
  exec::BufferAttr buffer;
  bool isWritten;
};

/// A command as it comes: on its stream the `number`th, with all that is known to be over by then.
struct Step {
  Operation *op;
  int64_t stream = 0, number = 0, round = 0;
  std::map<int64_t, int64_t> over; ///< of each stream, up to which number
  std::vector<Use> uses;
};

/// From the end of its buffers: a workspace, the results, and before them what is read.
std::vector<Use> usesOf(exec::LaunchOp launch) {
  auto module = launch->getParentOfType<ModuleOp>();
  auto kernel = cast<exec::KernelOp>(module.lookupSymbol(launch.getKernel()));
  size_t written =
      kernel.getBody().front().front().getNumResults() + (kernel.getWorkspaceBytes() > 0 ? 1 : 0);
  size_t parts = launch.getParts() ? launch.getParts()->size() : 1;
  size_t each = launch.getBuffers().size() / parts;
  std::vector<Use> uses;
  for (size_t part = 0; part < parts; ++part)
    for (size_t i = 0; i < each; ++i)
      uses.push_back(
          {cast<exec::BufferAttr>(launch.getBuffers()[part * each + i]), i + written >= each});
  if (launch.getTableAttr())
    uses.push_back({launch.getTableAttr(), false});
  return uses;
}

std::vector<Use> usesOf(exec::GemmOp gemm) {
  std::vector<Use> uses{{gemm.getA().getBuffer(), false},
                        {gemm.getB().getBuffer(), false},
                        {gemm.getC().getBuffer(), true}};
  for (exec::BufferAttr scale : {gemm.getScaleAAttr(), gemm.getScaleBAttr()})
    if (scale)
      uses.push_back({scale, false});
  if (gemm.getWorkspaceAttr())
    uses.push_back({gemm.getWorkspaceAttr(), true});
  if (exec::EpilogueAttr epilogue = gemm.getEpilogueAttr()) {
    if (exec::MatrixAttr bias = epilogue.getBias())
      uses.push_back({bias.getBuffer(), nn::givesBiasGradient(epilogue.getKind())});
    if (exec::MatrixAttr aux = epilogue.getAux())
      uses.push_back({aux.getBuffer(), nn::writesAux(epilogue.getKind())});
  }
  return uses;
}

int64_t firstByte(const Use &use, int64_t round) {
  return use.buffer.getOffset() + round * use.buffer.getLoopStride();
}

std::optional<std::string> sharedBytes(const Step &a, const Step &b) {
  for (const Use &x : a.uses)
    for (const Use &y : b.uses) {
      if (!(x.isWritten || y.isWritten) || x.buffer.getSpace() != y.buffer.getSpace())
        continue;
      int64_t from = std::max(firstByte(x, a.round), firstByte(y, b.round));
      int64_t to = std::min(firstByte(x, a.round) + x.buffer.getBytes(),
                            firstByte(y, b.round) + y.buffer.getBytes());
      if (from < to)
        return "bytes " + std::to_string(from) + " to " + std::to_string(to) + " of the " +
               exec::stringifySpace(x.buffer.getSpace()).str();
    }
  return std::nullopt;
}

class Validation {
public:
  explicit Validation(size_t maxViolations) : maxViolations(maxViolations) {
    over[0][0] = count[0] = 1; // the program's begin
  }

  std::vector<std::string> run(exec::ProgramOp program) {
    visit(program.getBody().front(), /*round=*/0);
    for (auto [stream, number] : count)
      if (over[0][stream] < number)
        report("stream 0 ends and does not wait for the end of stream " + std::to_string(stream));
    return std::move(violations);
  }

private:
  void visit(Block &block, int64_t round) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::RepeatOp>(op)) {
        for (int64_t i = 0; i < std::min<int64_t>(2, loop.getCount()); ++i)
          visit(loop.getBody().front(), i);
      } else if (auto record = dyn_cast<exec::RecordOp>(op)) {
        recorded[record.getEvent()] = over[record.getStream()];
      } else if (auto wait = dyn_cast<exec::WaitOp>(op)) {
        await(wait);
      } else if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
        check({&op, static_cast<int64_t>(launch.getStream()), 0, round, {}, usesOf(launch)});
      } else if (auto gemm = dyn_cast<exec::GemmOp>(op)) {
        check({&op, static_cast<int64_t>(gemm.getStream()), 0, round, {}, usesOf(gemm)});
      }
    }
  }

  void await(exec::WaitOp wait) {
    auto event = recorded.find(wait.getEvent());
    if (event == recorded.end())
      return report("event " + std::to_string(wait.getEvent()) +
                    " is waited for and was not recorded");
    for (auto [stream, number] : event->second) {
      int64_t &known = over[wait.getStream()][stream];
      known = std::max(known, number);
    }
  }

  void check(Step step) {
    step.number = ++count[step.stream];
    auto &mine = over[step.stream];
    if (mine[0] == 0)
      report(describe(step) + " does not wait for the program's begin");
    mine[step.stream] = step.number;
    step.over = mine;
    for (auto &[stream, earlier] : steps) {
      if (stream == step.stream)
        continue;
      for (const Step &other : llvm::reverse(earlier)) {
        if (other.number <= mine[stream])
          break; // and so are all before it
        if (std::optional<std::string> bytes = sharedBytes(other, step))
          report(describe(other) + " and " + describe(step) + " use " + *bytes +
                 ", and nothing orders them");
      }
    }
    steps[step.stream].push_back(std::move(step));
  }

  static std::string describe(const Step &step) {
    std::string what = "exec.gemm";
    if (auto launch = dyn_cast<exec::LaunchOp>(step.op))
      what = launch.getKernel().str();
    int64_t number = step.number - (step.stream == 0 ? 1 : 0); // the begin is none
    return "command " + std::to_string(number) + " of stream " + std::to_string(step.stream) +
           " (" + what + ")";
  }

  void report(std::string violation) {
    if (violations.size() < maxViolations)
      violations.push_back(std::move(violation));
  }

  size_t maxViolations;
  std::vector<std::string> violations;
  std::map<int64_t, int64_t> count;                       ///< of each stream, its commands so far
  std::map<int64_t, std::map<int64_t, int64_t>> over;     ///< what each stream knows to be over
  std::map<int64_t, std::map<int64_t, int64_t>> recorded; ///< the same, in each event
  std::map<int64_t, std::vector<Step>> steps;             ///< of each stream
};

} // namespace

std::vector<std::string> validateStreams(exec::ProgramOp program, size_t maxViolations) {
  return Validation(maxViolations).run(program);
}

} // namespace gradc::streams
