// Stand-ins for a full disk and a full table of descriptors that need no privileges.
#pragma once

#include <csignal>
#include <sys/resource.h>

namespace gradc::rt {

/// While it lives no file can grow past `bytes`: writes fail as they do on a full disk (EFBIG).
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  FileSizeLimit(const FileSizeLimit &) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  rlimit before_;
  void (*handler_)(int);
};

/// While it lives the process can have `count` descriptors, those that are open already included.
class DescriptorLimit {
public:
  explicit DescriptorLimit(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &limited);
  }
  DescriptorLimit(const DescriptorLimit &) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_;
};

} // namespace gradc::rt
