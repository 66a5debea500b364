// CudaDevice: its memory, and what of the arena is reached.
#include <algorithm>

#include "runtime/cuda/CudaDevice.h"

namespace gradc::rt::cuda {

static constexpr uint32_t pattern = 0xA5C3F00D; // no number that kernels are likely to write

Status CudaDevice::allocate(const SpaceSizes &sizes) {
  GRADC_ASSIGN_OR_RETURN(Memory memory, Memory::create(*context_, sizes));
  memory_ = std::make_unique<Memory>(std::move(memory));
  GRADC_ASSIGN_OR_RETURN(Transfers transfers,
                         Transfers::create(driver(), compute_.get(), memory_->inbox()));
  transfers_ = std::make_unique<Transfers>(std::move(transfers));
  GRADC_RETURN_IF_ERROR(driver().memsetD32Async(
      memory_->spaces(), 0, std::size_t(memory_->spacesBytes()) / sizeof(uint32_t),
      compute_.get()));
  return transfers_->upload(memory_->space(GRADC_CONSTANT), sizes.constants, sizes.constantBytes);
}

Status CudaDevice::write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) {
  GRADC_ASSIGN_OR_RETURN(Address to, memory_->range(space, offset, bytes));
  return afterwards(transfers_->upload(to, data, bytes));
}

Status CudaDevice::read(GradcSpace space, int64_t offset, void *data, int64_t bytes) {
  GRADC_ASSIGN_OR_RETURN(Address from, memory_->range(space, offset, bytes));
  return afterwards(transfers_->download(from, data, bytes));
}

Status CudaDevice::fillArena() {
  return driver().memsetD32Async(memory_->space(GRADC_ARENA), pattern,
                                 std::size_t(memory_->size(GRADC_ARENA)) / sizeof(pattern),
                                 compute_.get());
}

Expected<int64_t> CudaDevice::arenaHighWater() {
  constexpr int64_t wordBytes = 2 * sizeof(pattern), mostWords = 1 << 19;
  int64_t words = memory_->size(GRADC_ARENA) / wordBytes;
  constexpr uint64_t whole = uint64_t(pattern) << 32 | pattern;
  std::vector<uint64_t> piece;
  while (words > 0) {
    piece.resize(std::size_t(std::min(words, mostWords)));
    int64_t first = words - int64_t(piece.size());
    GRADC_RETURN_IF_ERROR(
        read(GRADC_ARENA, first * wordBytes, piece.data(), int64_t(piece.size()) * wordBytes));
    while (!piece.empty() && piece.back() == whole)
      piece.pop_back();
    words = first + int64_t(piece.size());
    if (!piece.empty())
      break;
  }
  return words * wordBytes;
}

} // namespace gradc::rt::cuda
