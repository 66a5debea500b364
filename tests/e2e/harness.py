"""What the end-to-end tests share: compiling models, running executables, reading their files."""

import array
import json
import math
import os
import pathlib
import struct
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["GRADC_BINARY_DIR"])
GRADC = BUILD / "bin" / "gradc"
WORK = BUILD / "e2e"
GOLDENS = SOURCE / "tests" / "goldens"


def run(*arguments, expect=0, timeout=300, **keywords):
    """Runs a command; fails with its output when the exit code is not `expect`."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                          timeout=timeout, **keywords)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, arguments))}\nexit code {done.returncode}, "
                             f"expected {expect}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def compile_model(model, name, *flags):
    """Compiles once a build folder and test run; returns the executable's path."""
    WORK.mkdir(exist_ok=True)
    executable = WORK / name
    run(GRADC, "compile", model, "-o", executable, *flags)
    return executable


def fresh(name):
    """A path in the work folder with nothing there."""
    path = WORK / name
    run("rm", "-rf", path)
    return path


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
