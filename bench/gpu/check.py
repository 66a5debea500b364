"""Proves and measures gradc on this machine, from a folder that bench/gpu/build made.

    check FOLDER [--seconds N] [--results DIR]

Prints a line a stage and leaves check.json and check.md in FOLDER/results, written anew after every
stage. Exit code 0: no stage failed or ran out of time; 1: one did. A stage for which the machine lacks
a tool (PyTorch, compute-sanitizer) says so and has not failed.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys

import correctness
import machine
import report
import speed
from stages import USUAL_SECONDS, Check, Problem

EMULATED_SLOWNESS = 10  # the emulator's time is the host's, which may have other work to do


class Folder:
    """What bench/gpu/build made, and where results go."""

    def __init__(self, path, results):
        self.path = path.resolve()
        self.contents = json.loads((self.path / "contents.json").read_text())
        self.emulated = self.contents["emulated"]
        self.slowness = EMULATED_SLOWNESS if self.emulated else 1
        self.scripts = self.path / "scripts"
        self.results = results or self.path / "results"
        self.scratch = self.results / "scratch"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.python = sys.executable
        self.environment = self.for_executables()

    def for_executables(self):
        """The libraries that were copied are for executables alone: PyTorch brings its own."""
        paths = [str(self.path / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        environment = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, paths)),
                                    "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        if library := machine.find_cublaslt():
            environment.setdefault("GRADC_CUBLASLT_PATH", library)
        return environment

    def golden(self, entry):
        return self.path / "goldens" / entry["name"]

    def fresh(self, name):
        """A path for a result, with nothing there."""
        path = self.scratch / name
        path.unlink(missing_ok=True)
        return path


def describe_machine(folder, limit):
    figures = machine.describe(folder.python, limit)
    have = tuple(int(number) for number in figures["libc"].split()[-1].split("."))
    need = tuple(int(number) for number in folder.contents["libc"].split("."))
    if have < need:
        raise Problem(f"the executables need glibc {folder.contents['libc']} and this machine has "
                      f"{figures['libc']}: build them on a machine as old as this one")
    return figures | {"cublaslt": folder.environment.get("GRADC_CUBLASLT_PATH")}


def run_stages(folder, check):
    """By value: what is right first, then what is fast, then what takes long."""
    contents = folder.contents
    goldens, models = contents["goldens"], contents["bench"]
    check.stage("machine", 60, lambda limit: describe_machine(folder, limit))
    if not folder.emulated:
        check.stage("GPU", 10, lambda limit: machine.query_gpu(machine.FIELDS, limit))
    check.stage("conformance", 40, lambda limit: correctness.conformance(folder, contents["conformance"], limit))
    for entry in goldens:
        check.stage(f"golden {entry['name']} {entry['mode']}", 20,
                    lambda limit, entry=entry: correctness.golden(folder, entry, limit))
    for entry in models:
        check.stage(f"bench {entry['name']}", 40, lambda limit, entry=entry: speed.bench(folder, entry, limit))
    check.stage("peer models", 60, lambda limit: speed.peer_models(folder, limit))
    for entry in models:
        check.stage(f"peer {entry['name']}", 110, lambda limit, entry=entry: speed.peer(folder, entry, limit))
    for entry in models:
        check.stage(f"kernels {entry['name']}", 30, lambda limit, entry=entry: speed.kernels(folder, entry, limit))
    for entry in models:
        check.stage(f"one stream {entry['name']}", 40,
                    lambda limit, entry=entry: speed.bench(folder, entry | {"executable": entry["one_stream"]}, limit))
    check.stage("rates", 40, lambda limit: speed.rates(folder, models, limit))
    smallest = models[0]
    check.stage(f"equal bits {smallest['name']}", 40, lambda limit: correctness.equal_bits(folder, smallest, limit))
    if not folder.emulated:
        check.stage("GPU after the bench", 10, lambda limit: machine.query_gpu(machine.FIELDS, limit))
        for tool in ("memcheck", "racecheck", "synccheck"):
            for entry in goldens:
                if tool in entry["sanitizer"]:
                    check.stage(f"{tool} {entry['name']} {entry['mode']}", 30,
                                lambda limit, tool=tool, entry=entry: correctness.sanitizer(folder, tool, entry, limit))


def write_results(folder, check, begun):
    result = {"begun": begun, "contents": {key: value for key, value in folder.contents.items() if key != "bench"},
              "bench": folder.contents["bench"], "passed": check.passed(), "stages": check.results}
    result["summary"] = report.summary(result)
    for name, text in (("check.json", json.dumps(result, indent=1) + "\n"), ("check.md", report.markdown(result))):
        unfinished = folder.results / f"{name}.new"
        unfinished.write_text(text)
        unfinished.replace(folder.results / name)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="check", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path, help="what bench/gpu/build made")
    parser.add_argument("--seconds", type=float,
                        help=f"of the whole check (default {USUAL_SECONDS}, of an emulated folder "
                             f"{EMULATED_SLOWNESS * USUAL_SECONDS}); with more, stages have more as well")
    parser.add_argument("--results", type=pathlib.Path, help="where results go (default FOLDER/results)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        folder = Folder(arguments.folder, arguments.results)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{arguments.folder}: {error}: expected a folder that bench/gpu/build made")
    begun = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    seconds = folder.slowness * USUAL_SECONDS if arguments.seconds is None else arguments.seconds
    check = Check(seconds, lambda: write_results(folder, check, begun), folder.slowness)
    run_stages(folder, check)
    print(f"\n{(folder.results / 'check.md').read_text()}")
    return 0 if check.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
