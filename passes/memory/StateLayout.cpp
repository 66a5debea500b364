// Offsets of what lives between steps, and of read-only data.
#include "passes/memory/StateLayout.h"
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;

namespace {
int64_t roundUp64(int64_t bytes) { return (bytes + 63) / 64 * 64; }
} // namespace

const StateSlot &StateLayout::add(DictionaryAttr slot, DictionaryAttr parameter,
                                  RankedTensorType type) {
  auto [entry, isNew] = placed.insert({slot, StateSlot{slot, parameter, type, end}});
  if (isNew)
    end += roundUp64(nn::byteSize(type));
  return entry->second;
}

int64_t StateLayout::reserve(int64_t bytes) {
  int64_t offset = end;
  end += roundUp64(bytes);
  return offset;
}

int64_t ConstantLayout::add(ElementsAttr value) {
  auto [entry, isNew] = offsets.try_emplace(value, end);
  if (isNew) {
    list.push_back({value, end});
    end += roundUp64(nn::byteSize(value.getType()));
  }
  return entry->second;
}
