// Emulator: hides the machine.
#include "runtime/emulator/Emulator.h"

#include "runtime/emulator/Machine.h"

namespace gradc::rt {

Emulator::Emulator(WarpOrder order) : machine_(std::make_unique<emulator::Machine>(order)) {}
Emulator::~Emulator() = default;
Status Emulator::run(const EmulatedLaunch &launch) { return machine_->run(launch); }
const std::vector<EmulatedTraffic> &Emulator::traffic() const { return machine_->traffic(); }

} // namespace gradc::rt
