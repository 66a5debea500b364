// Runs the programs of a training step in the interpreter, by the names of their slots.
#pragma once

#include "ir/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace gradc::test {

using Named = std::map<std::string, nn::HostTensor>;

/// What tests call a slot (nn.slot): its name without the program's, `name/part` where it has a
/// part, and `low/name` for the narrow copy of a parameter.
std::string slotName(mlir::func::FuncOp program, mlir::DictionaryAttr slot);

/// Random arguments of a program (randomArguments), by slot.
Named randomSlots(mlir::func::FuncOp program, uint64_t seed);

/// Runs a program with each argument found by its slot, which must be there; results by theirs. A
/// program that cannot be run fails the test and gives nothing.
Named runProgram(mlir::func::FuncOp program, const Named &values);

} // namespace gradc::test
