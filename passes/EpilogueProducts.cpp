// See EpilogueProducts.h.
#include "passes/EpilogueProducts.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc {

EpilogueMatmulOp withEpilogue(OpBuilder &builder, ProductOpInterface product,
                              const EpilogueChange &change, const KernelLibrary &library) {
  auto type = cast<RankedTensorType>(product->getResult(0).getType());
  if (product.getEpilogue() != Epilogue::None || type.getRank() != 2)
    return {};
  auto made = EpilogueMatmulOp::create(builder, product->getLoc(), type, change.extra,
                                       product.getLhs(), product.getRhs(), product.getAccumulator(),
                                       product.getLhsScale(), product.getRhsScale(), change.bias,
                                       change.aux, product.getTransposeLhs(),
                                       product.getTransposeRhs(), product.getTf32(), change.kind);
  made->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  if (library.takesEpilogue(made))
    return made;
  made.erase();
  return {};
}

} // namespace gradc
