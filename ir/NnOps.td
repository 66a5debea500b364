// The ops of the nn dialect; a file a family.
#ifndef GRADC_IR_Nn_OPS
#define GRADC_IR_Nn_OPS
include "ir/NnBase.td"
include "ir/NnPointwiseOps.td"
include "ir/NnRowOps.td"
include "ir/NnMatrixOps.td"
include "ir/NnLossOps.td"
include "ir/NnQuantizationOps.td"
include "ir/NnViewOps.td"
include "ir/NnTrainingOps.td"
#endif
