// Maps errno to the wording and exit code of a file error.
#include "runtime/data/FileError.h"

#include <cerrno>
#include <fmt/format.h>
#include <system_error>

namespace gradc::rt {

static bool usersPath(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
  case EISDIR:
  case EACCES:
  case EPERM:
  case EROFS:
  case ELOOP:
  case ENAMETOOLONG:
  case EINVAL:
    return true;
  default:
    return false;
  }
}

static std::string_view usualMend(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
  case ENAMETOOLONG:
    return "check the path";
  case EISDIR:
    return "name a file, not a folder";
  case EACCES:
  case EPERM:
  case EROFS:
    return "check its permissions or choose another folder";
  case ENOSPC:
  case EDQUOT:
    return "free some disk space or choose another folder";
  case EFBIG:
    return "raise the file size limit (ulimit -f) or choose another file system";
  case EMFILE:
  case ENFILE:
    return "raise the limit on open files (ulimit -n)";
  case ENOMEM:
    return "free some memory or raise the limit on address space (ulimit -v)";
  default:
    return "check the disk";
  }
}

Status fileError(std::string_view path, std::string_view action, int error, std::string_view mend) {
  std::string text =
      fmt::format("{}: cannot {}: {}; {}", path, action, std::generic_category().message(error),
                  mend.empty() ? usualMend(error) : mend);
  return usersPath(error) ? Status::user(std::move(text)) : Status::machine(std::move(text));
}

} // namespace gradc::rt
