// The driver's functions: memory and copies.
#include "tests/cuda/FakeDriver/Calls.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {

bool inRange(Address address, std::size_t bytes) { return machine().reachOf(address) >= bytes; }

} // namespace

extern "C" {

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER_READY(cuMemGetInfo_v2);
  *free = *total = machine().memoryBytes;
  return success;
}
Result cuMemAlloc_v2(Address *address, size_t bytes) {
  ENTER_READY(cuMemAlloc_v2);
  NEED_NO_CAPTURE();
  return machine().allocate(address, bytes);
}
Result cuMemFree_v2(Address address) {
  Result told = machine().enter("cuMemFree_v2");
  NEED_NO_CAPTURE();
  Result released = machine().release(address);
  return released == success ? told : released;
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER_READY(cuMemHostAlloc);
  NEED_NO_CAPTURE();
  NEED(bytes > 0 && flags == 0, errorInvalidValue);
  auto *bytesOf = new std::byte[bytes];
  std::memset(bytesOf, 0xFF, bytes);
  machine().pinned[bytesOf] = bytes;
  *memory = bytesOf;
  return success;
}
Result cuMemFreeHost(void *memory) {
  Result told = machine().enter("cuMemFreeHost");
  auto found = machine().pinned.find(static_cast<std::byte *>(memory));
  NEED(found != machine().pinned.end(), errorInvalidValue);
  for (Stream stream : machine().streams)
    if (!stream->queue.empty())
      machine().complain(success, "pinned memory is freed while work is queued");
  delete[] found->first;
  machine().pinned.erase(found);
  return told;
}
Result cuMemsetD32Async(Address address, unsigned value, size_t count, Stream stream) {
  ENTER_READY(cuMemsetD32Async);
  NEED(count == 0 || (address % 4 == 0 && inRange(address, count * 4)), errorInvalidValue);
  return queueWork(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(address), count, value);
    return Result(success);
  });
}
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyHtoDAsync_v2);
  NEED(inRange(to, bytes), errorInvalidValue);
  if (!machine().isPinned(from, bytes))
    return machine().complain(errorInvalidValue, "an asynchronous copy from pageable memory");
  auto hash = XXH3_64bits(from, bytes);
  return queueWork(stream, [=] {
    if (XXH3_64bits(from, bytes) != hash)
      return machine().complain(errorUnknown, "memory changed before it was copied to the GPU");
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return Result(success);
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyDtoHAsync_v2);
  NEED(inRange(from, bytes), errorInvalidValue);
  if (!machine().isPinned(to, bytes))
    return machine().complain(errorInvalidValue, "an asynchronous copy to pageable memory");
  std::memset(to, 0xFF, bytes); // NaN to whoever reads too early
  return queueWork(stream, [=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return Result(success);
  });
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyDtoDAsync_v2);
  NEED(inRange(to, bytes) && inRange(from, bytes), errorInvalidValue);
  NEED(to + bytes <= from || from + bytes <= to, errorInvalidValue);
  return queueWork(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return Result(success);
  });
}

} // extern "C"
