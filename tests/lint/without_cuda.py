"""Fails where the build or what it made needs a CUDA toolkit, or a compile or a test does.

Usage: without_cuda.py SOURCE_DIR BUILD_DIR NINJA

What the build read and linked is looked at; then, with every toolkit hidden, a model is compiled for a
GPU, and the tests of GPU kernels run: those that assemble say that they are skipped, no other does.
"""

import os
import pathlib
import re
import subprocess
import sys

# Only these read the toolkit's headers, where there are some, to compare declarations with them.
COMPARE_HEADERS = re.compile(r"(CublasLtHeadersTest|DriverHeadersTest)\.cpp\.o$")
HEADER = re.compile(r"^ +(\S*/(?:cuda|cuda_runtime\w*|cublas\w*|driver_types|nvToolsExt\w*|nvrtc)\.h)$")
LIBRARY = re.compile(r"(?<!\w)(?:lib|-l)(?:cuda|cudart\w*|cublas|cublasLt\w*|nvrtc\w*|nvptxcompiler\w*|nvToolsExt)\b[\w.]*")
GPU_TESTS = "GpuPtx.*"
SKIPPED = "no ptxas on this machine"


def output(*command, **keywords):
    return subprocess.run([str(word) for word in command], check=True, text=True, capture_output=True,
                          **keywords).stdout


def headers_read(deps):
    """Of `ninja -t deps`: objects that read a header of a toolkit and should not."""
    target = ""
    for line in deps.splitlines():
        if line and not line.startswith(" "):
            target = line.split(":", 1)[0]
        elif (found := HEADER.match(line)) and not COMPARE_HEADERS.search(target):
            yield f"{target} reads {found[1]}"


def hidden():
    """The environment without any toolkit."""
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep)
               if not (pathlib.Path(folder) / "ptxas").exists()]
    return os.environ | {"PATH": os.pathsep.join(folders), "CUDA_HOME": "/nonexistent"}


def compiled(source, build):
    """Problems of an executable for a GPU that was compiled without a toolkit."""
    executable = build / "without-cuda"
    output(build / "bin" / "gradc", "compile", source / "examples" / "linear-mlir" / "model.mlir", "-o", executable,
           "--target", "cuda:sm_90", env=hidden())
    needed = output("readelf", "-d", executable)
    said = output(build / "bin" / "gradc", "explain", executable)
    executable.unlink()
    yield from (f"the executable needs {found}" for found in LIBRARY.findall(needed))
    if "PTX" not in said or "cubin for" in said:
        yield f"explain does not say that PTX alone is embedded: {said[-300:]}"


def tested(build):
    """Problems of the tests of kernels as PTX."""
    said = output(build / "bin" / "numerics_tests", f"--gtest_filter={GPU_TESTS}", env=hidden())
    passed, skipped = (len(re.findall(rf"^\[ +{word} +\] \S+\.\S+ \(", said, re.M)) for word in ("OK", "SKIPPED"))
    if not passed or not skipped:
        yield f"{GPU_TESTS}: {passed} passed and {skipped} were skipped: the toolkit is not hidden, or all need it"
    if said.count(SKIPPED) != skipped:
        yield f"{GPU_TESTS}: of {skipped} skipped tests {said.count(SKIPPED)} say that ptxas is missing"


def main():
    source, build, ninja = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    deps = output(ninja, "-C", build, "-t", "deps")
    problems = list(headers_read(deps))
    if "runtime/Status.h" not in deps:
        problems.append("the headers read are not recorded: was everything built?")
    problems += [f"build.ninja links {found}" for found in sorted(set(LIBRARY.findall((build / "build.ninja").read_text())))]
    programs = [path for path in sorted(build.glob("bin/*")) if path.is_file()]
    for program in programs:
        problems += [f"{program.name} needs {found}" for found in LIBRARY.findall(output("readelf", "-d", program))]
    if not programs:
        problems.append("nothing is built")
    if not problems:
        problems = [*compiled(source, build), *tested(build)]
    print("\n".join(problems) or f"{len(programs)} programs, compiles and tests need no CUDA toolkit")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
