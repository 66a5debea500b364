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
                            ArrayRef<int64_t> strides) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto fused = dyn_cast<FusedOp>(op)) {
    stream << row::print(buildClusterProgram(fused, strides).program);
    return text;
  }
  RuntimeSizes sizes = library.runtimeSizes(op);
  stream << op->getName() << op->getPropertiesAsAttribute();
  for (Type type : op->getOperandTypes())
    printType(type, sizes, stream << " ");
  for (Type type : op->getResultTypes())
    printType(type, sizes, stream << " -> ");
  for (int64_t stride : strides)
    stream << ", " << stride;
  return text;
}

} // namespace gradc
