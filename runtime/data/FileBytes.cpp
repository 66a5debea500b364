// See FileBytes.h.
#include "runtime/data/FileBytes.h"

#include <cassert>
#include <cstring>

namespace gradc::rt {

FileBytes FileBytes::subspan(uint64_t first, uint64_t count) const {
  assert(first <= size_ && count <= size_ - first);
  FileBytes part = *this;
  part.offset_ += first;
  part.size_ = count;
  return part;
}

Status FileBytes::read(std::span<std::byte> into) const {
  assert(into.size() <= size_);
  if (file_)
    return file_->read(offset_, into);
  if (!into.empty())
    std::memcpy(into.data(), image_ + offset_, into.size());
  return {};
}

} // namespace gradc::rt
