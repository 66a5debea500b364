"""What the tests of the GPU check (bench/gpu) share: folders to check, and what a check found."""

import importlib.machinery
import importlib.util
import json
import os
import sys

from harness import SOURCE, WORK, fresh, run

GPU = SOURCE / "bench" / "gpu"
sys.path.append(str(GPU))


def load_build():
    """bench/gpu/build as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_build", str(GPU / "build"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_build", loader))
    loader.exec_module(module)
    return module


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)
    return path


def check(folder, *flags, expect, path=None, **variables):
    """Runs a folder's own copy of the check, with `path` before the PATH; its result and what it printed.
    Without PyTorch: stages that want it take long to start it. Emulated, on a machine that does other
    work besides, stages take longer than on a GPU."""
    python = script(WORK / "python", f'case "$*" in *"import torch"*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    environment = os.environ | {"PYTHON": str(python), "PATH": f"{path or WORK / 'nothing'}:{os.environ['PATH']}",
                                **{name: str(value) for name, value in variables.items()}}
    done = run(folder / "check", "--seconds", 4600, *flags, expect=expect, env=environment)
    return json.loads((folder / "results" / "check.json").read_text()), done.stdout


def gpu_tools(name):
    """A folder with an nvidia-smi."""
    tools = fresh(name)
    script(tools / "nvidia-smi", 'for field in "$@"; do case $field in --query-gpu=memory.used) echo 100; exit;;'
           " esac; done\necho GPU, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10\n")
    return tools


def statuses(result):
    return {stage["stage"]: stage["status"] for stage in result["stages"]}


def detail(result, name):
    return next(stage["detail"] for stage in result["stages"] if stage["stage"] == name)
