"""Fails where a source is not as clang-format writes it.

Usage: format.py SOURCE_DIR CLANG_FORMAT
"""

import pathlib
import subprocess
import sys

from lint import files


def main():
    root = pathlib.Path(sys.argv[1])
    # Not git's list: the source need not be a checkout.
    sources = [str(path) for path in files(root) if path.suffix in {".cpp", ".h"}]
    if len(sources) < 100:
        sys.exit(f"only {len(sources)} sources found under {root}: wrong folder?")
    done = subprocess.run([sys.argv[2], "--dry-run", "-Werror", *sources])
    if done.returncode:
        sys.exit("./dev format mends it")
    print(f"{len(sources)} sources are formatted")


if __name__ == "__main__":
    main()
