// See Documents.h.
#include "codegen/cpu/Documents.h"
#include "codegen/cpu/KernelBuilder.h"

using namespace mlir;
namespace gradc::codegen {

int64_t taskCount(const DocumentsSpec &s, int64_t extent) { return extent / s.seq; }

func::FuncOp emitDocuments(ModuleOp module, StringRef name, const DocumentsSpec &spec,
                           const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  Value row = k.mul(k.task(), spec.seq), separator = k.index(spec.separator);
  auto ofRow = [&](int buffer) { return k.at(k.buffer(buffer), row); };
  Value tokens = ofRow(0), firstKeys = ofRow(1), positions = ofRow(2);
  k.forRange(k.index(0), k.index(spec.seq), 1, k.index(0),
             [&](Value place, ArrayRef<Value> carried) {
               Value start = carried[0];
               k.storeInt(start, k.at(firstKeys, place));
               k.storeInt(k.sub(place, start), k.at(positions, place));
               Value ends = k.equal(k.loadInt(k.at(tokens, place)), separator);
               return SmallVector<Value>{k.select(ends, k.add(place, 1), start)};
             });
  return k.finish();
}

} // namespace gradc::codegen
