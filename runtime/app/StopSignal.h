// SIGTERM and SIGINT as a request to finish the step, save and end.
#pragma once

namespace gradc::rt {

/// Catches SIGTERM and SIGINT from now on; a second SIGINT ends the process at once.
void catchStopSignals();

/// Whether one has arrived.
bool stopRequested();

} // namespace gradc::rt
