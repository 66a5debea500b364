// See OpenFiles.h.
#include "runtime/data/OpenFiles.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gradc::rt {

void OpenFiles::add(const std::string &path, InputFile file) {
  std::lock_guard lock(mutex_);
  known_.push_back({path, file.size(), file.identity()});
  keep(known_.size() - 1, std::make_shared<const InputFile>(std::move(file)));
}

Expected<std::shared_ptr<const InputFile>> OpenFiles::use(size_t index) {
  std::lock_guard lock(mutex_);
  auto found = std::find_if(open_.begin(), open_.end(),
                            [&](const Open &each) { return each.index == index; });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return open_.back().file;
  }
  GRADC_ASSIGN_OR_RETURN(InputFile file, reopen(known_[index]));
  keep(index, std::make_shared<const InputFile>(std::move(file)));
  return open_.back().file;
}

Expected<InputFile> OpenFiles::reopen(const Known &known) {
  GRADC_ASSIGN_OR_RETURN(InputFile file, InputFile::open(known.path));
  if (file.identity() != known.identity)
    return Status::machine(fmt::format("{}: another file has taken its place since the run began; "
                                       "restore the file and run again",
                                       known.path));
  if (file.size() < known.size)
    return Status::machine(fmt::format("{}: has {} bytes, of {} when the run began: it was cut "
                                       "short meanwhile; restore the file and run again",
                                       known.path, file.size(), known.size));
  return file;
}

void OpenFiles::keep(size_t index, std::shared_ptr<const InputFile> file) {
  if (open_.size() == most)
    open_.erase(open_.begin());
  open_.push_back({index, std::move(file)});
}

} // namespace gradc::rt
