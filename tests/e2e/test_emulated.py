"""GPU kernels, run by the host's emulator, in whole training steps: against the same PyTorch goldens and
within the same bounds as the CPU's (test_goldens.py, test_precision.py)."""

import unittest

import test_goldens
import test_precision
from harness import GOLDENS, GRADC, Case, fresh, run

EMULATED = ("--target", "cuda:sm_90", "--emulate")


class Emulated(Case):
    check = test_goldens.Goldens.check
    train = test_goldens.Goldens.train
    check_accumulation = test_goldens.Goldens.check_accumulation
    check_precision = test_precision.Precision.check
    compiled = test_precision.Precision.compiled
    command = test_precision.Precision.command
    gradients = test_precision.Precision.gradients

    def test_gpt2(self):
        self.check("tiny-gpt2", *EMULATED)

    def test_llama3(self):
        self.check("tiny-llama3", "--target", "cuda:sm_80", "--emulate")

    def test_mistral_documents(self):
        self.check("tiny-mistral-documents", *EMULATED)

    def test_qwen2(self):
        self.check("tiny-qwen2", *EMULATED)

    def test_accumulation_in_chunks(self):
        self.check_accumulation("tiny-gpt2-variant", "--loss-chunk", 3, *EMULATED)

    def test_bf16(self):
        self.check_precision("tiny-gpt2", "bf16", *EMULATED)

    def test_fp16(self):
        self.check_precision("tiny-llama3", "fp16", *EMULATED)

    def test_tf32(self):
        self.check_precision("tiny-gpt2", "tf32", *EMULATED)

    def test_fp8(self):
        self.check_precision("tiny-llama3", "fp8", *EMULATED)


class Targets(Case):
    def test_assembly_needs_no_toolkit(self):
        for precision in ("fp32", "bf16"):
            path = fresh("emulated.ptx")
            run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", path, "--emit", "ptx", "--target",
                "cuda:sm_80", "--precision", precision)
            text = path.read_text()
            self.assertIn(".target sm_80", text)
            self.assertGreater(text.count(".entry"), 20)

    def test_an_executable_for_a_gpu_is_refused(self):
        done = run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", fresh("emulated.exe"), "--target",
                   "cuda:sm_90", expect=1)
        self.assertIn("--emulate", done.stderr)

    def test_unknown_targets(self):
        for flags, word in ((("--target", "rocm"), "cuda:sm_90"), (("--target", "cuda:sm_20"), "cuda:sm_80"),
                            (("--emulate",), "--target")):
            done = run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", fresh("emulated.exe"), *flags,
                       expect=1)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
