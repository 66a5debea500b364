// Checks that the streams of planned programs are ordered.
#include "passes/Passes.h"
#include "passes/streams/Validator.h"

namespace gradc {
#define GEN_PASS_DEF_CHECKSTREAMSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;

namespace {

class CheckStreamsPass : public gradc::impl::CheckStreamsPassBase<CheckStreamsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      for (const std::string &violation : streams::validateStreams(program)) {
        program.emitError("streams are not ordered: ") << violation;
        return signalPassFailure();
      }
  }
};

} // namespace
