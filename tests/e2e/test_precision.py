"""Precision modes against PyTorch in f64, and what each mode promises: bits, skips, exact resumes.

A mode's bounds are its unit of rounding u (of the inputs of products: 2^-11 for tf32 and fp16, 2^-8
for bf16) times a factor: losses within u, gradients by norm within 8 u, each and all together. PyTorch's
autocast gives 5.3 u (bf16) and 5.7 u (fp16) all together on tiny-llama3. The gradient of a key's bias
is what is left after cancellation (a softmax does not see a shift of all its scores; autocast: 12 u),
so its bound is 32 u.
"""

import json
import math
import struct
import unittest

from harness import GOLDENS, WORK, Case, compile_model, fresh, metrics, relative, run, safetensors

UNITS = {"tf32": 2.0 ** -11, "fp16": 2.0 ** -11, "bf16": 2.0 ** -8}


class Precision(Case):
    def compiled(self, name, mode, *flags):
        golden = json.loads((GOLDENS / name / "golden.json").read_text())
        label = f"precision-{name}-{mode}{''.join(map(str, flags))}"
        return golden, compile_model(GOLDENS / name, label, "--micro-batch", golden["batch"], "--seq",
                                     golden["seq"], "--precision", mode, *flags)

    def command(self, executable, name, golden):
        folder = GOLDENS / name
        return [executable, "train", "--data", folder / "tokens.bin", "--data-order", "sequential",
                "--lr", golden["lr"], "--lr-decay", "constant", "--beta1", golden["betas"][0],
                "--beta2", golden["betas"][1], "--eps", golden["eps"], "--weight-decay",
                golden["weight_decay"], "--clip-grad", golden["clip"], "--init-weights",
                folder / "model.safetensors"]

    def gradients(self, executable, name, golden):
        path = fresh("precision.gradients")
        run(*self.command(executable, name, golden), "--steps", 1, "--dump-grads", path)
        return path

    def check(self, name, mode):
        golden, executable = self.compiled(name, mode)
        log = fresh("precision.jsonl")
        run(*self.command(executable, name, golden), "--steps", golden["steps"], "--metrics", log)
        lines = metrics(log)
        for line, loss in zip(lines, golden["losses"], strict=True):
            self.assertFalse(line["skipped"])
            self.assert_within(abs(line["loss"] - loss) / loss, UNITS[mode], f"loss {line['step']}")
        expected = safetensors(GOLDENS / name / "grads.safetensors")
        actual = safetensors(self.gradients(executable, name, golden))
        self.assertEqual(sorted(actual), sorted(expected))
        for tensor, values in expected.items():
            units = 32 if tensor.endswith("k_proj.bias") else 8
            self.assert_within(relative(actual[tensor], values), units * UNITS[mode], tensor)
        together = [sum((list(tensors[tensor]) for tensor in expected), [])
                    for tensors in (actual, expected)]
        self.assert_within(relative(*together), 8 * UNITS[mode], "all gradients")

    def test_gpt2_tf32(self):
        self.check("tiny-gpt2", "tf32")

    def test_gpt2_bf16(self):
        self.check("tiny-gpt2", "bf16")

    def test_gpt2_fp16(self):
        self.check("tiny-gpt2", "fp16")

    def test_llama_bf16(self):
        self.check("tiny-llama3", "bf16")

    def test_llama_fp16(self):
        self.check("tiny-llama3", "fp16")

    def test_no_bit_depends_on_fusion_or_recompute(self):
        golden, fused = self.compiled("tiny-gpt2", "bf16")
        _, other = self.compiled("tiny-gpt2", "bf16", "--fuse", "off", "--recompute", "full")
        expected = self.gradients(fused, "tiny-gpt2", golden).read_bytes()
        self.assertEqual(self.gradients(other, "tiny-gpt2", golden).read_bytes(), expected)

    def losses(self, executable, *flags):
        log = fresh("precision.jsonl")
        run(executable, "train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--metrics", log,
            "--lr", 1e-3, *flags)
        return metrics(log)

    def test_fp16_skips_what_overflows_and_goes_on(self):
        _, executable = self.compiled("tiny-gpt2", "fp16")
        lines = self.losses(executable, "--steps", 20, "--loss-scale", 2 ** 24, "--warmup", 10)
        self.assertTrue(lines[0]["skipped"])
        self.assertLess(sum(line["skipped"] for line in lines), 10)
        self.assertTrue(all(math.isfinite(line["loss"]) for line in lines))
        # The schedule waits: a step has the rate of the updates done so far.
        whole = self.losses(executable, "--steps", 20, "--warmup", 10)
        self.assertFalse(any(line["skipped"] for line in whole))
        updates = 0
        for line in lines:
            self.assertEqual(line["lr"], whole[updates]["lr"])
            updates += not line["skipped"]

    def test_a_skipped_step_changes_nothing(self):
        golden, executable = self.compiled("tiny-gpt2", "fp16")
        before, after = GOLDENS / "tiny-gpt2" / "model.safetensors", fresh("precision.weights")
        run(*self.command(executable, "tiny-gpt2", golden), "--steps", 2, "--loss-scale", 2 ** 24,
            "--save-weights", after)
        self.assertEqual(safetensors(after), safetensors(before))

    def test_fp16_resumes_to_the_bit(self):
        _, executable = self.compiled("tiny-gpt2", "fp16")
        flags = ("--steps", 12, "--loss-scale", 2 ** 24, "--loss-scale-interval", 3)
        whole = self.losses(executable, *flags)
        folder, log = fresh("precision-resume"), fresh("precision.jsonl")
        command = [executable, "train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--metrics",
                   log, "--lr", 1e-3, "--checkpoint-dir", folder, "--checkpoint-every", 5, *flags]
        run(*command)
        run("rm", "-rf", folder / "step-12", folder / "step-10")
        run(*command, "--resume")
        pick = lambda lines: [(l["loss"], l["grad_norm"], l["skipped"], l["lr"]) for l in lines]
        self.assertEqual(str(pick(metrics(log))), str(pick(whole)))

    def test_bf16_ends_on_gradients_that_stay_non_finite(self):
        golden, executable = self.compiled("tiny-gpt2", "bf16")
        weights = WORK / "infinite.safetensors"
        data = bytearray((GOLDENS / "tiny-gpt2" / "model.safetensors").read_bytes())
        data[-4:] = struct.pack("<f", math.inf)
        weights.write_bytes(data)
        done = run(executable, "train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--steps", 9,
                   "--init-weights", weights, expect=1)
        self.assertIn("not finite", done.stderr)

    def test_narrow_modes_need_less_memory(self):
        activations = {}
        for mode in ("fp32", "bf16"):
            _, executable = self.compiled("tiny-gpt2", mode)
            report = json.loads(run(executable, "info", "--json").stdout)
            self.assertEqual(report["precision"], mode)
            activations[mode] = report["memory"]["activations"]
        self.assertLess(activations["bf16"], activations["fp32"])


if __name__ == "__main__":
    unittest.main()
