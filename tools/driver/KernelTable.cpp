// Columns of figures, and sentences for what they do not say.
#include "tools/driver/KernelTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace json = llvm::json;

namespace gradc {
namespace {

struct Row {
  std::string name, reason;
  int64_t launches = 0, leastBytes = 0, leastFlops = 0;
  std::optional<int64_t> bytes, flops; ///< none: not counted
  bool isLibrary = false;

  int64_t mostBytes() const { return bytes.value_or(leastBytes); }
};

Row rowOf(const json::Object &kernel) {
  Row row;
  row.name = kernel.getString("name").value_or("").str();
  row.reason = kernel.getString("reason").value_or("").str();
  row.launches = kernel.getInteger("launches").value_or(0);
  row.leastBytes = kernel.getInteger("least_bytes").value_or(0);
  row.leastFlops = kernel.getInteger("least_flops").value_or(0);
  row.bytes = kernel.getInteger("bytes");
  row.flops = kernel.getInteger("flops");
  row.isLibrary = kernel.getBoolean("library").value_or(false);
  return row;
}

/// Millions and the ratio to the least; dashes where it is not counted.
void printFigures(std::optional<int64_t> count, int64_t least, llvm::raw_ostream &out) {
  constexpr double million = 1e6;
  double fewest = static_cast<double>(least) / million;
  if (!count) {
    out << llvm::format(" %12s %12.3f %6s", "-", fewest, "-");
    return;
  }
  double does = static_cast<double>(*count) / million;
  out << llvm::format(" %12.3f %12.3f ", does, fewest);
  if (least > 0)
    out << llvm::format("%6.2f", does / fewest);
  else
    out << llvm::format("%6s", "-");
}

void printRow(const Row &row, llvm::raw_ostream &out) {
  out << llvm::format("%8lld", static_cast<long long>(row.launches));
  printFigures(row.bytes, row.leastBytes, out);
  printFigures(row.flops, row.leastFlops, out);
  out << "  " << row.name << "\n";
}

bool isAbove(std::optional<int64_t> count, int64_t least) { return count && *count > least; }

Row sumOf(llvm::ArrayRef<Row> rows) {
  Row sum;
  sum.name = "sum";
  sum.bytes = sum.flops = 0;
  for (const Row &row : rows) {
    sum.launches += row.launches;
    sum.leastBytes += row.leastBytes;
    sum.leastFlops += row.leastFlops;
    *sum.bytes += row.mostBytes();
    *sum.flops += row.flops.value_or(row.leastFlops);
  }
  return sum;
}

/// Why kernels do more than the fewest, and what figures are not the kernels' own.
void printReasons(llvm::ArrayRef<Row> rows, llvm::raw_ostream &out) {
  for (const Row &row : rows)
    if (isAbove(row.bytes, row.leastBytes) || isAbove(row.flops, row.leastFlops))
      out << row.name << ": " << (row.reason.empty() ? "not said why" : row.reason) << "\n";
  if (llvm::any_of(rows, [](const Row &row) { return !row.bytes; }))
    out << "-: this target does not count it; the sum takes the fewest\n";
  if (llvm::any_of(rows, [](const Row &row) { return row.isLibrary; }))
    out << "gemm_MxNxK: the library's, taken to read each operand once\n";
}

void printLayers(const json::Object &metadata, llvm::raw_ostream &out) {
  const json::Object *launches = metadata.getObject("launches");
  const json::Array *layers = launches ? launches->getArray("layers") : nullptr;
  if (!layers || layers->empty())
    return;
  int64_t fewest = INT64_MAX, most = 0;
  for (const json::Value &layer : *layers) {
    fewest = std::min(fewest, layer.getAsInteger().value_or(0));
    most = std::max(most, layer.getAsInteger().value_or(0));
  }
  out << "launches a layer, forward and backward: " << fewest;
  if (most > fewest)
    out << " to " << most;
  out << "; of no layer: " << launches->getInteger("others").value_or(0) << "\n";
}

} // namespace

void printKernelTable(const json::Object &metadata, llvm::raw_ostream &out) {
  std::vector<Row> rows;
  std::string idle;
  if (const json::Array *kernels = metadata.getArray("kernels"))
    for (const json::Value &kernel : *kernels)
      if (const json::Object *object = kernel.getAsObject()) {
        Row row = rowOf(*object);
        if (row.launches > 0)
          rows.push_back(std::move(row));
        else
          idle += " " + row.name;
      }
  llvm::stable_sort(rows, [](const Row &a, const Row &b) { return a.mostBytes() > b.mostBytes(); });
  out << "== kernels\n";
  out << "launches           MB       fewest  ratio        MFLOP       fewest  ratio  kernel\n";
  for (const Row &row : rows)
    printRow(row, out);
  printRow(sumOf(rows), out);
  printReasons(rows, out);
  printLayers(metadata, out);
  if (!idle.empty())
    out << "not in a step:" << idle << "\n";
  out << "\n";
}

} // namespace gradc
