// See Products.h.
#include "runtime/cuda/Products.h"

namespace gradc::rt::cuda {

Expected<std::unique_ptr<Products>> createProducts() {
  return Status::machine("matrix products need cuBLASLt, which this version does not call; compile "
                         "with --emulate");
}

} // namespace gradc::rt::cuda
