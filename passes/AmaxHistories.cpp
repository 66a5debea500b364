// See AmaxHistories.h.
#include "passes/AmaxHistories.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

static RankedTensorType floats(OpBuilder &builder, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

SmallVector<DictionaryAttr> recordsOf(func::FuncOp function) {
  SmallVector<DictionaryAttr> records;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto record = function.getArgAttrOfType<DictionaryAttr>(i, "nn.record"))
      records.push_back(record);
  return records;
}

void scaleByOwnMagnitudes(func::FuncOp function, ValueRange records) {
  function.walk([&](QuantizeOp op) {
    auto scale = op.getScale().getDefiningOp<ScaleOfAmaxOp>();
    if (!scale || !llvm::is_contained(records, scale.getAmax()))
      return;
    OpBuilder builder(op);
    Value amax = rowAmax(builder, op.getLoc(), op.getInput());
    scale.replaceAllUsesWith(
        ScaleOfAmaxOp::create(builder, op.getLoc(), amax, scale.getFormatAttr()).getResult());
    scale.erase();
  });
}

DictionaryAttr AmaxHistories::slot(ProgramBuilder &program, DictionaryAttr record) const {
  return program.slot("optimizer", record.getAs<StringAttr>("name").getValue(),
                      record.getAs<StringAttr>("slot").getValue());
}

void AmaxHistories::addArguments(ProgramBuilder &program) {
  for (DictionaryAttr record : records)
    histories.push_back(
        program.argument(floats(program.builder, {1, steps}), slot(program, record)));
}

SmallVector<Value> AmaxHistories::largest(ProgramBuilder &program) const {
  return llvm::map_to_vector(histories, [&](Value history) {
    return largestOf(program.builder, program.location(), history);
  });
}

void AmaxHistories::returnNext(ProgramBuilder &program, ArrayRef<Value> magnitudes) const {
  OpBuilder &b = program.builder;
  Location loc = program.location();
  for (auto [record, history, magnitude] : llvm::zip_equal(records, histories, magnitudes)) {
    Value newest = ReshapeOp::create(b, loc, floats(b, {1, 1}), magnitude);
    Value others =
        SliceOp::create(b, loc, floats(b, {1, steps - 1}), history, b.getI64IntegerAttr(0));
    program.result(ConcatOp::create(b, loc, history.getType(), ValueRange{newest, others}),
                   slot(program, record));
  }
}

} // namespace gradc
