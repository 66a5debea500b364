"""Checks on the source itself: layering, FileCheck prefixes, words that must not be there.

Usage: lint.py SOURCE_DIR
"""

import pathlib
import re
import sys

# Which top-level rooms a room may include; a path names a single header.
ALLOWED = {
    "ir": {"ir"},
    "passes": {"passes", "ir"},
    "passes/planner": {"passes/planner"},
    "codegen": {"codegen", "ir", "runtime/Abi.def", "runtime/Abi.h"},
    "codegen/kernels": {"codegen/kernels", "ir"},
    "codegen/cpu": {"codegen/cpu", "codegen/kernels", "codegen/Backend.h", "ir", "runtime/Abi.h", "runtime/cpu/GemmWorkspace.h"},
    "codegen/gpu": {"codegen/gpu", "codegen/kernels", "codegen/Backend.h", "codegen/MachineFault.h", "codegen/cpu/Target.h",
                    "codegen/host/StepProgram.h", "ir", "runtime/Abi.h", "runtime/emulator/Functions.def",
                    "runtime/emulator/Collectives.def"},
    "frontend": {"frontend", "ir"},
    "runtime": {"runtime"},
    "tools": {"tools", "frontend", "passes", "codegen", "ir", "runtime/cpu/Arena.h", "runtime/cpu/Gemm.h",
              "runtime/cpu/GemmWorkspace.h", "runtime/cpu/ThreadPool.h", "runtime/MeasurementCache.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
SOURCES = {".cpp", ".h", ".def", ".inc"}


def room_of(relative):
    text = relative.as_posix()
    matches = [room for room in ALLOWED if text.startswith(room + "/")]
    return max(matches, key=len, default=None)


def check_layering(root, report):
    rooms = {room.split("/")[0] for room in ALLOWED}
    for path in files(root):
        room = room_of(path.relative_to(root))
        if room is None or path.suffix not in SOURCES:
            continue
        for _, included in INCLUDE.findall(path.read_text()):
            if room.startswith(("runtime", "passes/planner")) and included.startswith(("mlir/", "llvm/")):
                report(path, f"{room} must not include {included}")
            if included.split("/")[0] not in rooms:
                continue
            if not any(included == allowed or included.startswith(allowed + "/")
                       for allowed in ALLOWED[room]):
                report(path, f"{room} must not include {included}")


def check_filecheck(root, report):
    """A directive whose prefix no RUN line names is silently ignored by FileCheck."""
    directive = re.compile(r"^[\s/#;]*([A-Z][A-Z0-9_-]*?)(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?:")
    for path in files(root):
        if path.suffix not in {".mlir", ".test"}:
            continue
        text = path.read_text()
        runs = "\n".join(re.findall(r"(?:RUN:)(.*)", text))
        if "FileCheck" not in runs:
            continue
        prefixes = set(re.findall(r"check-prefix(?:es)?[= ]([\w,-]+)", runs))
        prefixes = {name for group in prefixes for name in group.split(",")} or {"CHECK"}
        if re.search(r"FileCheck(?!.*check-prefix)", runs):
            prefixes.add("CHECK")
        used = set()
        for number, line in enumerate(text.splitlines(), 1):
            match = directive.match(line)
            if not match or match[1] in {"RUN", "XFAIL", "REQUIRES", "NOTE"}:
                continue
            if match[1] not in prefixes:
                report(path, f"line {number}: {match[1]} is no prefix of a RUN line")
            used.add(match[1])
        for prefix in prefixes - used:
            report(path, f"prefix {prefix} of a RUN line has no directive")


def check_words(root, report):
    """Absolute paths of build machines, registries' hosts, and unfinished work."""
    home = "/" + "work/|/" + "root/"
    patterns = {
        re.compile(home): "an absolute path of one machine",
        re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b"): "unfinished work; it belongs in docs/design/status.md",
        re.compile(r"pypi\." + r"org|deb\." + r"debian"): "a registry's host",
    }
    for path in files(root):
        if path.suffix not in SOURCES | {".td", ".py", ".md", ".mlir", ".txt", ".cmake", ".sh", ".json"}:
            continue
        text = path.read_text(errors="replace")
        for pattern, what in patterns.items():
            if found := pattern.search(text):
                report(path, f"line {text.count(chr(10), 0, found.start()) + 1}: {what}")


def files(root):
    for folder in ("ir", "passes", "codegen", "frontend", "runtime", "tools", "tests", "bench", "docs",
                   "examples", "cmake"):
        yield from (p for p in sorted((root / folder).rglob("*")) if p.is_file() and "__pycache__" not in p.parts)


def main():
    root = pathlib.Path(sys.argv[1])
    problems = []

    def report(path, what):
        problems.append(f"{path.relative_to(root)}: {what}")

    checked = sum(1 for _ in files(root))
    if checked < 100:
        problems.append(f"only {checked} files found under {root}: wrong folder?")
    for check in (check_layering, check_filecheck, check_words):
        check(root, report)
    print("\n".join(problems) or f"{checked} files are clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
