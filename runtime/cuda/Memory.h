// The memory of a program on the GPU: its spaces, and the inbox of uploads, in one allocation.
#pragma once

#include <array>

#include "runtime/Device.h"
#include "runtime/cuda/Context.h"

namespace gradc::rt::cuda {

class Memory {
public:
  /// A machine status with the plan's numbers where less is free. What it holds is not set.
  static Expected<Memory> create(const GpuContext &context, const SpaceSizes &sizes);

  Address space(GradcSpace space) const { return base_[std::size_t(space)]; }
  int64_t size(GradcSpace space) const { return size_[std::size_t(space)]; }
  /// Transfers::inboxBytes of it.
  Address inbox() const { return inbox_; }
  /// The spaces side by side, without the inbox: uploads may fill that at any time.
  Address spaces() const { return memory_.get(); }
  int64_t spacesBytes() const { return int64_t(inbox_ - memory_.get()); }

  /// The address of a range of a space; a defect status where it is outside.
  Expected<Address> range(GradcSpace space, int64_t offset, int64_t bytes) const;
  Address resolve(const GradcBuffer &buffer, int64_t iteration) const {
    return base_[std::size_t(buffer.space)] +
           Address(buffer.offset + iteration * buffer.loopStride);
  }

private:
  Owned<Address> memory_;
  std::array<Address, 3> base_{};
  std::array<int64_t, 3> size_{};
  Address inbox_ = 0;
};

} // namespace gradc::rt::cuda
