"""What machine the figures are of, and how much of a GPU's memory is in use."""

import os
import pathlib
import platform
import shutil
import sys
import threading

from stages import Absent, Limit, Problem, run, run_well

FIELDS = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem",
          "clocks.max.mem", "power.limit", "temperature.gpu", "compute_mode", "ecc.mode.current")


def query_gpu(fields, limit):
    """The values by field of the GPU that programs use, the first one, as nvidia-smi writes them."""
    if not shutil.which("nvidia-smi"):
        raise Absent("nvidia-smi is not there")
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    done = run_well(["nvidia-smi", "-i", first, f"--query-gpu={','.join(fields)}",
                     "--format=csv,noheader,nounits"], limit)
    values = [value.strip() for value in done.output.strip().split(",")]
    if len(values) != len(fields):
        raise Problem(f"nvidia-smi: expected {len(fields)} values, got: {done.output.strip()[:200]}")
    return dict(zip(fields, values))


def find_cublaslt():
    """PyTorch's own, so that both multiply by the same library, else a toolkit's; where the loader
    looks by itself it may be another one. None: in neither."""
    folders = []
    for path in map(pathlib.Path, sys.path):
        folders += [*path.glob("nvidia/*/lib"), path / "torch" / "lib"]
    folders.append(pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64")
    found = [folder / name for folder in folders for name in ("libcublasLt.so.13", "libcublasLt.so.12")
             if (folder / name).exists()]
    return str(found[0]) if found else None


def describe_torch(python, limit):
    """None where it is not there, or does not answer: stages that want it will say so."""
    code = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    try:
        done = run([python, "-c", code], limit)
    except Problem:
        return None
    return done.output.strip() if done.code == 0 else None


def describe(python, limit):
    """The machine but for its GPU; `torch`: version, its CUDA, whether it finds a GPU."""
    model = platform.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "libc": os.confstr("CS_GNU_LIBC_VERSION"), "python": platform.python_version(),
            "torch": describe_torch(python, Limit(limit.left() - 2))}


class MemoryProbe:
    """The most memory of the GPU in use while a with-block runs, less what was in use before it:
    `bytes`, None where nvidia-smi cannot tell. The same measure for every program."""

    INTERVAL = 0.5  # seconds; asking costs the driver some milliseconds

    def __init__(self):
        self.bytes = None

    def __enter__(self):
        self.before = self.used()
        self.most = self.before
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        if self.before is not None:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        if self.before is not None:
            self.thread.join()
            self.bytes = self.most - self.before

    def watch(self):
        while not self.ended.wait(self.INTERVAL):
            used = self.used()
            if used is not None:
                self.most = max(self.most, used)

    @staticmethod
    def used():
        try:
            return int(query_gpu(["memory.used"], Limit(5))["memory.used"]) << 20
        except (Absent, Problem, ValueError):
            return None
