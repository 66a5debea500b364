// GraphBuilder: each helper is one or two ops with their result types worked out.
#include "frontend/GraphBuilder.h"
#include "frontend/ParameterAttr.h"

using namespace mlir;

namespace gradc {

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static ParameterSpec vectorSpec(const Twine &name, int64_t size, ParameterClass parameterClass,
                                double value) {
  return {name.str(), {size}, parameterClass, /*normal=*/false, value, size, size};
}

GraphBuilder::GraphBuilder(ModuleOp module, StringRef name, TokenShape shape, int64_t second,
                           GraphUse use, std::optional<int64_t> separator)
    : builder(module.getBodyRegion()), loc(NameLoc::get(builder.getStringAttr(name))), shape(shape),
      use(use), separator(separator) {
  builder.setInsertionPointToEnd(module.getBody());
  auto indices = [&](int64_t size) { return RankedTensorType::get({size}, builder.getI32Type()); };
  function = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType({indices(shape.batch * shape.seq), indices(second)}, {}));
  body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
}

Value GraphBuilder::tokens() const { return body->getArgument(described.size()); }
Value GraphBuilder::second() const { return body->getArgument(described.size() + 1); }

GraphBuilder::Documents GraphBuilder::documents() {
  if (separator && !ofTokens.firstKey) {
    auto op = nn::DocumentsOp::create(builder, loc, tokens(), shape.seq, *separator);
    ofTokens = {op.getFirstKey(), op.getPositions()};
  }
  return ofTokens;
}

Value GraphBuilder::positions() {
  if (separator)
    return documents().positions;
  std::vector<int32_t> inRow(shape.batch * shape.seq);
  for (size_t token = 0; token < inRow.size(); ++token)
    inRow[token] = static_cast<int32_t>(token % shape.seq);
  return constant(inRow);
}

GraphBuilder::RandomKeys GraphBuilder::randomKeys() {
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  if (!hasRandomKeys)
    for (StringRef name : {"seed", "step", "first_row"})
      body->addArgument(scalar, NameLoc::get(builder.getStringAttr(name)));
  hasRandomKeys = true;
  ArrayRef<BlockArgument> last = body->getArguments().take_back(3);
  Value stream = nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(scalar, streams++));
  return {last[0], last[1], last[2], stream};
}

void GraphBuilder::finish(Value result) {
  func::ReturnOp::create(builder, function.getLoc(), result);
  function.setFunctionType(
      builder.getFunctionType(body->getArgumentTypes(), TypeRange(result.getType())));
  for (auto [index, parameter] : llvm::enumerate(described))
    function.setArgAttr(index, "nn.param", parameter);
}

void GraphBuilder::at(const Twine &name) { loc = NameLoc::get(builder.getStringAttr(name)); }

RankedTensorType GraphBuilder::floats(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

Value GraphBuilder::parameter(const ParameterSpec &spec) {
  auto [entry, isNew] = byName.try_emplace(spec.name);
  if (isNew) {
    // Before the inputs: values already handed out stay valid.
    Location at = NameLoc::get(builder.getStringAttr(spec.name));
    entry->second = body->insertArgument(described.size(), floats(spec.shape), at);
    described.push_back(describeParameter(builder, spec));
  }
  return entry->second;
}

Value GraphBuilder::table(StringRef name, int64_t rows, int64_t columns, double deviation) {
  return parameter({name.str(),
                    {rows, columns},
                    ParameterClass::embedding,
                    /*normal=*/true,
                    deviation,
                    rows,
                    columns});
}

Value GraphBuilder::linear(Value input, const LinearSpec &spec) {
  ParameterSpec weight{spec.name + ".weight",
                       {spec.in, spec.out},
                       ParameterClass::matrix,
                       /*normal=*/true,
                       spec.deviation,
                       spec.in,
                       spec.out};
  if (spec.outputRows)
    std::swap(weight.shape[0], weight.shape[1]);
  Value result = nn::MatmulOp::create(builder, loc, input, parameter(weight),
                                      /*transposeLhs=*/false, /*transposeRhs=*/spec.outputRows);
  if (!spec.bias)
    return result;
  Value bias = parameter(vectorSpec(spec.name + ".bias", spec.out, ParameterClass::bias, 0));
  return add(result, bias);
}

Value GraphBuilder::matmulTransposed(Value input, Value table) {
  return nn::MatmulOp::create(builder, loc, input, table, /*transposeLhs=*/false,
                              /*transposeRhs=*/true);
}

Value GraphBuilder::embedding(Value indices, Value table) {
  return nn::EmbeddingOp::create(builder, loc, floats({shapeOf(indices)[0], shapeOf(table)[1]}),
                                 indices, table);
}

Value GraphBuilder::layerNorm(Value input, StringRef name, double epsilon) {
  int64_t rows = shapeOf(input)[0], columns = shapeOf(input)[1];
  Value weight = parameter(vectorSpec(name + ".weight", columns, ParameterClass::norm, 1));
  Value bias = parameter(vectorSpec(name + ".bias", columns, ParameterClass::bias, 0));
  RankedTensorType perRow = floats({rows, 1});
  return nn::LayerNormOp::create(builder, loc, input.getType(), perRow, perRow, input, weight, bias,
                                 llvm::APFloat(epsilon))
      .getResult();
}

Value GraphBuilder::rmsNorm(Value input, StringRef name, double epsilon) {
  int64_t rows = shapeOf(input)[0], columns = shapeOf(input)[1];
  Value weight = parameter(vectorSpec(name + ".weight", columns, ParameterClass::norm, 1));
  return nn::RmsNormOp::create(builder, loc, input.getType(), floats({rows, 1}), input, weight,
                               llvm::APFloat(epsilon))
      .getResult();
}

Value GraphBuilder::activation(Value input, nn::ActivationKind kind) {
  return nn::ActivationOp::create(builder, loc, input, kind);
}

Value GraphBuilder::add(Value lhs, Value rhs) { return nn::AddOp::create(builder, loc, lhs, rhs); }
Value GraphBuilder::mul(Value lhs, Value rhs) { return nn::MulOp::create(builder, loc, lhs, rhs); }

Value GraphBuilder::slice(Value input, int64_t offset, int64_t width) {
  return nn::SliceOp::create(builder, loc, floats({shapeOf(input)[0], width}), input, offset);
}

Value GraphBuilder::attention(Value query, Value key, Value value, const AttentionSpec &spec) {
  int64_t seq = shapeOf(query)[0] / spec.batch;
  bool random = draws(spec.dropout);
  RandomKeys keys = random ? randomKeys() : RandomKeys();
  return nn::AttentionOp::create(
             builder, loc, query.getType(), floats({spec.batch, spec.heads, seq}), query, key,
             value, documents().firstKey, keys.seed, keys.step, keys.firstRow, keys.stream,
             spec.batch, spec.heads, spec.kvHeads, llvm::APFloat(spec.scale), /*causal=*/true,
             spec.window, llvm::APFloat(random ? spec.dropout : 0.0))
      .getResult();
}

Value GraphBuilder::dropout(Value input, double rate) {
  if (!draws(rate))
    return input;
  RandomKeys keys = randomKeys();
  return nn::DropoutOp::create(builder, loc, input, keys.seed, keys.step, keys.firstRow,
                               keys.stream, llvm::APFloat(rate));
}

Value GraphBuilder::rope(Value input, Value cos, Value sin, int64_t heads) {
  return nn::RopeOp::create(builder, loc, input, cos, sin, documents().positions, heads);
}

Value GraphBuilder::constant(ArrayRef<float> values, ArrayRef<int64_t> shape) {
  return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(floats(shape), values));
}

Value GraphBuilder::constant(ArrayRef<int32_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI32Type());
  return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, values));
}

Value GraphBuilder::lossSum(Value logits, Value targets) {
  RankedTensorType perRow = floats({shapeOf(logits)[0], 1});
  Value loss = nn::CrossEntropyOp::create(builder, loc, perRow, perRow, logits, targets).getLoss();
  return nn::SumOp::create(builder, loc, loss);
}

} // namespace gradc
