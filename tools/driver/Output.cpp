// What a compile writes: a phase's module, the kernels' code, or an object file and the executable.
#include "codegen/Link.h"
#include "codegen/MachineFault.h"
#include "codegen/cpu/ObjectFile.h"
#include "codegen/host/StepProgram.h"
#include "tools/driver/Compile.h"
#include "tools/driver/LossChunk.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace gradc {

namespace {

/// Closes a written file; what it could not hold is the machine's fault.
Failure closed(llvm::raw_fd_ostream &file, const std::string &path) {
  file.close();
  if (!file.has_error())
    return {};
  std::error_code error = file.error();
  file.clear_error(); // else the stream's destructor would abort
  return {Exit::machineFault, path + ": cannot be written: " + error.message()};
}

/// Whose fault an error of code generation is.
Exit exitOf(const llvm::Error &error, Exit otherwise) {
  return error.isA<codegen::MachineFault>() ? Exit::machineFault : otherwise;
}

} // namespace

/// Whether an object file or an executable comes of it.
bool Compiler::writesProgram() const {
  return request.emit == "exe" && (!request.to || *request.to >= Phase::codegen);
}

/// An output must not be the model itself, nor a device or pipe where an executable replaces it.
Failure Compiler::checkOutput() const {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<128> config(request.model);
  llvm::sys::path::append(config, "config.json");
  for (llvm::StringRef input : {llvm::StringRef(request.model), config.str()})
    if (fs::equivalent(input, request.output))
      return {Exit::userError,
              "-o " + request.output + " is the model itself; choose another name"};
  if (writesProgram() && fs::exists(request.output) && !fs::is_regular_file(request.output))
    return {Exit::userError, "-o " + request.output + " is no regular file; choose another name"};
  return {};
}

/// A target that exists and can have the output that is asked for.
Failure Compiler::checkTarget() {
  if (Failure failure = chooseBackend())
    return failure;
  if (request.emulate && !writesProgram())
    return {Exit::userError,
            "--emulate is for executables, and none is asked for; leave it out, "
            "or leave out " +
                (request.emit == "exe" ? "--compile-to " + nameOf(*request.to).str()
                                       : "--emit " + request.emit)};
  return {};
}

Failure Compiler::compile() {
  if (Failure failure = checkOutput())
    return failure;
  // Before any work, unless the target is what a resumed module was planned for.
  if (!request.from)
    if (Failure failure = checkTarget())
      return failure;
  if (Failure failure = plan())
    return failure;
  if (request.from)
    if (Failure failure = checkTarget())
      return failure;
  if (request.to && *request.to <= Phase::memoryPlan)
    return writeModule(request.output);
  if (request.emit != "exe")
    return timed(Phase::codegen, [&] { return emitCode(); });
  return generate();
}

codegen::CompileFlags Compiler::flags() const {
  return {model.info.microBatch,
          model.info.seq,
          request.passes.gradAccum,
          request.passes.optimizer,
          request.init,
          request.passes.fuse,
          request.passes.epilogues,
          request.recompute,
          request.passes.precision,
          request.passes.float8Scaling,
          formatLossChunk(request.passes.lossChunk),
          request.passes.weightPanels,
          request.passes.streams,
          model.info.documentSeparator,
          request.gemm,
          request.target,
          request.emulate,
          backend->host()};
}

Failure Compiler::generate() {
  if (request.to == Phase::codegen)
    return timed(Phase::codegen, [&] { return writeObject(request.output); });
  llvm::SmallString<128> object;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(request.output + ".%%%%%%.o", object))
    return {Exit::machineFault, request.output + ": cannot be written: " + error.message() +
                                    "; choose a folder that exists and has room"};
  Failure failure = timed(Phase::codegen, [&] { return writeObject(object.str().str()); });
  if (!failure)
    failure = timed(Phase::link, [&]() -> Failure {
      llvm::Error error =
          codegen::linkExecutable(object.str().str(), request.output, backend->runtime().libraries);
      return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
    });
  llvm::sys::fs::remove(object);
  return failure;
}

Failure Compiler::writeObject(const std::string &path) {
  llvm::LLVMContext llvmContext;
  auto object = backend->hostModule(module(), llvmContext);
  if (llvm::Error error = object.takeError()) {
    Exit whose = exitOf(error, Exit::defect);
    return diagnosed(whose, oneLine(std::move(error)));
  }
  codegen::emitStepProgram(module(), metadata(), backend->runtime().deviceSymbol, **object);
  llvm::Error error = codegen::writeObjectFile(**object, backend->host(), path);
  return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
}

/// The kernels' code as --emit asks for it.
llvm::Expected<std::string> Compiler::printedCode() const {
  if (request.emit == "ptx")
    return backend->assembly(module());
  if (request.emit == "cubin")
    return backend->machineCode(module());
  llvm::LLVMContext llvmContext;
  auto kernels = backend->lowerKernels(module(), llvmContext);
  if (!kernels)
    return kernels.takeError();
  std::string text;
  llvm::raw_string_ostream(text) << **kernels;
  return text;
}

Failure Compiler::emitCode() {
  llvm::Expected<std::string> code = printedCode();
  if (llvm::Error error = code.takeError()) {
    Exit whose = exitOf(error, Exit::userError);
    return diagnosed(whose, oneLine(std::move(error)));
  }
  std::error_code error;
  llvm::raw_fd_ostream file(request.output, error);
  if (error)
    return {Exit::machineFault, request.output + ": cannot be written: " + error.message()};
  file << *code;
  return closed(file, request.output);
}

Failure Compiler::writeModule(const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return {Exit::machineFault, path + ": cannot be written: " + error.message()};
  // Locations name layers, for a later compile to go on; people read without.
  bool isForPeople = request.emit == "nn" || request.emit == "exec";
  module()->print(file, OpPrintingFlags().enableDebugInfo(!isForPeople));
  file << "\n";
  return closed(file, path);
}

} // namespace gradc
