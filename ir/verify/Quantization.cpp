// Verifiers of fp8 quantisation.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

static LogicalResult expectFloat8(Operation *op, Type format) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(format))
    return success();
  return op->emitOpError("expected a format of f8E4M3FN or f8E5M2, got: ") << format;
}

LogicalResult ScaleOfAmaxOp::verify() { return expectFloat8(*this, getFormat()); }
LogicalResult QuantizeGradientOp::verify() { return expectFloat8(*this, getFormat()); }

LogicalResult QuantizeOp::verify() {
  return expectShape(*this, "result", getResult(), shapeOf(getInput()));
}

LogicalResult FakeQuantizeOp::verify() {
  if (failed(expectFloat8(*this, getFormat())))
    return failure();
  if ((getRecord() != nullptr) != (getAmax() != nullptr))
    return emitOpError("expected a record and a magnitude together, or neither");
  return expectShape(*this, "result", getResult(), shapeOf(getInput()));
}
