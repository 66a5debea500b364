"""GPU kernels, run by the host's emulator, in whole training steps: against the same PyTorch goldens and
within the same bounds as the CPU's (test_goldens.py, test_precision.py), and against the CPU."""

import contextlib
import json
import os
import pty
import subprocess
import unittest

import test_goldens
import test_precision
from compare import BOUNDS, compare_steps, compile_flags, read_golden, train_flags
from harness import (GOLDENS, GRADC, SOURCE, Case, compile_model, fresh, metrics, model_with, run)

LINEAR = SOURCE / "examples" / "linear-mlir" / "model.mlir"
CODEGEN = SOURCE / "tests" / "codegen"
EMULATED = ("--target", "cuda:sm_90", "--emulate")
MODES = {"fp32": (), "tf32": ("--precision", "tf32"), "bf16": ("--precision", "bf16"),
         "fp16": ("--precision", "fp16"), "fp8": ("--precision", "fp8"),
         "fp8-delayed": ("--precision", "fp8", "--fp8-scaling", "delayed")}
# What every golden trains in besides fp32: every mode with every family of models.
NARROW = {"tiny-gpt2": ("bf16", "fp8"), "tiny-gpt2-documents": ("fp16", "fp8-delayed"),
          "tiny-gpt2-variant": ("tf32",), "tiny-llama": ("tf32", "bf16", "fp8"),
          "tiny-llama3": ("fp16", "fp8-delayed"), "tiny-mistral": ("bf16", "fp16", "fp8-delayed"),
          "tiny-mistral-documents": ("tf32", "fp8"),
          "tiny-qwen2": ("tf32", "bf16", "fp16", "fp8", "fp8-delayed")}


class Emulated(Case):
    """Ten steps of every golden: losses, as the CPU's, within the bounds of its mode, and in fp32 the
    gradients' norms."""

    def check_steps(self, name, mode):
        folder = GOLDENS / name
        golden = read_golden(folder)
        executable = compile_model(folder, f"emulated-{name}-{mode}", *compile_flags(golden),
                                   *MODES[mode], *EMULATED)
        log = fresh("emulated.jsonl")
        run(executable, "train", *train_flags(folder, golden), "--steps", golden["steps"], "--metrics",
            log)
        self.assertEqual(compare_steps(metrics(log), golden, BOUNDS[mode.partition("-")[0]]), [])

    def test_every_mode_meets_every_family(self):
        self.assertEqual(set(NARROW), {golden.name for golden in GOLDENS.glob("tiny-*")})
        met = {(json.loads((GOLDENS / name / "config.json").read_text())["model_type"], mode)
               for name, modes in NARROW.items() for mode in modes}
        self.assertEqual(met, {(family, mode) for family in ("gpt2", "llama", "mistral", "qwen2")
                               for mode in MODES if mode != "fp32"})


for name, modes in NARROW.items():
    for mode in ("fp32", *modes):
        def test(self, name=name, mode=mode):
            self.check_steps(name, mode)
        setattr(Emulated, f"test_{name}_{mode}".replace("-", "_"), test)


class Tensors(Case):
    """Gradients and parameters, too, and what no golden has."""

    check = test_goldens.Goldens.check
    train = test_goldens.Goldens.train
    check_precision = test_precision.Precision.check
    compiled = test_precision.Precision.compiled
    command = test_precision.Precision.command
    gradients = test_precision.Precision.gradients

    def test_gpt2(self):
        self.check("tiny-gpt2", *EMULATED)

    def test_bf16(self):
        self.check_precision("tiny-gpt2", "bf16", *EMULATED)

    def test_fp8(self):
        self.check_precision("tiny-gpt2", "fp8", *EMULATED)

    def check_beside_cpu(self, model, bound, *flags, data="tiny-gpt2"):
        """Losses and norms of three steps are those of the CPU's."""
        lines = {}
        for target in ((), EMULATED):
            executable = compile_model(model, f"emulated-{model.stem}{len(target)}", *flags, *target)
            log = fresh("emulated.jsonl")
            run(executable, "train", "--data", GOLDENS / data / "tokens.bin", "--steps", 3, "--lr", 1e-2,
                "--metrics", log)
            lines[target] = metrics(log)
        self.assertEqual(len(lines[()]), 3)
        for cpu, emulated in zip(lines[()], lines[EMULATED], strict=True):
            for key, factor in ("loss", 1), ("grad_norm", 8):
                self.assert_within(abs(emulated[key] - cpu[key]) / cpu[key], factor * bound,
                                   f"{model.stem} {key} {cpu['step']}")

    def test_accumulation_in_chunks(self):
        self.check_beside_cpu(GOLDENS / "tiny-qwen2", BOUNDS["fp32"].loss, "--micro-batch", 2, "--seq", 20,
                              "--grad-accum", 2, "--loss-chunk", 7, data="tiny-qwen2")

    def test_slices_at_odd_columns(self):
        for mode in ("fp32", "bf16"):
            self.check_beside_cpu(CODEGEN / "odd-slices.mlir", BOUNDS[mode].loss, "--precision", mode)

    def test_heads_that_begin_at_8_bytes(self):
        model = model_with("emulated-36", n_embd=36)  # query, key and value begin at 72 bytes
        self.check_beside_cpu(model, BOUNDS["bf16"].loss, "--precision", "bf16", "--micro-batch", 2, "--seq",
                              24)

    def test_rows_that_are_padded(self):
        self.check_beside_cpu(CODEGEN / "padded-rows.mlir", BOUNDS["fp32"].loss)

    def test_one_row_and_one_column(self):
        """A number of the row is then shaped as an element."""
        narrow = model_with("emulated-one-column", n_embd=1, n_head=1)
        for model, batch, seq, fuse in ((GOLDENS / "tiny-gpt2", 1, 1, "on"), (GOLDENS / "tiny-gpt2", 1, 1, "off"),
                                        (GOLDENS / "tiny-llama", 1, 1, "on"), (narrow, 2, 8, "on")):
            self.check_beside_cpu(model, 2 * BOUNDS["fp32"].loss, "--micro-batch", batch, "--seq", seq, "--fuse", fuse)


class Traces(Case):
    def check_trace(self, mode, *target):
        """What a trace tells of each kernel in a step is what `gradc explain` tells of it: the kernel's own
        count, where there is none the fewest bytes and FLOPs that would do."""
        folder = GOLDENS / "tiny-gpt2"
        golden = read_golden(folder)
        executable = compile_model(folder, f"traced-{mode}", *compile_flags(golden), *MODES[mode], *target)
        told = json.loads(run(GRADC, "explain", executable, "--json").stdout)["kernels"]
        expected = {use["name"]: [use["launches"], *(use.get(key, use[f"least_{key}"]) for key in ("bytes", "flops"))]
                    for use in told if use["launches"]}
        trace, traced = fresh("trace.json"), {}
        run(executable, "train", *train_flags(folder, golden), "--steps", 1, "--trace", trace)
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event.get("cat") in ("kernel", "matmul"):
                sums = traced.setdefault(event["name"], [0, 0, 0])
                for i, amount in enumerate((1, event["args"]["bytes"], event["args"]["flops"])):
                    sums[i] += amount
        self.assertEqual(traced, expected)
        return told

    def test_tells_of_a_gpus_kernels_what_explain_tells(self):
        for mode in ("fp32", "bf16", "fp8"):
            told = self.check_trace(mode, *EMULATED)
            self.assertTrue(all("bytes" in use and "flops" in use for use in told))
            self.assertTrue(any(use["library"] for use in told))
            self.assertTrue(any(use["flops"] > use["least_flops"] for use in told))

    def test_tells_of_the_cpus_kernels_what_explain_tells(self):
        self.check_trace("fp32")


class Evaluation(Case):
    def test_tells_a_terminal_how_far_it_is(self):
        folder = GOLDENS / "tiny-gpt2"
        executable = compile_model(folder, "eval", *compile_flags(read_golden(folder)), *EMULATED)
        data = fresh("eval.bin")
        data.write_bytes(8 * (folder / "tokens.bin").read_bytes()[1024:])  # behind llm.c's header
        terminal, errors = pty.openpty()
        process = subprocess.Popen([executable, "eval", "--data", data, "--init-weights",
                                    folder / "model.safetensors", "--json"], stdout=subprocess.PIPE, stderr=errors)
        os.close(errors)
        text = ""
        with open(terminal, "rb", buffering=0) as shown, contextlib.suppress(OSError):  # EIO: its end
            while part := shown.read(4096):
                text += part.decode()
        printed, _ = process.communicate()
        self.assertEqual(process.returncode, 0, text)
        self.assertEqual(set(json.loads(printed)), {"loss", "perplexity", "tokens"})
        self.assertRegex(text, r"^\rbatch \d+/\d+  loss \d\.\d{4}  \d+ tok/s  ETA \w+\x1b\[K\r")
        self.assertTrue(text.endswith("\r\x1b[K"), text)


class Targets(Case):
    def test_assembly_needs_no_toolkit(self):
        for precision in ("fp32", "bf16"):
            path = fresh("emulated.ptx")
            run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", path, "--emit", "ptx", "--target",
                "cuda:sm_80", "--precision", precision)
            text = path.read_text()
            self.assertIn(".target sm_80", text)
            self.assertGreater(text.count(".entry"), 20)

    def refused(self, model, *flags):
        """The one line of a compile that is the user's error."""
        done = run(GRADC, "compile", model, "-o", fresh("emulated.exe"), *flags, expect=1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_unknown_targets(self):
        every = "cpu, cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90"
        for target in ("rocm", "cuda:sm_20", "cuda:", "cuda:sm_800", "sm_90"):
            self.assertIn(f"use one of {every}", self.refused(GOLDENS / "tiny-gpt2", "--target", target))
        self.assertIn("architecture is missing", self.refused(GOLDENS / "tiny-gpt2", "--target", "cuda"))
        self.assertIn(every, " ".join(run(GRADC, "compile", "--help").stdout.split()))
        self.assertIn("--target", self.refused(GOLDENS / "tiny-gpt2", "--emulate"))

    def test_flags_that_would_do_nothing(self):
        for flag, value in (("--emit", "ptx"), ("--emit", "cubin"), ("--emit", "llvm"), ("--emit", "exec"),
                            ("--emit", "nn"), ("--compile-to", "memory-plan")):
            self.assertIn(f"leave out {flag} {value}",
                          self.refused(GOLDENS / "tiny-gpt2", *EMULATED, flag, value))
        self.assertIn("leave it out",
                      self.refused(GOLDENS / "tiny-gpt2", *EMULATED, "--gemm", "library"))
        self.assertIn("use --precision bf16",
                      self.refused(GOLDENS / "tiny-gpt2", "--target", "cuda:sm_86", "--emulate",
                                   "--precision", "fp8"))
        run(GRADC, "plan", LINEAR, *EMULATED)

    def test_a_plan_is_resumed_for_its_own_target(self):
        path = fresh("planned-for-gpu.mlir")
        run(GRADC, "compile", LINEAR, "-o", path, "--compile-to", "memory-plan", "--target", "cuda:sm_90")
        resume = ("--compile-from", "memory-plan")
        self.assertIn("compiled with cuda:sm_90", self.refused(path, *resume, "--target", "cuda:sm_80"))
        self.assertIn("leave out --emit ptx", self.refused(path, *resume, "--emulate", "--emit", "ptx"))
        executable = fresh("emulated.exe")
        run(GRADC, "compile", path, "-o", executable, *resume, "--emulate")
        self.assertIn("target       cuda:sm_90, emulated", run(executable, "info").stdout)
        bench = json.loads(run(executable, "bench", "--steps", 1, "--json").stdout)
        self.assertEqual(bench["device"], "emulated GPU")
        for key in ("mfu", "matmul_of_peak", "peak_flops_per_s"):  # the host's peak says nothing of it
            self.assertIsNone(bench[key], key)
        self.assertNotIn("boost", run("ldd", executable).stdout)

    def test_what_a_gpu_has_no_kernel_for(self):
        model = model_with("wide-heads", n_embd=288, n_head=1)
        said = self.refused(model, *EMULATED)
        self.assertTrue(said.startswith("error: transformer.h.0.attn: "), said)
        self.assertIn("head dimension", said)
        self.assertIn("--target cpu", said)


if __name__ == "__main__":
    unittest.main()
