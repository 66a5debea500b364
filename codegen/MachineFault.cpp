// See MachineFault.h.
#include "codegen/MachineFault.h"

namespace gradc::codegen {

char MachineFault::ID = 0;

} // namespace gradc::codegen
