// Arena: mapping, the check against the available memory, and first touch in parallel.
#include "runtime/cpu/Arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/mman.h>

#include <fmt/format.h>

#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

constexpr std::size_t hugePage = std::size_t(2) << 20;
constexpr std::size_t smallPage = 4096;
constexpr int64_t unknown = std::numeric_limits<int64_t>::max();
constexpr uint64_t pattern = 0xA5C3'5A3C'96E1'7F2D;

/// The number behind `key` in a file of `key number` lines; -1 where there is none.
int64_t numberInFile(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  std::string word;
  int64_t value;
  while (file >> word) {
    if (word == key)
      return file >> value ? value : -1;
  }
  return -1;
}

/// The number that is the whole content of a file; -1 where there is none (or it says `max`).
int64_t numberOfFile(const std::string &path) {
  std::ifstream file(path);
  int64_t value;
  return file >> value ? value : -1;
}

/// The least headroom from the group at `path` up to the root of its hierarchy.
template <typename Headroom> int64_t leastOfHierarchy(std::string path, Headroom headroom) {
  int64_t least = unknown;
  while (true) {
    least = std::min(least, headroom(path));
    auto slash = path.rfind('/');
    if (slash == std::string::npos)
      return least;
    path.resize(slash);
  }
}

int64_t controlGroupHeadroom() {
  int64_t least = unknown;
  std::ifstream file("/proc/self/cgroup");
  std::string line; // hierarchy:controllers:path
  while (std::getline(file, line)) {
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/")
      path.clear();
    if (controllers.empty())
      least = std::min(least, leastOfHierarchy(path, [](const std::string &group) {
                         std::string folder = "/sys/fs/cgroup" + group;
                         return groupHeadroom(numberOfFile(folder + "/memory.max"),
                                              numberOfFile(folder + "/memory.current"),
                                              numberInFile(folder + "/memory.stat", "file"));
                       }));
    else if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, leastOfHierarchy(path, [](const std::string &group) {
                         std::string folder = "/sys/fs/cgroup/memory" + group;
                         return groupHeadroom(numberOfFile(folder + "/memory.limit_in_bytes"),
                                              numberOfFile(folder + "/memory.usage_in_bytes"),
                                              numberInFile(folder + "/memory.stat", "total_cache"));
                       }));
  }
  return least;
}

} // namespace

int64_t groupHeadroom(int64_t limit, int64_t usage, int64_t cache) {
  if (limit < 0 || usage < 0)
    return unknown;
  int64_t kept = std::max<int64_t>(0, usage - std::max<int64_t>(0, cache));
  return std::max<int64_t>(0, limit - kept);
}

int64_t availableMemoryBytes() {
  int64_t kibibytes = numberInFile("/proc/meminfo", "MemAvailable:");
  int64_t system = kibibytes < 0 ? unknown : kibibytes * 1024;
  return std::min(system, controlGroupHeadroom());
}

int64_t residentPeakBytes() {
  int64_t kibibytes = numberInFile("/proc/self/status", "VmHWM:");
  return kibibytes < 0 ? 0 : kibibytes * 1024;
}

std::string formatBytes(int64_t bytes) {
  if (bytes >= int64_t(1) << 30)
    return fmt::format("{:.2f} GiB", double(bytes) / double(1 << 30));
  if (bytes >= int64_t(1) << 20)
    return fmt::format("{:.1f} MiB", double(bytes) / double(1 << 20));
  return fmt::format("{:.1f} KiB", double(bytes) / 1024);
}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mappingBytes_, other.mappingBytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Arena::~Arena() {
  if (mapping_)
    munmap(mapping_, mappingBytes_);
}

Expected<Arena> Arena::create(int64_t bytes, const std::string &what, ThreadPool &pool) {
  Arena arena;
  if (bytes <= 0)
    return arena;
  int64_t available = availableMemoryBytes();
  if (bytes > available)
    return Status::machine(fmt::format(
        "{} needs {} and only {} of memory is available; compile with a smaller --micro-batch or "
        "--seq, or free memory",
        what, formatBytes(bytes), formatBytes(available)));

  std::size_t rounded = (std::size_t(bytes) + hugePage - 1) / hugePage * hugePage;
  arena.mappingBytes_ = rounded + hugePage;
  void *mapping = mmap(nullptr, arena.mappingBytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return Status::machine(fmt::format("cannot map {} for {}: {}; raise the limit on address space "
                                       "(ulimit -v) or compile for less memory",
                                       formatBytes(bytes), what, std::strerror(errno)));
  arena.mapping_ = mapping;
  auto address = (reinterpret_cast<std::uintptr_t>(mapping) + hugePage - 1) / hugePage * hugePage;
  arena.data_ = reinterpret_cast<std::byte *>(address);
  arena.size_ = bytes;

  // A tail shorter than a huge page stays on small pages: resident memory then is what was asked
  // for.
  std::size_t hugeBytes = std::size_t(bytes) / hugePage * hugePage;
  if (hugeBytes > 0)
    (void)madvise(arena.data_, hugeBytes,
                  MADV_HUGEPAGE); // a system without them is slower, no more
  pool.parallelFor(int64_t(rounded / hugePage), [&](int64_t page, int) {
    std::size_t begin = std::size_t(page) * hugePage;
    std::size_t end = std::min(begin + hugePage, std::size_t(bytes));
    for (std::size_t at = begin; at < end; at += smallPage)
      *reinterpret_cast<volatile std::byte *>(arena.data_ + at) = std::byte(0);
  });
  return arena;
}

void Arena::fillPattern(ThreadPool &pool) {
  int64_t words = size_ / int64_t(sizeof(pattern));
  auto *data = reinterpret_cast<uint64_t *>(data_);
  constexpr int64_t chunk = int64_t(hugePage / sizeof(pattern));
  pool.parallelFor((words + chunk - 1) / chunk, [&](int64_t task, int) {
    std::fill(data + task * chunk, data + std::min(words, (task + 1) * chunk), pattern);
  });
}

int64_t Arena::highWater() const {
  int64_t words = size_ / int64_t(sizeof(pattern));
  auto *data = reinterpret_cast<const uint64_t *>(data_);
  while (words > 0 && data[words - 1] == pattern)
    --words;
  return words * int64_t(sizeof(pattern));
}

} // namespace gradc::rt
