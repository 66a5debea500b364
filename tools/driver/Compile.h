// A compile from model definition to executable, phase by phase.
#pragma once

#include "codegen/Backend.h"
#include "codegen/Metadata.h"
#include "codegen/cpu/Target.h"
#include "frontend/Import.h"
#include "passes/Pipelines.h"
#include "tools/driver/Failure.h"
#include "tools/driver/ProductChoice.h"

#include <set>

namespace gradc {

/// What the command line asks of a compile.
struct CompileRequest {
  std::string model;  ///< a config.json, a folder holding one, or an .mlir module
  std::string output; ///< the executable, or the file for emit other than exe
  ImportOptions import;
  Options passes;
  std::string init = "family";
  std::string recompute = "none";   ///< none, cheap, full, or auto: as memoryBudget asks for
  int64_t memoryBudget = 0;         ///< bytes of planned peak; 0: this machine's memory
  std::string weightPanels = "off"; ///< off, on, or auto: where it is worth its memory
  std::string streams = "auto";     ///< 1, 2, or auto: 2 of a GPU where the budget allows it
  std::string emit = "exe";         ///< nn, exec, llvm, ptx, cubin or exe
  std::optional<Phase> from, to;
  std::string dumpFolder; ///< empty: no dumps
  bool timing = false;
  std::string gemm = "generated"; ///< generated, library, or auto: the faster one for each shape
  int64_t threads = codegen::CpuTarget::host().threads; ///< that products are cut for
  std::string target = "cpu";                           ///< cpu or cuda:ARCH
  bool emulate = false;                                 ///< a GPU's kernels, run on the host
  /// Names, without dashes, of the flags that were given, be it as their defaults.
  std::set<std::string> given;
};

class Compiler {
public:
  explicit Compiler(CompileRequest request);

  /// Everything up to and including the memory plan.
  Failure plan();
  /// plan(), then codegen and link, or the file that `emit` asks for.
  Failure compile();

  mlir::ModuleOp module() const { return *model.module; }
  /// The JSON that the executable of the planned module carries.
  std::string metadata() const { return codegen::executableMetadata(module(), flags()); }
  const ModelInfo &info() const { return model.info; }
  /// For each phase that ran, its seconds.
  llvm::ArrayRef<std::pair<Phase, double>> timings() const { return seconds; }
  /// How products were chosen, in a line; empty where this compile chose none.
  const std::string &productsLine() const { return chosenProducts; }
  /// Whether a second stream was planned for and did not fit.
  bool gaveUpStreams() const { return withoutStreams; }
  /// What went wrong and changes nothing but speed, a line each.
  llvm::ArrayRef<std::string> warnings() const { return warningLines; }

private:
  Failure import();
  Failure resume();
  Failure checkLossChunk() const;
  bool writesProgram() const;
  Failure checkOutput() const;
  Failure checkTarget();
  Failure runPasses(Phase phase);
  Failure runPhase(Phase phase, mlir::ModuleOp onto);
  Failure chooseRecompute();
  void chooseWeightPanels();
  Failure checkPlanned();
  void chooseStreams();
  bool takeBackWhatIsOnlyFaster();
  Failure planPeak(int level, int64_t &peak, int &levels);
  Failure generate();
  Failure writeObject(const std::string &path);
  Failure emitCode();
  llvm::Expected<std::string> printedCode() const;
  Failure chooseBackend();
  void reportProducts();
  Failure writeModule(const std::string &path);
  Failure timed(Phase phase, llvm::function_ref<Failure()> work);
  codegen::CompileFlags flags() const;
  Failure failureOf(Phase phase);
  Failure checkLimits(mlir::ModuleOp unplanned);
  Failure diagnosed(Exit code, const std::string &fallback);

  CompileRequest request;
  std::unique_ptr<ProductChoice> products; ///< where the request leaves it to measurements
  std::unique_ptr<codegen::Backend> backend;
  std::unique_ptr<mlir::MLIRContext> context;
  ImportedModel model;
  std::string firstDiagnostic, chosenProducts;
  bool withoutStreams = false;
  std::vector<std::string> warningLines;
  llvm::SmallVector<std::pair<Phase, double>> seconds;
};

} // namespace gradc
