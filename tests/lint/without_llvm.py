"""Fails where a build of the runtime alone has read, found or linked anything of LLVM or MLIR.

Usage: without_llvm.py BUILD_DIR NINJA
"""

import pathlib
import re
import subprocess
import sys

# The compiler's own headers and run-time libraries lie in LLVM's folders too, and are no part of
# what is looked for: those of LLVM as a library are in include/llvm, llvm-c and mlir.
HEADER = re.compile(r"/(?:mlir|llvm|llvm-c)/[^\s]*\.(?:h|inc|def)\b")
LIBRARY = re.compile(r"\b(?:lib|-l)(?:MLIR|LLVM)[\w.-]*")
SYMBOL = re.compile(r"\bU _ZN?\w*?(?:4llvm|4mlir)\w*")
FOUND = re.compile(r"^(?:LLVM|MLIR)_DIR:\w+=(?!.*NOTFOUND).+$", re.M)


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True, capture_output=True).stdout


def main():
    build, ninja = pathlib.Path(sys.argv[1]), sys.argv[2]
    archives = sorted(build.glob("lib/*.a"))
    programs = sorted(path for path in build.glob("bin/*") if path.is_file())
    texts = {
        "headers read": (HEADER, output(ninja, "-C", build, "-t", "deps")),
        "commands": (LIBRARY, (build / "build.ninja").read_text()),
        "CMakeCache.txt": (FOUND, (build / "CMakeCache.txt").read_text()),
    }
    for archive in archives:
        texts[f"symbols that {archive.name} wants"] = (SYMBOL, output("nm", archive))
    for program in programs:
        texts[f"libraries that {program.name} wants"] = (LIBRARY, output("readelf", "-d", program))
    # Each look must have had something to look at.
    problems = []
    if "runtime/Status.h" not in texts["headers read"][1]:
        problems.append("the headers read are not recorded: was everything built?")
    if "libgradc_runtime.a" not in {path.name for path in archives} or not programs:
        problems.append("the runtime or its tests are not built")
    for where, (pattern, text) in texts.items():
        problems += [f"{where}: {found.strip()}" for found in sorted(set(pattern.findall(text)))[:5]]
    print("\n".join(problems) or f"{len(archives)} archives and {len(programs)} programs are free of LLVM and MLIR")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
