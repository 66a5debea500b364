// See Products.h.
#include "runtime/cuda/CublasLtProducts.h"

namespace gradc::rt::cuda {

Expected<std::unique_ptr<Products>> createProducts() {
  GRADC_ASSIGN_OR_RETURN(auto products, CublasLtProducts::create());
  return std::unique_ptr<Products>(std::move(products));
}

} // namespace gradc::rt::cuda
