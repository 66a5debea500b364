// checkWritable.
#include "runtime/app/OutputFiles.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

namespace gradc::rt {

Status checkWritable(const std::string &path) {
  if (path.empty())
    return Status();
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Status::user(fmt::format("{}: is a folder; give the name of a file in it", path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty())
    folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return Status::user(fmt::format("{}: cannot write into {}: {}; make the folder or choose "
                                    "another",
                                    path, folder, std::strerror(errno)));
  return Status();
}

Status checkDistinct(std::initializer_list<std::string> outputs,
                     std::initializer_list<std::string> inputs) {
  std::error_code error; // a file that does not exist is no other
  for (const std::string &output : outputs)
    for (const std::string &input : inputs)
      if (!output.empty() && !input.empty() && std::filesystem::equivalent(output, input, error))
        return Status::user(fmt::format(
            "{}: is read and would be written, too; give the output another name", output));
  return Status();
}

} // namespace gradc::rt
