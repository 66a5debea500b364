// See LibraryProducts.h.
#include "codegen/gpu/LibraryProducts.h"

using namespace mlir;
using namespace gradc::nn;

namespace gradc::codegen::gpu {
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isFloat8(ProductOpInterface product) {
  return typeOf(product.getLhs()).getElementTypeBitWidth() == 8;
}

/// Rows of aux begin at multiples of 16 bytes, of 8 elements.
bool auxFits(RankedTensorType result) {
  int64_t columns = result.getShape()[1];
  return columns % 8 == 0 && columns * result.getElementTypeBitWidth() / 8 % 16 == 0;
}

} // namespace

bool libraryTakesEpilogue(ProductOpInterface product) {
  RankedTensorType result = typeOf(product->getResult(0));
  Epilogue kind = product.getEpilogue();
  auto isOfResultType = [&](Value value) {
    return !value || typeOf(value).getElementType() == result.getElementType();
  };
  bool isPlain = kind == Epilogue::BiasGradientLhs || kind == Epilogue::BiasGradientRhs;
  if (result.getRank() != 2 || (product.getAccumulator() && !isPlain))
    return false;
  if (isFloat8(product) && (kind != Epilogue::Bias || result.getElementType().isF32()))
    return false;
  if (!isOfResultType(product.getBias()) || !isOfResultType(product.getExtra()))
    return false;
  return (!writesAux(kind) && !readsAux(kind)) || auxFits(result);
}

Type libraryBiasType(ProductOpInterface product) {
  RankedTensorType result = typeOf(product->getResult(0));
  bool addsNone = result.getRank() != 2 || (isFloat8(product) && result.getElementType().isF32());
  return addsNone ? Type() : result.getElementType();
}

Float8Operands libraryFloat8Operands(ProductOpInterface product, const GpuTarget &target) {
  if (target.capability < float8Capability || typeOf(product->getResult(0)).getRank() != 2)
    return Float8Operands::none;
  for (Value operand : {product.getLhs(), product.getRhs()})
    for (int64_t extent : typeOf(operand).getShape())
      if (extent % 16 != 0)
        return Float8Operands::none;
  return Float8Operands::alongDepth;
}

int64_t libraryWorkspaceBytes(const GpuTarget &target) {
  constexpr int64_t mebibyte = 1 << 20, alignment = 256;
  return (target.capability >= 90 ? 32 * mebibyte : 4 * mebibyte) + alignment;
}

} // namespace gradc::codegen::gpu
