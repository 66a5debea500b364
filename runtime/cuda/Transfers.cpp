// See Transfers.h.
#include "runtime/cuda/Transfers.h"

#include <algorithm>
#include <cstring>

namespace gradc::rt::cuda {
namespace {

constexpr int64_t halfBytes = Transfers::inboxBytes / 2;
constexpr int64_t alignment = 16; // of pieces in the inbox: copies of the GPU go by such words

} // namespace

Expected<Transfers> Transfers::create(const Driver &driver, Stream compute, Address inbox) {
  Transfers transfers(driver, compute, inbox);
  GRADC_RETURN_IF_ERROR(transfers.open());
  return transfers;
}

Status Transfers::open() {
  GRADC_ASSIGN_OR_RETURN(copies_, createStream(*driver_));
  for (Owned<void *> *pinned : {&pinnedOut_, &pinnedIn_}) {
    GRADC_ASSIGN_OR_RETURN(*pinned, createPinned(*driver_, std::size_t(inboxBytes)));
  }
  for (Owned<Event> *event :
       {&halves_[0].free, &halves_[1].free, &uploaded_, &computed_, &arrived_[0], &arrived_[1]}) {
    GRADC_ASSIGN_OR_RETURN(*event, createEvent(*driver_, eventWithoutTimes));
  }
  return Status();
}

Transfers::~Transfers() {
  if (copies_.get())
    (void)driver_->streamSynchronize.raw(copies_.get());
}

/// What was copied through the current half is on its way; the other one may still be.
Status Transfers::takeOtherHalf() {
  GRADC_RETURN_IF_ERROR(driver_->eventRecord(halves_[current_].free.get(), compute_));
  halves_[current_].isLeft = true;
  current_ ^= 1;
  Half &half = halves_[current_];
  if (half.isLeft)
    GRADC_RETURN_IF_ERROR(driver_->eventSynchronize(half.free.get()));
  half.used = 0;
  return Status();
}

Status Transfers::uploadPiece(Address to, const std::byte *data, int64_t bytes) {
  Half &half = halves_[current_];
  int64_t offset = current_ * halfBytes + half.used;
  half.used += (bytes + alignment - 1) / alignment * alignment;
  auto *staged = static_cast<std::byte *>(pinnedOut_.get()) + offset;
  std::memcpy(staged, data, std::size_t(bytes));
  Address inbox = inbox_ + Address(offset);
  GRADC_RETURN_IF_ERROR(driver_->memcpyHtoDAsync(inbox, staged, std::size_t(bytes), copies_.get()));
  GRADC_RETURN_IF_ERROR(driver_->eventRecord(uploaded_.get(), copies_.get()));
  GRADC_RETURN_IF_ERROR(driver_->streamWaitEvent(compute_, uploaded_.get(), 0));
  return driver_->memcpyDtoDAsync(to, inbox, std::size_t(bytes), compute_);
}

Status Transfers::upload(Address to, const void *data, int64_t bytes) {
  const auto *from = static_cast<const std::byte *>(data);
  while (bytes > 0) {
    if (halves_[current_].used == halfBytes)
      GRADC_RETURN_IF_ERROR(takeOtherHalf());
    int64_t piece = std::min(bytes, halfBytes - halves_[current_].used);
    GRADC_RETURN_IF_ERROR(uploadPiece(to, from, piece));
    to += Address(piece);
    from += piece;
    bytes -= piece;
  }
  return Status();
}

Status Transfers::download(Address from, void *data, int64_t bytes) {
  GRADC_RETURN_IF_ERROR(driver_->eventRecord(computed_.get(), compute_));
  GRADC_RETURN_IF_ERROR(driver_->streamWaitEvent(copies_.get(), computed_.get(), 0));
  int64_t pieces = (bytes + halfBytes - 1) / halfBytes;
  auto sizeOf = [&](int64_t piece) { return std::min(halfBytes, bytes - piece * halfBytes); };
  auto stagedOf = [&](int64_t piece) {
    return static_cast<std::byte *>(pinnedIn_.get()) + piece % 2 * halfBytes;
  };
  // While the host copies one piece to its place, the next one is on its way.
  for (int64_t piece = 0; piece <= pieces; ++piece) {
    if (piece < pieces) {
      GRADC_RETURN_IF_ERROR(driver_->memcpyDtoHAsync(stagedOf(piece),
                                                     from + Address(piece * halfBytes),
                                                     std::size_t(sizeOf(piece)), copies_.get()));
      GRADC_RETURN_IF_ERROR(driver_->eventRecord(arrived_[piece % 2].get(), copies_.get()));
    }
    if (piece == 0)
      continue;
    GRADC_RETURN_IF_ERROR(driver_->eventSynchronize(arrived_[(piece - 1) % 2].get()));
    std::memcpy(static_cast<std::byte *>(data) + (piece - 1) * halfBytes, stagedOf(piece - 1),
                std::size_t(sizeOf(piece - 1)));
  }
  return Status();
}

} // namespace gradc::rt::cuda
