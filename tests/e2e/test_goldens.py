"""Whole models against PyTorch in f64 (tests/goldens): losses, gradients, ten AdamW steps."""

import json
import unittest

from harness import GOLDENS, Case, compile_model, fresh, metrics, run, safetensors

LOSS_BOUND = 1e-5
GRADIENT_BOUND = 1e-4
PARAMETER_BOUND = 1e-4


def of_documents(golden):
    """The flags of a golden whose rows hold documents."""
    return ("--document-mask", "on") if "separator" in golden else ()


class Goldens(Case):
    def check(self, name, *flags):
        folder = GOLDENS / name
        golden = json.loads((folder / "golden.json").read_text())
        executable = compile_model(folder, f"golden-{name}{''.join(flags)}", "--micro-batch",
                                   golden["batch"], "--seq", golden["seq"], *of_documents(golden),
                                   *flags)
        self.train(executable, folder, golden, golden)

    def train(self, executable, folder, golden, expected, compare_tensors=True):
        log, weights, gradients = (fresh(f"golden.{kind}") for kind in
                                   ("jsonl", "weights.safetensors", "gradients.safetensors"))
        command = [executable, "train", "--data", folder / "tokens.bin", "--data-order", "sequential",
                   "--lr", golden["lr"], "--lr-decay", "constant", "--beta1", golden["betas"][0],
                   "--beta2", golden["betas"][1], "--eps", golden["eps"], "--weight-decay",
                   golden["weight_decay"], "--clip-grad", golden["clip"], "--init-weights",
                   folder / "model.safetensors"]
        run(*command, "--steps", expected["steps"], "--metrics", log, "--save-weights", weights)
        lines = metrics(log)
        self.assertEqual(len(lines), expected["steps"])
        for line, loss, norm in zip(lines, expected["losses"], expected["grad_norms"]):
            self.assert_within(abs(line["loss"] - loss) / loss, LOSS_BOUND, f"loss {line['step']}")
            self.assert_within(abs(line["grad_norm"] - norm) / norm, GRADIENT_BOUND, "grad_norm")
        if not compare_tensors:
            return
        self.assert_tensors(safetensors(weights), safetensors(folder / "params_after.safetensors"),
                            PARAMETER_BOUND, "parameter")
        run(*command, "--steps", 1, "--dump-grads", gradients)
        self.assert_tensors(safetensors(gradients), safetensors(folder / "grads.safetensors"),
                            GRADIENT_BOUND, "gradient")

    def check_accumulation(self, name, *flags):
        folder = GOLDENS / name
        golden = json.loads((folder / "golden.json").read_text())
        accumulated = golden["accum"]
        executable = compile_model(folder, f"golden-{name}-accum", *flags, "--micro-batch", golden["batch"],
                                   "--seq", golden["seq"], "--grad-accum",
                                   accumulated["grad_accum"], *of_documents(golden))
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
