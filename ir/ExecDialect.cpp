// Registration of the exec dialect.
#include "ir/Exec.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/ExecDialect.cpp.inc"
#include "ir/ExecEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/ExecAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "ir/ExecOps.cpp.inc"

void gradc::exec::ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/ExecOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/ExecAttrs.cpp.inc"
      >();
}
