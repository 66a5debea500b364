"""Executables for an NVIDIA GPU as tests run them: on stand-ins of its driver and of cuBLASLt (tests/cuda)."""

import os

from harness import BUILD, GRADC, compile_model, fresh, run

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
