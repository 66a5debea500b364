// See PeakTable.h.
#include "passes/memory/PeakTable.h"
#include "ir/Explanation.h"

#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace gradc {

namespace {

/// Buffers listed; the others are summed in one line.
constexpr size_t mostListed = 16;

/// "transformer.h.0.mlp: fused", the place of the op in the model and its kind.
std::string describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    stream << name.getName().getValue() << ": ";
  stream << op->getName().stripDialect();
  return text;
}

/// What each buffer is, by the command that first writes it.
std::map<int32_t, std::string> namesOf(const ProgramStorage &program) {
  std::map<int32_t, std::string> names;
  for (const Command &command : program.commands()) {
    for (const Storage &result : command.results)
      names.try_emplace(result.buffer, describe(command.op));
    if (command.workspace >= 0)
      names.try_emplace(command.workspace,
                        command.workspace == program.besideWorkspace
                            ? "workspace of products of stream " + std::to_string(command.stream)
                            : "workspace of " + describe(command.op));
  }
  return names;
}

/// The command index at which most bytes are alive.
int64_t peakIndex(const ProgramStorage &program) {
  std::map<int64_t, int64_t> changes;
  for (const MemoryBuffer &buffer : program.buffers)
    if (buffer.space == Space::arena) {
      changes[buffer.lower] += buffer.size;
      changes[buffer.upper] -= buffer.size;
    }
  int64_t alive = 0, most = -1, index = 0;
  for (auto [at, change] : changes) {
    alive += change;
    if (alive > most) {
      most = alive;
      index = at;
    }
  }
  return index;
}

} // namespace

SmallVector<std::string> peakTable(const ProgramStorage &program) {
  int64_t peak = peakIndex(program), total = 0, rest = 0;
  SmallVector<int32_t> alive;
  for (auto [i, buffer] : llvm::enumerate(program.buffers))
    if (buffer.space == Space::arena && buffer.lower <= peak && peak < buffer.upper) {
      alive.push_back(static_cast<int32_t>(i));
      total += buffer.size;
    }
  llvm::stable_sort(alive, [&](int32_t a, int32_t b) {
    return program.buffers[a].size > program.buffers[b].size;
  });
  std::map<int32_t, std::string> names = namesOf(program);
  SmallVector<std::string> lines{"most is alive at command " + std::to_string(peak) + ": " +
                                 std::to_string(alive.size()) + " buffers, " + mebibytes(total)};
  for (auto [i, number] : llvm::enumerate(alive)) {
    const MemoryBuffer &buffer = program.buffers[number];
    if (i >= mostListed) {
      rest += buffer.size;
      continue;
    }
    auto name = names.find(number);
    lines.push_back(mebibytes(buffer.size) + "  commands " + std::to_string(buffer.lower) + " to " +
                    std::to_string(buffer.upper - 1) + "  " +
                    (name == names.end() ? "carried over the microbatches" : name->second));
  }
  if (rest > 0)
    lines.push_back(mebibytes(rest) + "  in " + std::to_string(alive.size() - mostListed) +
                    " smaller ones");
  return lines;
}

} // namespace gradc
