// Any bytes as a safetensors file: refused or read, never a crash, and no tensor outside the image.
#include "runtime/checkpoint/Safetensors.h"

#include <cstdlib>
#include <vector>

using namespace gradc::rt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const std::byte> image(reinterpret_cast<const std::byte *>(data), size);
  auto file = SafetensorsFile::parse(FileBytes(image), "fuzz");
  if (!file) {
    if (file.status().message().find('\n') != std::string::npos)
      std::abort(); // an error is one line
    return 0;
  }
  size_t covered = 0;
  for (const StoredTensor &tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes.size()); // read outside is the sanitizer's to find
    if (!tensor.bytes.read(bytes).ok())
      std::abort();
    covered += bytes.size();
    std::vector<float> floats(tensor.elementCount());
    (void)toFloats(tensor, floats.data());
    if (!file->find(tensor.name))
      std::abort();
  }
  uint64_t header = 0;
  __builtin_memcpy(&header, data, sizeof(header));
  if (covered != size - sizeof(header) - header)
    std::abort(); // every byte belongs to one tensor
  return 0;
}
