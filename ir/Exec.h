// The exec dialect: the planned step.
#pragma once

#include "ir/Nn.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/ExecDialect.h.inc"
#include "ir/ExecEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/ExecAttrs.h.inc"
#define GET_OP_CLASSES
#include "ir/ExecOps.h.inc"
