// Products with an epilogue, made of products without one.
#pragma once

#include "ir/KernelLibrary.h"
#include "ir/Nn.h"

namespace gradc {

/// What is to become of a product's result.
struct EpilogueChange {
  nn::Epilogue kind = nn::Epilogue::None;
  mlir::Value bias, aux; ///< null where the kind reads none
  mlir::Type extra;      ///< of aux or the bias gradient; null where the kind gives none
};

/// `product` with the epilogue, at the builder's place: a second op, which may replace the first.
/// Null, and nothing is made, where the target's library does not take it.
nn::EpilogueMatmulOp withEpilogue(mlir::OpBuilder &builder, nn::ProductOpInterface product,
                                  const EpilogueChange &change, const KernelLibrary &library);

} // namespace gradc
