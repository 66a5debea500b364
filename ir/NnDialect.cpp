// Registration of the nn dialect.
#include "ir/Nn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/NnDialect.cpp.inc"
#include "ir/NnEnums.cpp.inc"
#include "ir/NnInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/NnAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "ir/NnOps.cpp.inc"

void gradc::nn::NnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/NnOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/NnAttrs.cpp.inc"
      >();
}

Operation *gradc::nn::NnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                                     Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements && elements.getType() == type ? ConstantOp::create(builder, loc, elements)
                                                : nullptr;
}
