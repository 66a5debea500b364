// The command line of gradc.
#pragma once

namespace gradc {

/// Runs `gradc` with these arguments and returns its exit code.
int runCommandLine(int argc, char **argv);

} // namespace gradc
