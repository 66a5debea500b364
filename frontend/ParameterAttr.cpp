// Writing and completing `nn.param`.
#include "frontend/ParameterAttr.h"
#include "frontend/Config.h"
#include <cmath>

using namespace mlir;
using llvm::Twine;

namespace gradc {

static constexpr std::pair<ParameterClass, StringLiteral> classNames[] = {
    {ParameterClass::matrix, "matrix"},
    {ParameterClass::embedding, "embedding"},
    {ParameterClass::bias, "bias"},
    {ParameterClass::norm, "norm"},
};

static DictionaryAttr describe(Builder &builder, const ParameterSpec &spec, bool decay) {
  StringRef className;
  for (auto [value, name] : classNames)
    if (value == spec.parameterClass)
      className = name;
  auto named = [&](StringRef key, Attribute value) { return builder.getNamedAttr(key, value); };
  return builder.getDictionaryAttr({
      named("name", builder.getStringAttr(spec.name)),
      named("init_kind", builder.getStringAttr(spec.normal ? "normal" : "constant")),
      named(spec.normal ? "init_std" : "init_value", builder.getF64FloatAttr(spec.value)),
      named("class", builder.getStringAttr(className)),
      named("fan_in", builder.getI64IntegerAttr(spec.fanIn)),
      named("fan_out", builder.getI64IntegerAttr(spec.fanOut)),
      named("decay", builder.getBoolAttr(decay)),
  });
}

DictionaryAttr describeParameter(Builder &builder, const ParameterSpec &spec) {
  return describe(builder, spec, spec.shape.size() >= 2);
}

namespace {
/// Reads one user-written dictionary key by key; the first problem sticks.
class ParameterReader {
public:
  ParameterReader(DictionaryAttr given) : given(given) {}

  std::string text(StringRef key, StringRef fallback) {
    auto value = get<StringAttr>(key, "a string");
    return value ? value.getValue().str() : fallback.str();
  }
  double number(StringRef key, double fallback) {
    auto value = get<FloatAttr>(key, "a float, e.g. 0.02");
    return value ? value.getValueAsDouble() : fallback;
  }
  int64_t size(StringRef key, int64_t fallback) {
    auto value = get<IntegerAttr>(key, "an integer from 1");
    int64_t number = value ? value.getValue().trySExtValue().value_or(0) : fallback;
    if (number < 1)
      fail(inQuotes(key) + " must be an integer from 1");
    return number;
  }
  bool flag(StringRef key, bool fallback) {
    auto value = get<BoolAttr>(key, "true or false");
    return value ? value.getValue() : fallback;
  }
  void fail(const Twine &message) {
    if (problem.empty())
      problem = "nn.param: " + message.str();
  }
  std::string finish() {
    for (NamedAttribute entry : given)
      if (!llvm::is_contained(known, entry.getName().getValue()))
        fail("key " + inQuotes(entry.getName()) + " is not known; remove it");
    return problem;
  }

private:
  template <typename T> T get(StringRef key, StringRef expected) {
    known.push_back(key);
    Attribute value = given.get(key);
    if (value && !isa<T>(value))
      fail(inQuotes(key) + " must be " + expected);
    return dyn_cast_or_null<T>(value);
  }
  DictionaryAttr given;
  SmallVector<StringRef> known;
  std::string problem;
};
} // namespace

static ParameterClass readClass(ParameterReader &reader, ParameterClass fallback) {
  std::string name = reader.text("class", "");
  for (auto [value, known] : classNames)
    if (known == name)
      return value;
  if (!name.empty())
    reader.fail("class " + inQuotes(name) + " is not matrix, embedding, bias or norm");
  return fallback;
}

static void readInit(ParameterReader &reader, ParameterSpec &spec, bool isMatrix) {
  std::string kind = reader.text("init_kind", isMatrix ? "normal" : "constant");
  if (kind != "normal" && kind != "constant")
    reader.fail("init_kind " + inQuotes(kind) + " is not normal or constant");
  spec.normal = kind == "normal";
  spec.value = spec.normal ? reader.number("init_std", 0.02) : reader.number("init_value", 0);
  if (!std::isfinite(spec.value) || (spec.normal && spec.value < 0))
    reader.fail("the initial value must be finite, and a deviation not negative");
}

llvm::Expected<DictionaryAttr> completeParameter(DictionaryAttr given, RankedTensorType type) {
  if (!given)
    return inputError("a parameter needs nn.param = {name = \"…\"}; tokens and the last input come "
                      "after all parameters");
  bool isMatrix = type.getRank() >= 2;
  int64_t columns = type.getRank() == 0 ? 1 : type.getShape().back();
  int64_t rows = isMatrix ? type.getNumElements() / columns : columns;
  ParameterReader reader(given);
  ParameterSpec spec;
  spec.name = reader.text("name", "");
  if (spec.name.empty())
    reader.fail("\"name\" is missing");
  spec.shape.assign(type.getShape().begin(), type.getShape().end());
  readInit(reader, spec, isMatrix);
  spec.parameterClass = readClass(reader, isMatrix ? ParameterClass::matrix : ParameterClass::bias);
  spec.fanIn = reader.size("fan_in", rows);
  spec.fanOut = reader.size("fan_out", columns);
  bool decay = reader.flag("decay", isMatrix);
  std::string problem = reader.finish();
  if (!problem.empty())
    return inputError(problem);
  Builder builder(type.getContext());
  return describe(builder, spec, decay);
}

} // namespace gradc
