// Machine: queues, memory, execution.
#include "tests/cuda/FakeDriver/Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace gradc::rt::cuda::fake {
namespace {

constexpr std::size_t page = 4096;
std::size_t rounded(std::size_t bytes) { return (bytes + page - 1) / page * page; }

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

double now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

Machine &Machine::get() {
  static Machine machine;
  return machine;
}

Machine::Machine() {
  if (std::string text = variable("GRADC_FAKE_CAPABILITY"); !text.empty())
    capability = std::stoi(text);
  if (std::string text = variable("GRADC_FAKE_NAME"); !text.empty())
    name = text;
  if (std::string text = variable("GRADC_FAKE_MEMORY"); !text.empty())
    memoryBytes = std::stoull(text);
  if (std::string text = variable("GRADC_FAKE_ORDER"); !text.empty())
    order_ = text;
  if (std::string text = variable("GRADC_FAKE_DEAF"); !text.empty())
    deafBranch_ = std::stoi(text);
  refusesCubins = variable("GRADC_FAKE_REFUSE") == "cubin";
  log_ = variable("GRADC_FAKE_LOG");
  std::string fail = variable("GRADC_FAKE_FAIL");
  if (std::size_t first = fail.find(':'), second = fail.rfind(':'); first != std::string::npos) {
    failing_ = fail.substr(0, first);
    failingCall_ = std::stoll(fail.substr(first + 1, second - first - 1));
    failingCode_ = std::stoi(fail.substr(second + 1));
  }
}

/// At the end of the process.
Machine::~Machine() {
  const std::pair<const char *, std::size_t> left[] = {{"allocations", allocations_.size()},
                                                       {"pinned allocations", pinned.size()},
                                                       {"streams", streams.size()},
                                                       {"events", events.size()},
                                                       {"modules", modules.size()},
                                                       {"graphs", graphs.size()},
                                                       {"executable graphs", executables.size()},
                                                       {"contexts", std::size_t(retained)}};
  bool leaks = false;
  for (auto [what, count] : left)
    if (count > 0) {
      fmt::print(stderr, "fake driver: {} {} were not released\n", count, what);
      leaks = true;
    }
  if (leaks)
    _exit(99);
}

Result Machine::complain(Result result, const std::string &text) const {
  fmt::print(stderr, "fake driver: {}\n", text);
  return result;
}

Result Machine::enter(const char *symbol) {
  if (!log_.empty())
    if (std::FILE *file = std::fopen(log_.c_str(), "a")) {
      fmt::print(file, "{}\n", symbol);
      std::fclose(file);
    }
  return failing_ == symbol && ++callsSeen_ == failingCall_ ? failingCode_ : Result(success);
}

Result Machine::ready() const {
  if (!isCurrent)
    return complain(errorInvalidContext, "a call without a context");
  return stuck;
}

// --- memory

class Machine::Opened {
public:
  explicit Opened(Machine &machine) : machine_(machine) {
    if (machine_.opened_++ == 0)
      protect(PROT_READ | PROT_WRITE);
  }
  ~Opened() {
    if (--machine_.opened_ == 0)
      protect(PROT_NONE);
  }

private:
  void protect(int rights) {
    for (auto [address, bytes] : machine_.allocations_)
      mprotect(reinterpret_cast<void *>(address), rounded(bytes), rights);
  }
  Machine &machine_;
};

Result Machine::allocate(Address *address, std::size_t bytes) {
  if (bytes == 0)
    return errorInvalidValue;
  if (bytes > memoryBytes - allocated_)
    return errorOutOfMemory;
  void *memory =
      mmap(nullptr, rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return errorOutOfMemory;
  std::memset(memory, 0xFF, bytes); // what was there before: NaN
  mprotect(memory, rounded(bytes), PROT_NONE);
  *address = reinterpret_cast<Address>(memory);
  allocations_[*address] = bytes;
  allocated_ += bytes;
  return success;
}

Result Machine::release(Address address) {
  auto found = allocations_.find(address);
  if (found == allocations_.end())
    return complain(errorInvalidValue, "memory that is not allocated is freed");
  for (StreamObject *stream : streams)
    if (!stream->queue.empty())
      complain(success, "memory is freed while work is queued");
  munmap(reinterpret_cast<void *>(address), rounded(found->second));
  allocated_ -= found->second;
  allocations_.erase(found);
  return success;
}

std::size_t Machine::reachOf(Address address) const {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin())
    return 0;
  auto [begin, bytes] = *std::prev(next);
  return address - begin < bytes ? bytes - (address - begin) : 0;
}

bool Machine::isPinned(const void *address, std::size_t bytes) const {
  auto *at = static_cast<std::byte *>(const_cast<void *>(address));
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin())
    return false;
  auto [begin, size] = *std::prev(next);
  return std::size_t(at - begin) + bytes <= size;
}

// --- streams

Result Machine::queue(StreamObject *stream, Operation operation) {
  if (std::find(streams.begin(), streams.end(), stream) == streams.end())
    return complain(errorInvalidHandle, "work for a stream that does not exist");
  if (stream->capture)
    return capture(stream, std::move(operation));
  stream->queue.push_back(std::move(operation));
  runEager();
  return success;
}

Result Machine::record(EventObject *event, StreamObject *stream) {
  if (stream->capture)
    return queue(stream, {Operation::Kind::record, nullptr, event});
  event->capture = 0;
  event->stream = stream;
  return queue(stream, {Operation::Kind::record, nullptr, event, ++event->recorded});
}

Result Machine::recordExternal(EventObject *event, StreamObject *stream) {
  event->capture = 0;
  return queue(stream, {Operation::Kind::record, nullptr, event, 0, nullptr, true});
}

Result Machine::wait(StreamObject *stream, EventObject *event) {
  if (event->capture != 0)
    if (Result result = join(stream, *event); result != success)
      return result;
  return queue(stream, {Operation::Kind::wait, nullptr, event, event->recorded});
}

bool Machine::canExecute(const StreamObject *stream) const {
  if (stream->queue.empty())
    return false;
  const Operation &next = stream->queue.front();
  return next.kind != Operation::Kind::wait || next.event->done >= next.number;
}

/// A GPU may run any stream as soon as nothing holds it up, however late the others are.
void Machine::runEager() {
  if (order_ == "late" || opened_ > 0 || isEager_)
    return;
  isEager_ = true;
  Result result = success;
  for (bool hasRun = true; hasRun && result == success;) {
    hasRun = false;
    for (std::size_t i = 0; i < streams.size() && result == success; ++i)
      if ((i == 0) == (order_ == "compute"))
        result = runEagerly(streams[i], hasRun);
    for (std::size_t i = 0; i < branches_.size() && result == success; ++i)
      if (order_ == "copies")
        result = runEagerly(branches_[i].get(), hasRun);
  }
  isEager_ = false;
}

Result Machine::runEagerly(StreamObject *stream, bool &hasRun) {
  Result result = success;
  for (; result == success && canExecute(stream); hasRun = true)
    result = execute(stream);
  return result;
}

/// What waits stays in its queue until it need not, so that what is behind does not run ahead.
Result Machine::execute(StreamObject *stream) {
  if (!canExecute(stream)) {
    Operation waiting = stream->queue.front(); // a copy: meanwhile it may leave the queue
    return reach(waiting.event, waiting.number);
  }
  Operation next = std::move(stream->queue.front());
  stream->queue.pop_front();
  switch (next.kind) {
  case Operation::Kind::work: {
    Opened opened(*this);
    Result result = stuck != success ? stuck : next.run();
    if (result != success && stuck == success)
      stuck = result;
    return stuck;
  }
  case Operation::Kind::record:
    next.event->done = next.number;
    next.event->milliseconds = now();
    runEager();
    return success;
  case Operation::Kind::wait:
    return stuck;
  }
  return errorUnknown;
}

Result Machine::drain(StreamObject *stream) {
  while (!stream->queue.empty())
    if (Result result = execute(stream); result != success)
      return result;
  return stuck;
}

Result Machine::reach(EventObject *event, uint64_t number) {
  while (event->done < number) {
    if (!event->stream || event->stream->queue.empty())
      return complain(errorUnknown, "an event that nothing will record");
    if (Result result = execute(event->stream); result != success)
      return result;
  }
  return stuck;
}

// --- kernels

Result Machine::launch(const FunctionObject &function, unsigned blocks, unsigned threads,
                       unsigned shared, std::vector<Address> buffers, int64_t extent) {
  EmulatedLaunch launch{function.name.c_str(),
                        function.kernel->emulated,
                        int64_t(threads),
                        int64_t(shared),
                        int64_t(blocks),
                        extent,
                        {}};
  auto buffer = [&](Address address) {
    return EmulatedBuffer{reinterpret_cast<void *>(address), int64_t(reachOf(address)), true};
  };
  for (Address address : buffers)
    launch.buffers.push_back(buffer(address));
  if (function.partBuffers > 0) {
    auto *first = reinterpret_cast<const int64_t *>(buffers[0]), *next = first + extent;
    for (int64_t part = 0; part < extent; ++part) {
      launch.parts.push_back({first[part], {}});
      for (int64_t i = 1; i <= function.partBuffers; ++i)
        launch.parts.back().buffers.push_back(buffer(Address(next[i])));
      next += 1 + function.partBuffers;
    }
  }
  Status status = emulator_.run(launch);
  return status.ok() ? Result(success) : complain(errorIllegalAddress, status.message());
}

} // namespace gradc::rt::cuda::fake
