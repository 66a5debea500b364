"""Weights kept in panels (--weight-panels): not a bit changes, checkpoints hold none of them."""

import json
import unittest

from harness import GOLDENS, GRADC, Case, compile_model, fresh, model_with, run

SHAPE = ("--micro-batch", 4, "--seq", 32)


def plan(model, *flags):
    return json.loads(run(GRADC, "plan", model, *SHAPE, "--json", *flags).stdout)["memory"]


class Panels(Case):
    @classmethod
    def setUpClass(cls):
        # A tied head, whose weight products read in both orders and the embedding as it is; and
        # weights stored the other way round.
        cls.models = {
            "gpt2": model_with("model-gpt2", "tiny-gpt2", n_layer=2, vocab_size=256, resid_pdrop=0.1),
            "llama": model_with("model-llama", "tiny-llama", num_hidden_layers=2, vocab_size=256),
        }
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def executable(self, model, panels, *flags):
        return compile_model(self.models[model], f"{model}-{panels}", *SHAPE, "--weight-panels", panels, *flags)

    def train(self, executable, *flags, steps=3):
        """Gradients of the last step, the weights after it and a validation loss."""
        gradients, weights, log = fresh("gradients"), fresh("weights"), fresh("log")
        run(executable, "train", "--data", self.data, "--val-data", self.data, "--val-every", steps,
            "--steps", steps, "--seed", 5, "--lr-decay", "constant", "--dump-grads", gradients, "--save-weights", weights,
            "--metrics", log, *flags)
        losses = [json.loads(line).get("val_loss") for line in log.read_text().splitlines()]
        self.assertIsNotNone(losses[-1])
        return gradients.read_bytes(), weights.read_bytes(), losses[-1]

    def test_not_a_bit_changes(self):
        for model, *flags in (("gpt2",), ("gpt2", "--grad-accum", 2, "--recompute", "full", "--precision", "tf32"),
                              ("llama", "--precision", "bf16"), ("llama", "--precision", "fp8", "--fuse", "off")):
            with self.subTest(model=model, flags=flags):
                self.assertEqual(self.train(self.executable(model, "on", *flags)),
                                 self.train(self.executable(model, "off", *flags)))

    def test_weights_that_are_loaded_are_packed(self):
        kept, packed = (self.executable("gpt2", panels) for panels in ("off", "on"))
        whole = self.train(kept, steps=4)
        folder, weights = fresh("checkpoints"), fresh("start")
        run(kept, "train", "--data", self.data, "--steps", 2, "--seed", 5, "--lr-decay", "constant",
            "--checkpoint-dir", folder,
            "--save-weights", weights)
        files = sorted(file.name for file in folder.rglob("*") if file.is_file())
        run(packed, "train", "--data", self.data, "--steps", 2, "--seed", 5, "--lr-decay", "constant",
            "--checkpoint-dir", fresh("packed"),
            "--save-weights", fresh("same"))
        self.assertEqual(sorted(file.name for file in (folder.parent / "packed").rglob("*") if file.is_file()), files)
        # A checkpoint of an executable without panels goes on in one with them.
        self.assertEqual(self.train(packed, "--checkpoint-dir", folder, "--resume", steps=4), whole)
        losses = [run(executable, "eval", "--data", self.data, "--init-weights", weights).stdout
                  for executable in (kept, packed)]
        self.assertEqual(*losses)

    def test_the_plan_has_them_and_is_what_runs(self):
        plain, panels = (plan(self.models["gpt2"], "--weight-panels", choice) for choice in ("off", "on"))
        self.assertGreater(panels["parameters"], 2.5 * plain["parameters"])
        self.assertEqual(panels["optimizer"], plain["optimizer"])
        executable = self.executable("gpt2", "on")
        report = json.loads(run(executable, "bench", "--steps", 2, "--json").stdout)
        self.assertEqual(report["planned_peak_bytes"], panels["peak"])
        explained = run(GRADC, "explain", executable).stdout
        self.assertIn("== panels\n9 weights of ", explained)
        self.assertIn('weight_panels "on"', explained)

    def test_auto_keeps_them_where_they_serve_and_fit(self):
        model = self.models["gpt2"]
        off, on = (plan(model, "--grad-accum", 2, "--weight-panels", choice)["peak"] for choice in ("off", "on"))
        auto = ("--weight-panels", "auto")
        self.assertEqual(plan(model, *auto), plan(model))
        self.assertEqual(plan(model, "--grad-accum", 2, *auto)["peak"], on)
        self.assertEqual(plan(model, "--grad-accum", 2, *auto, "--memory-budget", on)["peak"], on)
        self.assertEqual(plan(model, "--grad-accum", 2, *auto, "--memory-budget", on - 1)["peak"], off)

    def test_only_our_products_read_panels(self):
        for flags in (("--gemm", "library"), ("--target", "cuda:sm_90")):
            with self.subTest(flags=flags):
                done = run(GRADC, "plan", self.models["gpt2"], "--weight-panels", "on", *flags, expect=1)
                self.assertIn("--weight-panels on: only generated products", done.stderr)


if __name__ == "__main__":
    unittest.main()
