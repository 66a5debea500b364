// Any bytes as a safetensors file: refused or read, never a crash, and no view outside the image.
#include "runtime/checkpoint/Safetensors.h"

#include <cstdlib>
#include <vector>

using namespace gradc::rt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const std::byte> image(reinterpret_cast<const std::byte *>(data), size);
  auto file = SafetensorsFile::parse(image, "fuzz");
  if (!file) {
    if (file.status().message().find('\n') != std::string::npos)
      std::abort(); // an error is one line
    return 0;
  }
  size_t covered = 0;
  for (const StoredTensor &tensor : file->tensors()) {
    if (!tensor.bytes.empty() && (tensor.bytes.data() < image.data() ||
                                  tensor.bytes.data() + tensor.bytes.size() > image.data() + size))
      std::abort();
    covered += tensor.bytes.size();
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
