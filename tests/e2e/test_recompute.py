"""Recompute: not a bit of a gradient changes, memory falls, budgets are met or refused."""

import json
import re
import unittest

from harness import GOLDENS, GRADC, WORK, Case, compile_model, fresh, model_with, run

SHAPE = ("--micro-batch", 4, "--seq", 32)


def plan(model, *flags, expect=0):
    done = run(GRADC, "plan", model, *SHAPE, "--json", *flags, expect=expect)
    return json.loads(done.stdout)["memory"] if expect == 0 else done.stderr


class Recompute(Case):
    @classmethod
    def setUpClass(cls):
        # Wide and deep enough that activations are what fills the arena.
        cls.models = {
            "gpt2": model_with("model-gpt2", "tiny-gpt2", n_layer=6, vocab_size=256,
                               resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.0),
            "llama": model_with("model-llama", "tiny-llama", num_hidden_layers=6, vocab_size=256),
        }
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def results(self, model, name, *flags):
        """Gradients of the third step and the weights after it, as bytes."""
        executable = compile_model(model, f"recompute-{name}", *SHAPE, *flags)
        gradients, weights = fresh(f"{name}-gradients"), fresh(f"{name}-weights")
        run(executable, "train", "--data", self.data, "--steps", 3, "--seed", 5,
            "--dump-grads", gradients, "--save-weights", weights)
        return gradients.read_bytes(), weights.read_bytes()

    def test_gradients_are_the_same_to_the_bit(self):
        for name, model in self.models.items():
            kept = self.results(model, name)
            for flags in (("--recompute", "cheap"), ("--recompute", "full")):
                with self.subTest(model=name, flags=flags):
                    self.assertEqual(self.results(model, name, *flags), kept)

    def test_the_same_with_accumulation_and_without_fusion(self):
        model, flags = self.models["gpt2"], ("--grad-accum", 2)
        kept = self.results(model, "gpt2", *flags)
        self.assertEqual(self.results(model, "gpt2", *flags, "--recompute", "full", "--fuse", "off"),
                         kept)

    def test_modes_save_activations(self):
        for name, model in self.models.items():
            with self.subTest(model=name):
                none, cheap, full = (plan(model, "--recompute", mode)["activations"]
                                     for mode in ("none", "cheap", "full"))
                self.assertLess(cheap, 0.75 * none)
                self.assertLess(full, 0.30 * none)

    def test_full_computes_a_layer_at_a_time(self):
        """No more than the last layer's attention runs again before its gradient does."""
        for name, model in self.models.items():
            with self.subTest(model=name):
                planned = fresh(f"{name}.exec")
                run(GRADC, "compile", model, *SHAPE, "--recompute", "full", "--emit", "exec", "-o", planned)
                program = planned.read_text().partition("exec.program @train_step")[2].partition("exec.program @")[0]
                launches = re.findall(r"exec\.launch @(\w+)_k\d+", program)
                loss = launches.index("cross_entropy_cross_entropy_grad")
                before = launches[loss:launches.index("attention_grad")]
                self.assertLessEqual(before.count("attention"), 1)
                self.assertEqual(launches.count("attention"), 12)  # of six layers, twice

    def test_ten_budgets_are_met_and_lower_ones_never_cost_more(self):
        for name, model in self.models.items():
            most, least = (plan(model, "--recompute", mode)["peak"] for mode in ("none", "full"))
            kept, last = self.results(model, name), None
            for tenth in range(9, -1, -1):
                budget = least + (most - least) * tenth // 10
                with self.subTest(model=name, budget=budget):
                    peak = plan(model, "--memory-budget", budget)["peak"]
                    self.assertLessEqual(peak, budget)
                    if last is not None:
                        self.assertLessEqual(peak, last)
                    if peak != last:
                        # Some is untouched where not the step but the program `gradients` needs most.
                        self.check_what_runs(model, name, peak, kept, "--memory-budget", budget)
                    last = peak

    def check_what_runs(self, model, name, peak, kept, *flags):
        """Gradients and weights are what they are without recompute, and the arena is what was planned.
        Gives the bytes of it that the step left untouched."""
        self.assertEqual(self.results(model, name, *flags), kept)
        executable = compile_model(model, f"recompute-{name}", *SHAPE, *flags)
        report = json.loads(run(executable, "bench", "--steps", 2, "--json").stdout)
        self.assertEqual(report["planned_peak_bytes"], peak)
        untouched = report["arena_bytes"] - report["arena_high_water_bytes"]
        self.assertGreaterEqual(untouched, 0)
        return untouched

    def test_a_budget_that_cannot_be_met_says_the_least(self):
        model = self.models["gpt2"]
        message = plan(model, "--memory-budget", "1MiB", expect=1)
        least = int(re.search(r"planned in is (\d+) bytes", message).group(1))
        self.assertEqual(plan(model, "--memory-budget", least)["peak"], least)
        plan(model, "--memory-budget", least - 1, expect=1)

    def test_sizes_that_are_none_are_refused(self):
        for size in ("0", "-5MiB", "6 apples", "1e9", "", "GiB", "inf"):
            with self.subTest(size=size):
                self.assertIn("--memory-budget", plan(self.models["gpt2"], f"--memory-budget={size}",
                                                      expect=1))

    def test_the_peak_is_what_runs(self):
        model, full = self.models["llama"], ("--recompute", "full")
        untouched = self.check_what_runs(model, "llama", plan(model, *full)["peak"],
                                         self.results(model, "llama"), *full)
        self.assertIn(untouched, range(64))


if __name__ == "__main__":
    unittest.main()
