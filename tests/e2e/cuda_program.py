"""Executables for an NVIDIA GPU as tests run them: on stand-ins of its driver and of cuBLASLt (tests/cuda)."""

import os

from harness import BUILD, GOLDENS, GRADC, Case, compile_model, fresh, metrics, model_with, run

TARGET = ("--target", "cuda:sm_90")
DRIVER = BUILD / "tests" / "libfake_cuda.so"
PRODUCTS = BUILD / "tests" / "libfake_cublaslt.so"
LINKER = os.environ.get("GRADC_LINKER", "clang++-22")


class Program:
    """A model compiled for a GPU, for the emulator, and as the kernels that the stand-in runs."""

    def __init__(self, model, name, *flags):
        self.emulated = compile_model(model, f"{name}-emulated", *flags, *TARGET, "--emulate")
        self.executable = compile_model(model, f"{name}-cuda", *flags, *TARGET)
        kernels = fresh(f"{name}.o")
        run(GRADC, "compile", model, "-o", kernels, *flags, *TARGET, "--emulate", "--compile-to",
            "codegen")
        self.kernels = fresh(f"{name}.so")
        run(LINKER, "-shared", kernels, DRIVER, "-o", self.kernels)

    def run(self, *arguments, expect=0, **variables):
        """Runs the executable on the stand-ins; exit code 99 is theirs, for what was not released."""
        environment = {**os.environ, "GRADC_LIBCUDA": str(DRIVER), "GRADC_CUBLASLT_PATH": str(PRODUCTS),
                       "GRADC_FAKE_KERNELS": str(self.kernels), **variables}
        return run(self.executable, *arguments, expect=expect, env=environment)


class OneLayer(Case):
    """GPT-2 of one layer, two microbatches a step."""

    @classmethod
    def setUpClass(cls):
        cls.model = model_with("one-layer", n_layer=1)
        cls.flags = ("--micro-batch", 1, "--seq", 16, "--grad-accum", 2)
        cls.program = Program(cls.model, "gpt2", *cls.flags)
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def command(self, steps, *flags):
        return ("train", "--data", self.data, "--steps", steps, "--lr", 1e-2, "--lr-decay", "constant", *flags)

    def losses(self, path):
        return [(line["loss"], line["grad_norm"]) for line in metrics(path)]
