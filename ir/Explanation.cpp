// See Explanation.h.
#include "ir/Explanation.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace gradc {

namespace {
constexpr llvm::StringLiteral attribute = "nn.explain";

void set(Operation *holder, StringRef topic, Attribute lines) {
  NamedAttrList topics(holder->getAttrOfType<DictionaryAttr>(attribute));
  topics.set(topic, lines);
  holder->setAttr(attribute, topics.getDictionary(holder->getContext()));
}
} // namespace

void explain(Operation *holder, StringRef topic, ArrayRef<std::string> lines) {
  Builder builder(holder->getContext());
  set(holder, topic, builder.getStrArrayAttr(SmallVector<StringRef>(lines.begin(), lines.end())));
}

void forEachExplanation(Operation *holder,
                        llvm::function_ref<void(StringRef, ArrayRef<Attribute>)> visit) {
  if (auto topics = holder->getAttrOfType<DictionaryAttr>(attribute))
    for (NamedAttribute topic : topics)
      visit(topic.getName(), cast<ArrayAttr>(topic.getValue()).getValue());
}

void copyExplanation(Operation *from, Operation *to, StringRef topic) {
  if (auto topics = from->getAttrOfType<DictionaryAttr>(attribute))
    if (Attribute lines = topics.get(topic))
      set(to, topic, lines);
}

std::string mebibytes(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f MiB", static_cast<double>(bytes) / 0x1p20);
  return text;
}

SmallVector<std::string> Tally::lines() const {
  SmallVector<std::string> all;
  for (auto &[line, count] : counts)
    all.push_back(std::to_string(count) + " x " + line);
  return all;
}

} // namespace gradc
