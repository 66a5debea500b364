// Assembles, retargets, compiles and loads kernels.
#include "tests/emulator/LoadedModule.h"

#include "codegen/gpu/Emulate.h"
#include "runtime/emulator/Functions.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

constexpr const char *header = R"(
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
)";

llvm::Expected<std::unique_ptr<llvm::Module>> emulated(const std::string &text,
                                                       llvm::LLVMContext &context) {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(header + text, diagnostic, context);
  if (!module)
    return llvm::createStringError("line " + llvm::Twine(diagnostic.getLineNo()) + ": " +
                                   diagnostic.getMessage());
  if (llvm::Error error = codegen::gpu::emulateKernels(*module, codegen::CpuTarget::host()))
    return error;
  return module;
}

llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> load(std::unique_ptr<llvm::Module> module,
                                                       std::unique_ptr<llvm::LLVMContext> context,
                                                       std::vector<rt::emulator::Symbol> symbols) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto machine = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!machine)
    return machine.takeError();
  machine->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less); // most of the time is the emulator's
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*machine)).create();
  if (!jit)
    return jit.takeError();
  llvm::append_range(symbols, rt::emulator::symbols());
  llvm::orc::SymbolMap addresses;
  for (const rt::emulator::Symbol &symbol : symbols)
    addresses[(*jit)->mangleAndIntern(symbol.name)] = {
        llvm::orc::ExecutorAddr::fromPtr(symbol.address), llvm::JITSymbolFlags::Exported};
  llvm::orc::JITDylib &library = (*jit)->getMainJITDylib();
  if (llvm::Error error = library.define(llvm::orc::absoluteSymbols(std::move(addresses))))
    return error;
  if (llvm::Error error =
          (*jit)->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  return jit;
}

} // namespace

std::string LoadedModule::refusal(const std::string &text) {
  llvm::LLVMContext context;
  auto module = emulated(text, context);
  return module ? "" : llvm::toString(module.takeError());
}

LoadedModule::LoadedModule(std::unique_ptr<llvm::Module> module,
                           std::unique_ptr<llvm::LLVMContext> context,
                           const std::vector<rt::emulator::Symbol> &symbols) {
  auto loaded = load(std::move(module), std::move(context), symbols);
  if (loaded)
    jit = std::move(*loaded);
  else
    ADD_FAILURE() << llvm::toString(loaded.takeError());
}

LoadedModule::LoadedModule(const std::string &text) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = emulated(text, *context);
  if (module)
    *this = LoadedModule(std::move(*module), std::move(context));
  else
    ADD_FAILURE() << llvm::toString(module.takeError());
}

LoadedModule::LoadedModule(LoadedModule &&) = default;
LoadedModule &LoadedModule::operator=(LoadedModule &&) = default;
LoadedModule::~LoadedModule() = default;

void *LoadedModule::symbol(const std::string &name) const {
  if (!jit)
    return nullptr;
  auto symbol = jit->lookup(name);
  if (!symbol) {
    ADD_FAILURE() << llvm::toString(symbol.takeError());
    return nullptr;
  }
  return symbol->toPtr<void *>();
}

Launch::Launch(const LoadedModule &module, const std::string &name, int64_t blocks, int64_t threads)
    : name(name), launch{nullptr, module.kernel(name), threads, 0, blocks, 0, {}} {}

Launch &Launch::buffer(void *address, std::size_t bytes, bool writable) {
  launch.buffers.push_back({address, static_cast<int64_t>(bytes), writable});
  return *this;
}

rt::Status Launch::run(rt::WarpOrder order) {
  if (!launch.kernel)
    return rt::Status::user("no kernel was loaded");
  launch.name = name.c_str();
  return rt::Emulator(order).run(launch);
}

void expectReport(const rt::Status &status, const std::vector<std::string> &words) {
  EXPECT_EQ(status.code(), rt::ExitCode::defect);
  for (const std::string &word : words)
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "`" << word << "` is not in: " << status.message();
}

void expectOk(const rt::Status &status) { EXPECT_TRUE(status.ok()) << status.message(); }

} // namespace gradc
