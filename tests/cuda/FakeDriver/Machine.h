// A GPU's driver, played on the host for tests of runtime/cuda: strict where a real one is lenient,
// and as lazy as a real one may be. Work that is queued on a stream runs when something waits for
// it, and no sooner; what should have waited and did not sees it missing.
//
// Environment:
//   GRADC_FAKE_KERNELS     a shared library made of a program compiled with --emulate: its kernels
//   GRADC_FAKE_CAPABILITY  of the GPU, times ten [90]; 0: there is no GPU
//   GRADC_FAKE_NAME        of the GPU [Fake GPU]; one that is too long has no end
//   GRADC_FAKE_MEMORY      of the GPU, in bytes [1 GiB]
//   GRADC_FAKE_ORDER       late [nothing runs before it is waited for]; compute: the stream made
//                          first runs as soon as it can; copies: all others do, and the branches
//                          of a graph
//   GRADC_FAKE_FAIL        SYMBOL:N:CODE: the Nth call of a function gives CODE
//   GRADC_FAKE_DEAF        N: in graphs, the Nth stream of a capture (from 0) waits for nothing
//   GRADC_FAKE_REFUSE      cubin: no cubin is taken
//   GRADC_FAKE_LOG         a file that the name of each function called is appended to
//
// Whatever is wrong beyond an error code is told on standard error; at the end of the process what
// was not released is listed, and the exit code is 99.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/DriverApi.h"
#include "runtime/emulator/Emulator.h"

namespace gradc::rt::cuda {

/// A piece of work of a stream, or an event to note or to wait for.
struct Operation {
  enum class Kind { work, record, wait } kind = Kind::work;
  std::function<Result()> run; ///< of work
  EventObject *event = nullptr;
  uint64_t number = 0;                   ///< of the record
  std::shared_ptr<EventObject> own = {}; ///< the event, where it is of one launch of a graph
  bool isExternal = false;               ///< a record in a graph that the event itself sees
};

struct EventObject {
  bool hasTimes = false;
  uint64_t recorded = 0, done = 0;   ///< records queued, and executed
  StreamObject *stream = nullptr;    ///< of the last record
  double milliseconds = 0;           ///< of the last that was executed
  uint64_t capture = 0;              ///< the id of the graph that the last record is of, or 0
  uint64_t number = 0;               ///< of that record in it
  std::vector<uint64_t> before = {}; ///< of that record, as GraphObject::before
};

/// Work of several streams in the order of its capture. Branch 0 is the stream whose capture was
/// begun; one that waits for an event of it becomes the next.
struct GraphObject {
  struct Step {
    std::size_t branch;
    Operation operation; ///< unless external, its event has no object, its number is the record's
  };
  std::vector<Step> steps;
  uint64_t id = 0;
  /// While it is captured, for each branch how much work of each branch its next work follows.
  std::vector<std::vector<uint64_t>> before;
  uint64_t records = 0;
  bool isBroken = false;
};
struct GraphExecObject {
  std::vector<GraphObject::Step> steps;
};

struct StreamObject {
  std::deque<Operation> queue;
  GraphObject *capture = nullptr;
  std::size_t branch = 0; ///< of the capture
};

struct ModuleObject {
  std::string image;
  bool isCubin = false;
  std::set<FunctionObject *> functions;
};

struct FunctionObject {
  std::string name;
  const GradcGpuKernel *kernel = nullptr;
  int64_t partBuffers = 0; ///< of a part; 0: the parameters are the buffers
  /// Until it is set: 48 KB less the least that a kernel's static shared memory takes, if any.
  int maxDynamicShared = (48 << 10) - 128;
};

struct ContextObject {};

namespace fake {

class Machine {
public:
  static Machine &get();

  // --- what every entry point begins with
  /// The code that this call is to fail with; success for all others.
  Result enter(const char *symbol);
  /// Whether a context is current, and no error stuck.
  Result ready() const;

  // --- streams and events
  Result queue(StreamObject *stream, Operation operation);
  Result record(EventObject *event, StreamObject *stream);
  /// As a node of the graph that the stream is captured in, which the event sees at each launch.
  Result recordExternal(EventObject *event, StreamObject *stream);
  Result wait(StreamObject *stream, EventObject *event);
  /// Executes what the stream holds.
  Result drain(StreamObject *stream);
  /// Executes what an event needs, up to its record of that number.
  Result reach(EventObject *event, uint64_t number);
  /// For calls that no capture allows: breaks those under way.
  Result refuseInCapture();

  // --- captures and graphs
  Result beginCapture(StreamObject *stream);
  /// The graph, broken or not, is the caller's to release; null where nothing is captured.
  Result endCapture(StreamObject *stream, GraphObject *&graph);
  /// Queues each branch on a stream of its own, the first on this one.
  Result launch(const GraphExecObject &graph, StreamObject *stream);

  // --- memory
  Result allocate(Address *address, std::size_t bytes);
  Result release(Address address);
  /// The bytes from the address to the end of its allocation; 0 where there is none.
  std::size_t reachOf(Address address) const;
  bool isPinned(const void *address, std::size_t bytes) const;

  Result launch(const FunctionObject &function, unsigned blocks, unsigned threads, unsigned shared,
                std::vector<Address> buffers, int64_t extent);

  /// Says what went wrong, for people.
  Result complain(Result result, const std::string &text) const;

  int capability = 90;
  std::string name = "Fake GPU";
  std::size_t memoryBytes = std::size_t(1) << 30;
  bool refusesCubins = false;
  int retained = 0;
  ContextObject context;
  bool isCurrent = false;
  Result stuck = success;
  std::vector<StreamObject *> streams; ///< in the order of their making
  std::set<EventObject *> events;
  std::set<ModuleObject *> modules;
  std::set<GraphObject *> graphs;
  std::set<GraphExecObject *> executables;
  std::map<std::byte *, std::size_t> pinned;

private:
  Machine();
  ~Machine();
  Machine(const Machine &) = delete;
  /// The host reaches the GPU's memory only while work of the GPU runs.
  class Opened;
  Result execute(StreamObject *stream);
  bool canExecute(const StreamObject *stream) const;
  void runEager();
  Result runEagerly(StreamObject *stream, bool &hasRun);
  Result capture(StreamObject *stream, Operation operation);
  Result join(StreamObject *stream, const EventObject &event);

  std::vector<std::unique_ptr<StreamObject>> branches_; ///< of graphs, but the first of each
  uint64_t captures_ = 0;
  bool isEager_ = false; ///< runEager is under way, or may not be
  std::map<Address, std::size_t> allocations_;
  std::size_t allocated_ = 0;
  int opened_ = 0;
  std::string order_ = "late", log_, failing_;
  int deafBranch_ = -1;
  int64_t failingCall_ = 0, callsSeen_ = 0;
  Result failingCode_ = success;
  Emulator emulator_;
};

struct KnownKernel {
  const GradcGpuKernel *gpu;
  int64_t partBuffers; ///< as FunctionObject has it
};

/// The kernel of that name; null when nobody has it.
const KnownKernel *findKernel(const std::string &name);

} // namespace fake
} // namespace gradc::rt::cuda

extern "C" {
/// Adds a kernel, which stays the caller's; for tests that compile no program.
void gradcFakeAddKernel(const char *name, const GradcGpuKernel *kernel);
/// Queues work on a stream as a library above the driver would; it sees the GPU's memory at its
/// addresses. `work` gets a copy of `bytes` of `data` each time it runs, and gives a CUresult.
int gradcFakeQueue(void *stream, int (*work)(const void *data), const void *data,
                   unsigned long long bytes);
}
