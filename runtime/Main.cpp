// The main program of every compiled executable.
#include "runtime/Abi.h"
#include "runtime/app/App.h"

int main(int argc, char **argv) { return gradc::rt::runExecutable(gradc_executable, argc, argv); }
