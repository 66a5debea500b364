// Kernels as text.
#include "passes/memory/KernelSignature.h"
#include "ir/Cluster.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

static void printType(Type type, RuntimeSizes sizes, llvm::raw_ostream &out) {
  if (sizes == RuntimeSizes::none)
    out << type;
  else
    out << getElementTypeOrSelf(type);
  if (sizes == RuntimeSizes::rows)
    out << "x" << rowSpaceOf(type).columns;
}

std::string kernelSignature(const KernelLibrary &library, Operation *op,
                            const KernelLayout &layout) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t alignment : layout.alignments)
    stream << alignment << " ";
  if (auto fused = dyn_cast<FusedOp>(op)) {
    stream << row::print(buildClusterProgram(fused, layout.rowStrides).program);
    return text;
  }
  RuntimeSizes sizes = library.runtimeSizes(op);
  stream << op->getName() << op->getPropertiesAsAttribute();
  for (Type type : op->getOperandTypes())
    printType(type, sizes, stream << " ");
  for (Type type : op->getResultTypes())
    printType(type, sizes, stream << " -> ");
  for (int64_t stride : layout.rowStrides)
    stream << ", " << stride;
  return text;
}

} // namespace gradc
