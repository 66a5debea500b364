// Forks, measures in the child, and reads the result from a pipe.
#include "runtime/cpu/PeakProbe.h"

#include <cerrno>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/cpu/Peak.h"

namespace gradc::rt {

Expected<DevicePeak> probePeak(int threads) {
  auto failure = [](const char *what, int error) {
    return Status::machine(
        fmt::format("cannot measure the machine's peak: {}: {}; raise the limits on processes and "
                    "open files",
                    what, std::strerror(error)));
  };
  int pipeEnds[2];
  if (pipe(pipeEnds) != 0)
    return failure("pipe", errno);
  pid_t child = fork();
  if (child < 0) {
    int error = errno;
    close(pipeEnds[0]);
    close(pipeEnds[1]);
    return failure("fork", error);
  }
  if (child == 0) {
    auto rates = measurePeak(threads);
    // The `isa` pointer is to a string constant: the same address in the parent.
    bool written = rates.ok() && write(pipeEnds[1], &*rates, sizeof(*rates)) == sizeof(*rates);
    _exit(written ? 0 : 1);
  }
  close(pipeEnds[1]);
  PeakRates rates;
  ssize_t got;
  do
    got = read(pipeEnds[0], &rates, sizeof(rates));
  while (got < 0 && errno == EINTR);
  close(pipeEnds[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR)
    continue;
  if (got != ssize_t(sizeof(rates)))
    return Status::machine("cannot measure the machine's peak: too little memory or too few "
                           "threads; lower --threads or free memory");
  return DevicePeak{rates.isa, rates.flopsPerSecond, rates.bytesPerSecond};
}

} // namespace gradc::rt
