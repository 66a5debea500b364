// Products with an epilogue: what epilogues are made of, cost, and what fusion asks.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

bool gradc::nn::addsBias(Epilogue epilogue) {
  return epilogue == Epilogue::Bias || epilogue == Epilogue::GeluBias ||
         epilogue == Epilogue::GeluAuxBias;
}
bool gradc::nn::hasGelu(Epilogue epilogue) {
  return epilogue == Epilogue::Gelu || epilogue == Epilogue::GeluBias || writesAux(epilogue);
}
bool gradc::nn::readsAux(Epilogue epilogue) {
  return epilogue == Epilogue::GeluGradient || sumsResult(epilogue);
}
bool gradc::nn::writesAux(Epilogue epilogue) {
  return epilogue == Epilogue::GeluAux || epilogue == Epilogue::GeluAuxBias;
}
bool gradc::nn::sumsResult(Epilogue epilogue) {
  return epilogue == Epilogue::GeluGradientBiasGradient;
}
bool gradc::nn::givesBiasGradient(Epilogue epilogue) {
  return sumsResult(epilogue) || epilogue == Epilogue::BiasGradientLhs ||
         epilogue == Epilogue::BiasGradientRhs;
}

int64_t EpilogueMatmulOp::getFlops() {
  ArrayRef<int64_t> left = cast<RankedTensorType>(getLhs().getType()).getShape();
  int64_t inner = left[getTransposeLhs() ? 0 : 1];
  return 2 * inner * cast<RankedTensorType>(getResult().getType()).getNumElements();
}
bool EpilogueMatmulOp::isModelFlops() { return true; }
FusionRole EpilogueMatmulOp::getFusionRole() { return FusionRole::library; }
int64_t EpilogueMatmulOp::getAccumulatorOperand() { return getAccumulator() ? 2 : -1; }
int64_t EpilogueMatmulOp::getInPlaceOperand(unsigned result) {
  return result == 0 ? getAccumulatorOperand() : -1;
}
bool EpilogueMatmulOp::takesRowStride(unsigned index, bool isResult) {
  return isResult ? index == 0
                  : index < 2 || static_cast<int64_t>(index) == getAccumulatorOperand();
}
void EpilogueMatmulOp::readTransposed(unsigned operand, Value copy) {
  (operand == 0 ? getLhsMutable() : getRhsMutable()).assign(copy);
  operand == 0 ? setTransposeLhs(!getTransposeLhs()) : setTransposeRhs(!getTransposeRhs());
}
