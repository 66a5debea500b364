"""Runs clang-tidy over the rooms whose files need no header of MLIR: the others take ten seconds a file.

Usage: tidy.py SOURCE_DIR BUILD_DIR CLANG_TIDY
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOMS = ("runtime/", "passes/planner/", "ir/row/")
# What .clang-tidy asks for of clang's own warnings; as errors of the compiler no NOLINT would hold.
RESERVED = ("--extra-arg=-Wreserved-identifier", "--extra-arg=-Wreserved-macro-identifier", "--extra-arg=-Wno-error")
# Options of the precompiled header: it was written by the compiler, which clang-tidy is not.
# `-Xclang A -Xclang B` for these; each of the four words goes.
PCH = ("-include-pch", "-include", "-fno-pch-timestamp")


def without_pch(command):
    words, kept = command.split(), []
    while words:
        word = words.pop(0)
        if word == "-Winvalid-pch":
            continue
        if word == "-Xclang" and words[0] in PCH:
            takes_value = words.pop(0) != "-fno-pch-timestamp"
            if takes_value:
                del words[:2]
            continue
        kept.append(word)
    return " ".join(kept)


def main():
    root, build, tidy = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(root) and path.relative_to(root).as_posix().startswith(ROOMS):
            entries[path] = entry | {"command": without_pch(entry["command"])}
    if len(entries) < 40:
        sys.exit(f"only {len(entries)} files of {', '.join(ROOMS)} in compile_commands.json: a room was moved?")

    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(entries.values())))

        def check(path):
            return subprocess.run([tidy, "--quiet", *RESERVED, "-p", folder, str(path)], capture_output=True, text=True)

        # The largest first, so that none is left to the end.
        order = sorted(entries, key=lambda path: -path.stat().st_size)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(check, order))
    failed = [result for result in results if result.returncode]
    for result in failed:
        print(result.stdout, result.stderr)
    print(f"{len(failed)} of {len(entries)} files have findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
