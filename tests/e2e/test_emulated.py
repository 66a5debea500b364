"""GPU kernels, run by the host's emulator, in whole training steps: against the same PyTorch goldens and
within the same bounds as the CPU's (test_goldens.py, test_precision.py), and against the CPU."""

import unittest

import test_goldens
import test_precision
from harness import (GOLDENS, GRADC, SOURCE, Case, compile_model, fresh, metrics, model_with, run)

LINEAR = SOURCE / "examples" / "linear-mlir" / "model.mlir"
EMULATED = ("--target", "cuda:sm_90", "--emulate")


class Emulated(Case):
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

    def check_beside_cpu(self, source, bound, *flags, **changes):
        """Three steps of a golden's model with heads of 16, which kernels for GPUs want."""
        folder = model_with(f"emulated-{source}", source, **changes)
        losses = {}
        for target in ((), EMULATED):
            executable = compile_model(folder, f"emulated-{source}{len(target)}", "--micro-batch", 2,
                                       "--seq", 20, *flags, *target)
            log = fresh("emulated.jsonl")
            run(executable, "train", "--data", GOLDENS / source / "tokens.bin", "--steps", 3, "--lr",
                1e-2, "--metrics", log)
            losses[target] = [(line["loss"], line["grad_norm"]) for line in metrics(log)]
        self.assertEqual(len(losses[()]), 3)
        for cpu, emulated in zip(losses[()], losses[EMULATED], strict=True):
            for expected, actual in zip(cpu, emulated):
                self.assert_within(abs(actual - expected) / expected, bound, source)

    def test_llama3_fp16(self):
        self.check_beside_cpu("tiny-llama3", 2.0 ** -9, "--precision", "fp16", head_dim=16)

    def test_mistral_documents_tf32(self):
        self.check_beside_cpu("tiny-mistral-documents", 2.0 ** -9, "--precision", "tf32",
                              "--document-mask", "on", head_dim=16)

    def test_qwen2_accumulation_in_chunks(self):
        self.check_beside_cpu("tiny-qwen2", 1e-4, "--grad-accum", 2, "--loss-chunk", 7,
                              num_attention_heads=2, num_key_value_heads=1)


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
        self.assertIn("cuda:sm_90", run(executable, "info").stdout)
        run(executable, "bench", "--steps", 1)
        self.assertNotIn("boost", run("ldd", executable).stdout)

    def test_what_a_gpu_has_no_kernel_for(self):
        model = model_with("wide-heads", n_embd=144, n_head=1)
        said = self.refused(model, *EMULATED)
        self.assertTrue(said.startswith("error: transformer.h.0.attn: "), said)
        self.assertIn("head dimension", said)
        self.assertIn("--target cpu", said)


if __name__ == "__main__":
    unittest.main()
