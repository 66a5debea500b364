// gradc: compiles a model definition to an executable that trains it.
#include "tools/driver/CommandLine.h"

int main(int argc, char **argv) { return gradc::runCommandLine(argc, argv); }
