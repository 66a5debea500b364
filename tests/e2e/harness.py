"""What the end-to-end tests share: compiling models, running executables, reading their files."""

import array
import hashlib
import json
import math
import os
import pathlib
import shutil
import struct
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


def run(*arguments, expect=0, timeout=300, **keywords):
    """Runs a command; fails with its output when the exit code is not `expect`."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                          timeout=timeout, **keywords)
    if done.returncode != expect:
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


def metrics(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def safetensors(path):
    """Name to array of f32."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f")
        values.frombytes(data[8 + length + begin:8 + length + end])
        tensors[name.removeprefix("transformer.")] = values
    return tensors


def relative(actual, expected):
    """Norm of the difference over the norm of what is expected; NaN stays NaN."""
    difference = math.sqrt(sum((a - e) ** 2 for a, e in zip(actual, expected)))
    return difference / (math.sqrt(sum(e * e for e in expected)) + 1e-30)


class Case(unittest.TestCase):
    def assert_within(self, value, bound, what):
        # Written so that a NaN fails.
        self.assertTrue(value <= bound, f"{what}: {value} is not within {bound}")

    def assert_tensors(self, actual, expected, bound, what):
        self.assertEqual(sorted(actual), sorted(expected), f"{what}: names differ")
        for name, values in expected.items():
            self.assertEqual(len(actual[name]), len(values), f"{what} {name}: sizes differ")
            self.assert_within(relative(actual[name], values), bound, f"{what} {name}")
