// A program's kernels as data: PTX and machine code, with a descriptor each.
#include "codegen/gpu/EmbeddedProgram.h"

#include "codegen/gpu/LoweredProgram.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/RegisterLimits.h"
#include "codegen/host/StepProgram.h"
#include "ir/Explanation.h"
#include "runtime/Abi.h"

#include "llvm/IR/Constants.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

/// The constants of GradcImage and GradcImages, whose fields are 64 bits wide.
class ImageTable {
public:
  ImageTable(const GpuTarget &target, llvm::Module &object) : target(target), object(object) {}

  void add(GradcImageKind kind, StringRef bytes) {
    llvm::Constant *data = global(
        llvm::ConstantDataArray::getString(object.getContext(), bytes, /*AddNull=*/false), "image");
    images.push_back(llvm::ConstantStruct::getAnon(
        {number(kind), number(target.capability), data, number(bytes.size())}));
  }

  void emit() {
    auto *list = llvm::ArrayType::get(images.front()->getType(), images.size());
    llvm::Constant *table = llvm::ConstantStruct::getAnon(
        {number(images.size()), global(llvm::ConstantArray::get(list, images), "images.list")});
    global(table, imagesSymbol);
  }

private:
  llvm::Constant *number(int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(object.getContext()), value);
  }
  llvm::Constant *global(llvm::Constant *value, StringRef name) {
    auto *variable = new llvm::GlobalVariable(object, value->getType(), /*isConstant=*/true,
                                              llvm::GlobalValue::InternalLinkage, value, name);
    variable->setAlignment(llvm::Align(64));
    return variable;
  }

  const GpuTarget &target;
  llvm::Module &object;
  SmallVector<llvm::Constant *> images;
};

/// A line for each kernel that its own limit of registers would have spilled.
SmallVector<std::string> spillLines(const Cubin &cubin) {
  SmallVector<std::string> lines;
  for (const KernelResources &kernel : cubin.kernels) {
    int64_t spilled = kernel.spillStoreBytes + kernel.spillLoadBytes;
    if (!kernel.limit && spilled == 0)
      continue;
    std::string with = !kernel.limit           ? ""
                       : kernel.limit->empty() ? " without a limit"
                                               : " with " + *kernel.limit;
    lines.push_back(llvm::formatv("{0}: {1} registers{2}, {3} bytes spilled a thread", kernel.name,
                                  kernel.registers, with, spilled));
  }
  return lines;
}

} // namespace

llvm::Error addEmbeddedKernels(ModuleOp program, const GpuTarget &target, llvm::Module &object) {
  auto lowered = lowerProgram(program, target, object.getContext());
  if (!lowered)
    return lowered.takeError();
  auto ptx = emitPtx(*lowered->module, target);
  if (!ptx)
    return ptx.takeError();
  ImageTable images(target, object);
  images.add(GRADC_PTX, StringRef(ptx->c_str(), ptx->size() + 1)); // with its zero byte
  SmallVector<std::string> spills;
  std::string said = "PTX for " + target.name() + " and later, " + mebibytes(ptx->size());
  if (std::string ptxas = findPtxas(); !ptxas.empty()) {
    llvm::Expected<Cubin> cubin = assembleWithoutSpills(*ptx, target, ptxas);
    if (!cubin)
      return cubin.takeError();
    images.add(GRADC_CUBIN, cubin->image);
    spills = spillLines(*cubin);
    said += "; a cubin for " + target.name() + ", " + mebibytes(cubin->image.size());
  } else {
    said += "; no cubin, for want of ptxas: the driver assembles the PTX when it is loaded";
  }
  images.emit();
  SmallVector<std::string> lines = {said};
  llvm::append_range(lines, spills);
  explain(program, "embedded", lines);
  for (auto kernel : program.getOps<exec::KernelOp>())
    addKernelDescriptor(kernel, *lowered, /*emulated=*/nullptr, object);
  return llvm::Error::success();
}

} // namespace gradc::codegen::gpu
