"""Whole models against PyTorch in f64 (tests/goldens): losses, gradients, ten AdamW steps."""

import unittest

from harness import GOLDENS, Case, compile_model, fresh, metrics, run

from compare import (BOUNDS, compare_gradients, compare_parameters, compare_steps, compile_flags,
                     read_golden, train_flags)


class Goldens(Case):
    def check(self, name, *flags):
        folder = GOLDENS / name
        golden = read_golden(folder)
        executable = compile_model(folder, f"golden-{name}{''.join(flags)}", *compile_flags(golden),
                                   *flags)
        self.train(executable, folder, golden, golden)

    def train(self, executable, folder, golden, expected, compare_tensors=True):
        log, weights, gradients = (fresh(f"golden.{kind}") for kind in
                                   ("jsonl", "weights.safetensors", "gradients.safetensors"))
        command = [executable, "train", *train_flags(folder, golden)]
        bounds = BOUNDS["fp32"]
        run(*command, "--steps", expected["steps"], "--metrics", log, "--save-weights", weights)
        self.assertEqual(compare_steps(metrics(log), expected, bounds), [])
        if not compare_tensors:
            return
        self.assertEqual(compare_parameters(weights, folder, bounds), [])
        run(*command, "--steps", 1, "--dump-grads", gradients)
        self.assertEqual(compare_gradients(gradients, folder, bounds), [])

    def check_accumulation(self, name, *flags):
        folder = GOLDENS / name
        golden = read_golden(folder)
        accumulated = golden["accum"]
        executable = compile_model(folder, f"golden-{name}-accum", *flags, *compile_flags(golden),
                                   "--grad-accum", accumulated["grad_accum"])
        self.train(executable, folder, golden, accumulated, compare_tensors=False)

    def test_gpt2(self):
        self.check("tiny-gpt2")

    def test_gpt2_variant(self):
        self.check("tiny-gpt2-variant")

    def test_llama(self):
        self.check("tiny-llama")

    def test_llama3(self):
        self.check("tiny-llama3")

    def test_mistral(self):
        self.check("tiny-mistral")

    def test_qwen2(self):
        self.check("tiny-qwen2")

    def test_gpt2_documents(self):
        self.check("tiny-gpt2-documents")

    def test_mistral_documents(self):
        self.check("tiny-mistral-documents")

    def test_mistral_documents_unfused(self):
        self.check("tiny-mistral-documents", "--fuse", "off")

    def test_gpt2_documents_accumulation(self):
        self.check_accumulation("tiny-gpt2-documents")

    def test_mistral_documents_accumulation(self):
        self.check_accumulation("tiny-mistral-documents")

    def test_gpt2_unfused(self):
        self.check("tiny-gpt2", "--fuse", "off")

    def test_llama3_unfused(self):
        self.check("tiny-llama3", "--fuse", "off")

    def test_gpt2_in_chunks(self):
        self.check("tiny-gpt2", "--loss-chunk", "7")

    def test_llama3_in_chunks(self):
        self.check("tiny-llama3", "--loss-chunk", "5")

    def test_accumulation_in_chunks(self):
        self.check_accumulation("tiny-gpt2-variant", "--loss-chunk", 3)

    def test_gpt2_accumulation(self):
        self.check_accumulation("tiny-gpt2")

    def test_llama_accumulation(self):
        self.check_accumulation("tiny-llama")


if __name__ == "__main__":
    unittest.main()
