"""What the end-to-end tests share: compiling models, running executables, reading their files."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["GRADC_BINARY_DIR"])
GRADC = BUILD / "bin" / "gradc"
SHARED = BUILD / "e2e"
WORK = SHARED / pathlib.Path(sys.argv[0]).stem  # of one test program: others run at the same time
WORK.mkdir(parents=True, exist_ok=True)
GOLDENS = SOURCE / "tests" / "goldens"
sys.path.append(str(GOLDENS))

from compare import compare_tensors, metrics, safetensors


def run(*arguments, expect=0, timeout=300, **keywords):
    """Runs a command; fails with its output when the exit code is not `expect` (None: any)."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                          timeout=timeout, **keywords)
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, arguments))}\nexit code {done.returncode}, "
                             f"expected {expect}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def digest(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def compiled_folder():
    """Where executables of this build of the compiler and the runtime are kept, by what they are of;
    those of other builds are removed."""
    parts = (GRADC, *sorted((BUILD / "lib").glob("libgradc_*.a")))
    stats = [part.stat() for part in parts]
    folder = SHARED / f"compiled-{digest(*((stat.st_size, stat.st_mtime_ns) for stat in stats))}"
    folder.mkdir(parents=True, exist_ok=True)
    for other in SHARED.glob("compiled-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def compile_model(model, name, *flags):
    """The executable, as WORK / name. What any of the tests has compiled of the same definition with
    the same flags and compiler is not compiled again: code generation is most of what tests cost."""
    definition = model / "config.json" if model.is_dir() else model
    kept = compiled_folder() / digest(definition.read_text(), *flags)
    if not kept.exists():
        unfinished = kept.with_suffix(f".{os.getpid()}")
        run(GRADC, "compile", model, "-o", unfinished, *flags)
        unfinished.replace(kept)
    executable = fresh(name)
    executable.hardlink_to(kept)
    return executable


def fresh(name):
    """A path in the work folder with nothing there."""
    path = WORK / name
    run("rm", "-rf", path)
    return path


def model_with(name, source="tiny-gpt2", **changes):
    """A golden's configuration with some keys changed, as a folder."""
    folder = fresh(name)
    folder.mkdir(parents=True)
    config = json.loads((GOLDENS / source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


class Case(unittest.TestCase):
    def assert_within(self, value, bound, what):
        # Written so that a NaN fails.
        self.assertTrue(value <= bound, f"{what}: {value} is not within {bound}")

    def assert_tensors(self, actual, expected, bound, what):
        self.assertEqual(compare_tensors(actual, expected, lambda name: bound, what), [])
