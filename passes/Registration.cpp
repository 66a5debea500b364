// Makes every pass known to gradc-opt. Those that ask no target register themselves.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_REGISTRATION_PRECISIONPASS
#define GEN_PASS_REGISTRATION_JOINLOSSPASS
#define GEN_PASS_REGISTRATION_AUTODIFFPASS
#define GEN_PASS_REGISTRATION_RECOMPUTEPASS
#define GEN_PASS_REGISTRATION_TRAININGSTEPPASS
#define GEN_PASS_REGISTRATION_ABSORBSUMSPASS
#define GEN_PASS_REGISTRATION_CHUNKLOSSPASS
#define GEN_PASS_REGISTRATION_FUSIONPASS
#define GEN_PASS_REGISTRATION_SCHEDULEPASS
#define GEN_PASS_REGISTRATION_ASSIGNSTREAMSPASS
#define GEN_PASS_REGISTRATION_STREAMEVENTSPASS
#define GEN_PASS_REGISTRATION_CHECKSTREAMSPASS
#define GEN_PASS_REGISTRATION_CHECKPLANPASS
#include "passes/Passes.h.inc"
} // namespace gradc

void gradc::registerPasses(const KernelLibrary &library) {
  registerPrecisionPass();
  registerJoinLossPass();
  registerAutodiffPass();
  registerRecomputePass();
  registerTrainingStepPass();
  registerAbsorbSumsPass();
  registerChunkLossPass();
  registerFusionPass();
  registerSchedulePass();
  registerAssignStreamsPass();
  registerStreamEventsPass();
  registerCheckStreamsPass();
  registerCheckPlanPass();
  for (auto create : {createQuantizeProductsPass, createNarrowBiasesPass, createBiasGradientsPass,
                      createProductEpiloguesPass, createJoinLaunchesPass, createWeightPanelsPass,
                      createMemoryPlanPass})
    mlir::registerPass([&library, create] { return create(library); });
}
