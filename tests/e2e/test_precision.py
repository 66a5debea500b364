"""Precision modes against PyTorch in f64, and what each mode promises: bits, skips, exact resumes.
The bounds, and why they are what they are, stand in tests/goldens/compare.py.
"""

import json
import math
import struct
import unittest

from harness import GOLDENS, GRADC, SOURCE, WORK, Case, compile_model, fresh, metrics, model_with, run, safetensors

from compare import BOUNDS, compare_gradients, compare_steps, compile_flags, read_golden, train_flags


class Precision(Case):
    def compiled(self, name, mode, *flags):
        golden = read_golden(GOLDENS / name)
        label = f"precision-{name}-{mode}{''.join(map(str, flags))}"
        precision = () if mode == "fp32" else ("--precision", mode)
        return golden, compile_model(GOLDENS / name, label, *compile_flags(golden), *precision, *flags)

    def command(self, executable, name, golden):
        return [executable, "train", *train_flags(GOLDENS / name, golden)]

    def gradients(self, executable, name, golden):
        path = fresh("precision.gradients")
        run(*self.command(executable, name, golden), "--steps", 1, "--dump-grads", path)
        return path

    def check(self, name, mode, *flags):
        golden, executable = self.compiled(name, mode, *flags)
        log = fresh("precision.jsonl")
        run(*self.command(executable, name, golden), "--steps", golden["steps"], "--metrics", log)
        self.assertEqual(compare_steps(metrics(log), golden, BOUNDS[mode]), [])
        self.assertEqual(compare_gradients(self.gradients(executable, name, golden), GOLDENS / name,
                                           BOUNDS[mode]), [])

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

    def test_gpt2_fp8(self):
        self.check("tiny-gpt2", "fp8")

    def test_gpt2_fp8_delayed(self):
        self.check("tiny-gpt2", "fp8", "--fp8-scaling", "delayed")

    def test_llama_fp8(self):
        self.check("tiny-llama3", "fp8")

    def test_llama_fp8_delayed(self):
        self.check("tiny-llama3", "fp8", "--fp8-scaling", "delayed")

    def test_no_bit_depends_on_fusion_or_recompute(self):
        golden, fused = self.compiled("tiny-gpt2", "bf16")
        _, other = self.compiled("tiny-gpt2", "bf16", "--fuse", "off", "--recompute", "full")
        expected = self.gradients(fused, "tiny-gpt2", golden).read_bytes()
        self.assertEqual(self.gradients(other, "tiny-gpt2", golden).read_bytes(), expected)

    def test_no_bit_of_fp8_depends_on_fusion_recompute_or_the_library(self):
        """The library's products are those of f32, of which this mode has none."""
        for flags in ((), ("--fp8-scaling", "delayed")):
            golden, fused = self.compiled("tiny-gpt2", "fp8", *flags)
            _, other = self.compiled("tiny-gpt2", "fp8", *flags, "--fuse", "off", "--recompute",
                                     "full", "--gemm", "library")
            expected = self.gradients_of_third_step(fused, golden)
            self.assertEqual(self.gradients_of_third_step(other, golden), expected, flags)
            for threads in (1, 3):
                self.assertEqual(self.gradients_of_third_step(fused, golden, "--threads", threads),
                                 expected, flags)

    def gradients_of_third_step(self, executable, golden, *flags):
        path = fresh("precision.gradients")
        run(*self.command(executable, "tiny-gpt2", golden), "--steps", 3, "--dump-grads", path, *flags)
        return path.read_bytes()

    def test_delayed_scales_settle_on_the_current_ones(self):
        """One batch again and again, nothing updated: histories fill with what current scaling sees."""
        golden, current = self.compiled("tiny-gpt2", "fp8")
        _, delayed = self.compiled("tiny-gpt2", "fp8", "--fp8-scaling", "delayed")
        count, header = golden["batch"] * golden["seq"] + 1, 1024
        data = (GOLDENS / "tiny-gpt2" / "tokens.bin").read_bytes()
        batch = WORK / "one-batch.bin"
        batch.write_bytes(data[:8] + struct.pack("<i", count) + data[12:header + 2 * count])
        gradients, last = [], []
        for executable in (current, delayed):
            path, log = fresh("precision.gradients"), fresh("precision.jsonl")
            run(executable, "train", "--data", batch, "--data-order", "sequential", "--lr", 0,
                "--steps", 60, "--init-weights", GOLDENS / "tiny-gpt2" / "model.safetensors",
                "--dump-grads", path, "--metrics", log)
            gradients.append(path.read_bytes())
            last.append([metrics(log)[-1][key] for key in ("loss", "grad_norm")])
        self.assertEqual(gradients[0], gradients[1])
        self.assertEqual(last[0], last[1])

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
        self.check_resume(executable, "--loss-scale", 2 ** 24, "--loss-scale-interval", 3)

    def test_fp8_resumes_to_the_bit(self):
        for flags in ((), ("--fp8-scaling", "delayed"), ("--fp8-scaling", "delayed", "--grad-accum", 2)):
            self.check_resume(self.compiled("tiny-gpt2", "fp8", *flags)[1])

    def check_resume(self, executable, *flags):
        flags = ("--steps", 12, *flags)
        whole = self.losses(executable, *flags)
        folder, log = fresh("precision-resume"), fresh("precision.jsonl")
        command = [executable, "train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--metrics",
                   log, "--lr", 1e-3, "--checkpoint-dir", folder, "--checkpoint-every", 5, *flags]
        run(*command)
        run("rm", "-rf", folder / "step-12", folder / "step-10")
        run(*command, "--resume")
        pick = lambda lines: [(l["loss"], l["grad_norm"], l["skipped"], l["lr"]) for l in lines]
        self.assertEqual(str(pick(metrics(log))), str(pick(whole)))

    def test_runs_end_on_gradients_that_stay_non_finite(self):
        for mode in (("bf16",), ("fp8",), ("fp8", "--fp8-scaling", "delayed")):
            self.check_end(self.compiled("tiny-gpt2", *mode)[1])

    def check_end(self, executable):
        weights = WORK / "infinite.safetensors"
        data = bytearray((GOLDENS / "tiny-gpt2" / "model.safetensors").read_bytes())
        data[-4:] = struct.pack("<f", math.inf)
        weights.write_bytes(data)
        done = run(executable, "train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--steps", 9,
                   "--init-weights", weights, expect=1)
        self.assertIn("not finite", done.stderr)

    def test_an_fp8_module_compiles_on_from_any_phase(self):
        golden, whole = self.compiled("tiny-gpt2", "fp8", "--fp8-scaling", "delayed")
        module, planned = WORK / "precision.mlir", WORK / "precision.exec"
        command = (GRADC, "compile", GOLDENS / "tiny-gpt2", "--micro-batch", golden["batch"], "--seq",
                   golden["seq"], "--precision", "fp8", "--fp8-scaling", "delayed")
        run(*command, "--emit", "exec", "-o", planned)
        expected = planned.read_text()
        self.assertIn("exec.launch", expected)
        for phase in ("precision", "autodiff", "train-step", "memory-plan"):
            run(*command, "--compile-to", phase, "-o", module)
            if phase != "memory-plan":
                run(GRADC, "compile", module, "--compile-from", phase, "--emit", "exec", "-o", planned)
                self.assertEqual(planned.read_text(), expected, phase)
        executable = WORK / "precision-continued"
        run(GRADC, "compile", module, "-o", executable, "--compile-from", "memory-plan")
        self.assertEqual(str(self.losses(executable, "--steps", 3)[-1]["loss"]),
                         str(self.losses(whole, "--steps", 3)[-1]["loss"]))
        done = run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", executable, "--fp8-scaling", "delayed",
                   expect=1)
        self.assertIn("needs --precision fp8", done.stderr)

    def test_explain_names_what_runs_in_fp8(self):
        golden, executable = self.compiled("tiny-gpt2", "fp8")
        text = run(GRADC, "explain", executable).stdout
        self.assertIn("reads f8E4M3FN, and its gradient as f8E5M2", text)
        self.assertIn("computes in the mode's type", text)

    def test_a_deep_model_trains_as_in_fp32(self):
        """The demo in small (`./dev precisions` trains that): finite, and its validation loss within 2 %."""
        changes = {"n_layer": 16, "n_embd": 256, "n_head": 4, "n_positions": 64, "n_ctx": 64,
                   "vocab_size": 256, "n_inner": None}
        folder, validation = model_with("model-deep", **changes), {}
        for mode in (("fp32",), ("tf32",), ("bf16",), ("fp16",), ("fp8",),
                     ("fp8", "--fp8-scaling", "delayed")):
            executable = compile_model(folder, "precision-deep", "--seq", 64, "--precision", *mode)
            log = fresh("precision.jsonl")
            run(executable, "train", "--data", __file__, "--lr", 1e-3, "--steps", 60, "--warmup", 10,
                "--val-data", __file__, "--val-every", 60, "--val-batches", 40, "--metrics", log)
            lines = metrics(log)
            self.assertEqual(len(lines), 60)
            for line in lines:
                self.assertTrue(math.isfinite(line["loss"]) or line["skipped"], mode)
            self.assert_within(lines[-1]["loss"], 0.8 * lines[0]["loss"], f"last loss of {mode}")
            validation[mode] = lines[-1]["val_loss"]
            difference = abs(validation[mode] / validation[("fp32",)] - 1)
            self.assert_within(difference, 0.02, f"validation loss of {mode}, relative to fp32's")

    def test_narrow_modes_need_less_memory(self):
        activations = {}
        for mode in ("fp32", "bf16"):
            _, executable = self.compiled("tiny-gpt2", mode)
            report = json.loads(run(executable, "info", "--json").stdout)
            self.assertEqual(report["precision"], mode)
            activations[mode] = report["memory"]["activations"]
        self.assertLess(activations["bf16"], activations["fp32"])

    def test_fp8_keeps_a_byte_where_bf16_keeps_two(self):
        memory = {}
        for mode in ("bf16", "fp8"):
            done = run(GRADC, "plan", SOURCE / "examples" / "gpt2-demo", "--micro-batch", 8, "--seq", 256,
                       "--precision", mode, "--json")
            memory[mode] = json.loads(done.stdout)["memory"]
        for kind in ("activations", "parameters"):
            self.assertLess(memory["fp8"][kind], memory["bf16"][kind], kind)


if __name__ == "__main__":
    unittest.main()
