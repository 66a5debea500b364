// What gradc prints.
#include "tools/driver/Report.h"
#include "ir/Exec.h"
#include "ir/Explanation.h"
#include "tools/driver/ByteSize.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace gradc {
namespace {

/// A number with a space between each three digits.
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

int64_t planned(const Compiler &compiler, llvm::StringRef name) {
  auto plan = compiler.module()->getAttrOfType<DictionaryAttr>("gradc.plan");
  return plan.getAs<IntegerAttr>(name).getInt();
}

/// What was decided, behind the topic's name: the first line.
void printDecision(const Compiler &compiler, llvm::StringRef wanted, llvm::raw_ostream &out) {
  forEachExplanation(compiler.module(), [&](llvm::StringRef topic, ArrayRef<Attribute> lines) {
    if (topic == wanted)
      for (Attribute line : lines.take_front())
        out << llvm::left_justify(topic, 13) << cast<StringAttr>(line).getValue() << "\n";
  });
}

void printMemory(const Compiler &compiler, const CompileRequest &request, llvm::raw_ostream &out) {
  codegen::MemoryByKind memory = codegen::memoryByKind(compiler.module());
  int64_t tokens = compiler.info().microBatch * compiler.info().seq * request.passes.gradAccum;
  out << "model        " << compiler.info().family << ", " << grouped(memory.parameterCount)
      << " parameters\n";
  out << "step         " << request.passes.gradAccum << " x " << compiler.info().microBatch << " x "
      << compiler.info().seq << " = " << grouped(tokens) << " tokens, "
      << llvm::format("%.1f GFLOP", static_cast<double>(planned(compiler, "flops")) / 1e9) << "\n";
  out << "memory       parameters " << formatByteSize(memory.parameters) << ", optimizer "
      << formatByteSize(memory.optimizer) << ", gradients " << formatByteSize(memory.gradients)
      << ", activations " << formatByteSize(memory.activations) << ", workspace "
      << formatByteSize(memory.workspace) << "\n";
  printDecision(compiler, "loss", out); // the logits are the largest tensor of most steps
  if (request.recompute != "none")
    printDecision(compiler, "recompute", out);
  printDecision(compiler, "streams", out);
  if (compiler.gaveUpStreams())
    out << "streams      1: a second one does not fit the memory\n";
  out << "peak         " << formatByteSize(memory.peak) << " (arena "
      << formatByteSize(planned(compiler, "arena_bytes")) << ", "
      << llvm::format("%.1f %%", 100.0 * static_cast<double>(planned(compiler, "arena_bytes")) /
                                     static_cast<double>(std::max<int64_t>(
                                         1, planned(compiler, "arena_lower_bound"))))
      << " of its lower bound)\n";
}

void printProducts(const Compiler &compiler, llvm::raw_ostream &out) {
  if (!compiler.productsLine().empty())
    out << "products     " << compiler.productsLine() << "\n";
}

} // namespace

void printSummary(const Compiler &compiler, const CompileRequest &request, llvm::raw_ostream &out) {
  printMemory(compiler, request, out);
  printProducts(compiler, out);
  int64_t kernels = 0, launches = 0, products = 0;
  for (auto kernel : compiler.module().getOps<exec::KernelOp>()) {
    (void)kernel;
    ++kernels;
  }
  for (auto program : compiler.module().getOps<exec::ProgramOp>())
    if (program.getSymName() == "train_step")
      program.walk([&](Operation *op) {
        auto launch = dyn_cast<exec::LaunchOp>(op);
        launches += isa<exec::LaunchOp, exec::GemmOp>(op);
        products += isa<exec::GemmOp>(op) || (launch && launch.getProduct());
      });
  double total = 0;
  for (auto &[phase, time] : compiler.timings())
    total += time;
  out << "kernels      " << kernels << " distinct; a step launches " << launches << ", " << products
      << " of them matrix products\n";
  out << "wrote        " << request.output << " in " << llvm::format("%.1f s", total) << "\n";
}

void printPlan(const Compiler &compiler, const CompileRequest &request, bool json,
               llvm::raw_ostream &out) {
  if (!json) {
    printMemory(compiler, request, out);
    return printProducts(compiler, out);
  }
  codegen::MemoryByKind memory = codegen::memoryByKind(compiler.module());
  int64_t tokens = compiler.info().microBatch * compiler.info().seq * request.passes.gradAccum;
  int64_t flops = planned(compiler, "flops");
  // Step time and MFU come with the machine model; null says that they are not known.
  llvm::json::Object root{{"parameters", memory.parameterCount},
                          {"flops_per_token", flops / std::max<int64_t>(1, tokens)},
                          {"flops_per_step", flops},
                          {"memory", llvm::json::Object{{"parameters", memory.parameters},
                                                        {"gradients", memory.gradients},
                                                        {"optimizer", memory.optimizer},
                                                        {"activations", memory.activations},
                                                        {"workspace", memory.workspace},
                                                        {"peak", memory.peak}}},
                          {"step_seconds", nullptr},
                          {"mfu", nullptr}};
  out << llvm::json::Value(std::move(root)) << "\n";
}

void printTimings(const Compiler &compiler, llvm::raw_ostream &out) {
  for (auto &[phase, time] : compiler.timings())
    out << llvm::format("%9.3f s  ", time) << nameOf(phase) << "\n";
}

} // namespace gradc
