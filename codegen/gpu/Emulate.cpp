// The module as a whole, and each kernel's frame: texts, shared memory, descriptor.
#include "codegen/gpu/Emulate.h"

#include "codegen/gpu/KernelEmulation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace gradc::codegen::gpu {

llvm::FunctionCallee declareEmulated(llvm::Module &module, llvm::StringRef symbol) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *V = llvm::Type::getVoidTy(context), *P = llvm::PointerType::get(context, 0), *S = P,
             *L = llvm::Type::getInt64Ty(context), *I = llvm::Type::getInt32Ty(context),
             *H = llvm::Type::getInt16Ty(context), *F = llvm::Type::getFloatTy(context);
  llvm::FunctionType *type = nullptr;
  auto setType = [&](llvm::Type *result, std::initializer_list<llvm::Type *> parameters = {}) {
    type = llvm::FunctionType::get(result, parameters, false);
  };
#define GRADC_EMULATED(name, result, ...)                                                          \
  if (symbol == #name)                                                                             \
    setType(result __VA_OPT__(, {__VA_ARGS__}));
#include "runtime/emulator/Functions.def"
#undef GRADC_EMULATED
#define GRADC_COLLECTIVE(name)                                                                     \
  if (symbol == #name)                                                                             \
    setType(V, {P});
#include "runtime/emulator/Collectives.def"
#undef GRADC_COLLECTIVE
  assert(type && "a symbol of Functions.def or Collectives.def");
  llvm::FunctionCallee function = module.getOrInsertFunction(symbol, type);
  llvm::cast<llvm::Function>(function.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

int64_t declaredThreads(const llvm::Function &kernel) {
  llvm::StringRef declared = kernel.getFnAttribute("nvvm.reqntid").getValueAsString();
  int64_t threads = 0;
  declared.consumeInteger(10, threads);
  return threads;
}

KernelEmulation::KernelEmulation(llvm::Function &kernel)
    : kernel(kernel), module(*kernel.getParent()), context(kernel.getContext()), b(context),
      i32(llvm::Type::getInt32Ty(context)), i64(llvm::Type::getInt64Ty(context)),
      pointerType(llvm::PointerType::get(context, 0)),
      siteType(llvm::StructType::get(
          context, {pointerType, i64, i64, i64, pointerType, i64, i64, pointerType})) {}

llvm::Error KernelEmulation::unsupported(const llvm::Instruction &instruction,
                                         const llvm::Twine &what) {
  std::string description = texts.lookup(&instruction);
  return llvm::createStringError("kernel " + kernel.getName() + ": the emulator does not know " +
                                 what + ": " + description);
}

llvm::Error KernelEmulation::run() {
  if (kernel.arg_empty() || !kernel.getArg(kernel.arg_size() - 1)->getType()->isIntegerTy(64))
    return llvm::createStringError("kernel " + kernel.getName() +
                                   ": expected the extent (i64) as its last parameter");
  for (llvm::Argument &argument : llvm::drop_end(kernel.args()))
    if (!argument.getType()->isPointerTy())
      return llvm::createStringError("kernel " + kernel.getName() +
                                     ": expected a pointer a buffer before the extent");
  takeDownTexts();
  placeSharedVariables();
  llvm::SmallVector<llvm::Instruction *> instructions;
  for (llvm::Instruction &instruction : llvm::instructions(kernel))
    instructions.push_back(&instruction);
  for (llvm::Instruction *instruction : instructions)
    if (llvm::Error error = rewrite(*instruction))
      return error;
  replaceSharedVariables();
  return llvm::Error::success();
}

/// Reports show the instructions as they were given, by the numbers that they have there. All are
/// printed at once: each alone would look through the whole module.
void KernelEmulation::takeDownTexts() {
  std::string whole;
  llvm::raw_string_ostream stream(whole);
  kernel.print(stream);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(whole).split(lines, '\n');
  // An instruction's line is indented by two; the cases of a switch by more, but for their end.
  llvm::erase_if(lines, [](llvm::StringRef line) {
    return !line.consume_front("  ") || line.empty() || line.front() == ' ' || line.front() == ']';
  });
  assert(lines.size() == kernel.getInstructionCount() && "a line an instruction");
  for (auto [instruction, line] : llvm::zip(llvm::instructions(kernel), lines))
    texts[&instruction] = line.split(", !").first.trim().str(); // without metadata
}

llvm::Error KernelEmulation::rewrite(llvm::Instruction &instruction) {
  if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    if (load->isAtomic())
      return unsupported(instruction, "atomic loads");
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
    return announceAccess(instruction, load->getPointerOperand(), load->getType(), load->getAlign(),
                          /*isStore=*/false);
  }
  if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    if (store->isAtomic())
      return unsupported(instruction, "atomic stores");
    return announceAccess(instruction, store->getPointerOperand(),
                          store->getValueOperand()->getType(), store->getAlign(), /*isStore=*/true);
  }
  if (llvm::isa<llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(instruction))
    return unsupported(instruction, "atomic operations");
  if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
    return rewriteCall(*call);
  if (llvm::isa<llvm::InvokeInst, llvm::CallBrInst>(instruction))
    return unsupported(instruction, "this kind of call");
  return llvm::Error::success();
}

llvm::Constant *KernelEmulation::number(int64_t value) {
  return llvm::ConstantInt::getSigned(i64, value);
}

llvm::Constant *KernelEmulation::text(llvm::StringRef string) {
  llvm::Constant *characters = llvm::ConstantDataArray::getString(context, string);
  auto *global =
      new llvm::GlobalVariable(module, characters->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, characters, "gradc.text");
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global); // equal texts are one
  return global;
}

llvm::Constant *KernelEmulation::site(const llvm::Instruction &instruction, const Access &access,
                                      llvm::Constant *collective) {
  llvm::Constant *none = llvm::ConstantPointerNull::get(pointerType);
  int64_t offset = 0, bytes = 0;
  if (access.variable) {
    offset = sharedOffsets.lookup(access.variable);
    bytes = int64_t(module.getDataLayout().getTypeAllocSize(access.variable->getValueType()));
  }
  llvm::Constant *value = llvm::ConstantStruct::get(
      siteType,
      {text(texts.lookup(&instruction)), number(access.bytes), number(access.alignment),
       number(access.parameter), access.variable ? text(access.variable->getName()) : none,
       number(offset), number(bytes), collective ? collective : none});
  return new llvm::GlobalVariable(module, siteType, /*isConstant=*/true,
                                  llvm::GlobalValue::PrivateLinkage, value, "gradc.site");
}

void KernelEmulation::describe() {
  llvm::SmallVector<llvm::Constant *> names;
  for (llvm::Argument &argument : llvm::drop_end(kernel.args()))
    names.push_back(text(argument.getName()));
  int64_t buffers = int64_t(names.size());
  std::string name = kernel.getName().str();
  int64_t threads = declaredThreads(kernel);

  // GradcKernelFn: (buffers, extent, task); the task is the emulator's to know.
  kernel.setName(name + ".body");
  kernel.setLinkage(llvm::GlobalValue::InternalLinkage);
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {pointerType, i64, i64}, false);
  auto *thread =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name + ".thread", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", thread));
  llvm::SmallVector<llvm::Value *> arguments;
  for (auto [i, argument] : llvm::enumerate(llvm::drop_end(kernel.args()))) {
    llvm::Value *address =
        b.CreateLoad(pointerType, b.CreateConstInBoundsGEP1_64(pointerType, thread->getArg(0), i));
    arguments.push_back(argument.getType() == pointerType
                            ? address
                            : b.CreateAddrSpaceCast(address, argument.getType()));
  }
  arguments.push_back(thread->getArg(1));
  b.CreateCall(&kernel, arguments);
  b.CreateRetVoid();

  auto *list = llvm::ConstantArray::get(llvm::ArrayType::get(pointerType, names.size()), names);
  auto *namesGlobal =
      new llvm::GlobalVariable(module, list->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, list, "gradc.names");
  llvm::Constant *descriptor = llvm::ConstantStruct::getAnon(
      {thread, number(threads), number(staticSharedBytes), number(sharedCell), number(globalCell),
       number(buffers), namesGlobal});
  new llvm::GlobalVariable(module, descriptor->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, descriptor, name);
}

namespace {

/// What NVPTX's attributes promise of memory is not so on the host, where other fibres run inside
/// of calls.
void resetAttributes(llvm::Function &function, const CpuTarget &target) {
  llvm::LLVMContext &context = function.getContext();
  llvm::StringRef threads = function.getFnAttribute("nvvm.reqntid").getValueAsString();
  llvm::AttrBuilder attributes(context);
  attributes.addAttribute(llvm::Attribute::NoUnwind);
  attributes.addAttribute("target-cpu", target.cpu);
  attributes.addAttribute("target-features", target.features);
  if (!threads.empty())
    attributes.addAttribute("nvvm.reqntid", threads);
  function.setAttributes(
      llvm::AttributeList::get(context, llvm::AttributeList::FunctionIndex, attributes));
  function.setCallingConv(llvm::CallingConv::C);
  function.setComdat(nullptr);
}

} // namespace

llvm::Error emulateKernels(llvm::Module &module, const CpuTarget &target) {
  llvm::SmallVector<llvm::Function *> kernels;
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
      kernels.push_back(&function);
  // Sizes and offsets are the GPU's until all kernels are rewritten: the two layouts agree in them.
  for (llvm::Function *kernel : kernels) {
    resetAttributes(*kernel, target);
    KernelEmulation emulation(*kernel);
    if (llvm::Error error = emulation.run())
      return error;
    emulation.describe();
  }
  for (llvm::GlobalVariable &variable : llvm::make_early_inc_range(module.globals()))
    if (variable.getAddressSpace() == 3 && variable.use_empty())
      variable.eraseFromParent();
  if (llvm::NamedMDNode *annotations = module.getNamedMetadata("nvvm.annotations"))
    annotations->eraseFromParent();
  llvm::Triple triple(target.triple);
  module.setTargetTriple(triple);
  module.setDataLayout(triple.computeDataLayout());
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream))
    return llvm::createStringError("an emulated module does not verify: " + message);
  return llvm::Error::success();
}

} // namespace gradc::codegen::gpu
