"""Logits and loss in chunks: the dense form's losses and gradients, the bits that every model
promises, and no tensor of tokens x vocabulary."""

import json
import math
import re
import unittest

from harness import (GOLDENS, GRADC, SOURCE, WORK, Case, compile_model, fresh, metrics, model_with, run,
                     safetensors)

ROWS, VOCAB = 2 * 19, 97
SHAPE = ("--micro-batch", 2, "--seq", 19)
SIZES = (19, 7, 1)  # equal chunks, a smaller last one, single rows
# Sums of the weight's gradient in another order, in f32: 2^-24 an addition, of which a few hundred.
ROUNDING = 2e-6


class LossChunks(Case):
    @classmethod
    def setUpClass(cls):
        cls.models = {
            "tied": model_with("chunks-tied", attn_pdrop=0.1, embd_pdrop=0.1, resid_pdrop=0.1),
            "untied": model_with("chunks-untied", "tiny-llama3", tie_word_embeddings=False),
        }
        cls.executables = {}
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def executable(self, model, rows, flags):
        key = (model, rows, flags)
        if key not in self.executables:
            self.executables[key] = compile_model(
                self.models[model], f"chunks-run-{len(self.executables)}", *SHAPE, "--loss-chunk", rows,
                *flags)
        return self.executables[key]

    def train(self, model, rows, *flags, threads=2):
        """Losses of a step, and of an evaluation after it; the step's gradients (a file)."""
        executable = self.executable(model, rows, flags)
        log, gradients = fresh("chunks.jsonl"), fresh("chunks.safetensors")
        run(executable, "train", "--data", self.data, "--steps", 1, "--seed", 5, "--threads", threads,
            "--val-data", self.data, "--val-every", 1, "--val-batches", 2, "--metrics", log,
            "--dump-grads", gradients)
        (line,) = metrics(log)
        return [line["loss"], line["val_loss"]], gradients

    def check(self, model, *flags, sizes=SIZES):
        """Gradients and losses of each size against the dense form's."""
        losses, path = self.train(model, "off", *flags)
        dense = safetensors(path)
        self.assertTrue(all(map(math.isfinite, losses)))
        for rows in sizes:
            with self.subTest(model=model, rows=rows, flags=flags):
                chunked, path = self.train(model, rows, *flags)
                self.assertEqual(len(chunked), len(losses))
                for actual, expected in zip(chunked, losses):
                    self.assert_within(abs(actual - expected) / expected, ROUNDING, "loss")
                self.assert_tensors(safetensors(path), dense, ROUNDING, "gradient")

    def test_tied(self):
        self.check("tied")

    def test_untied(self):
        self.check("untied", sizes=(13,))

    def test_accumulation(self):
        self.check("tied", "--grad-accum", 3, sizes=(7,))

    def test_unfused(self):
        self.check("untied", "--fuse", "off", sizes=(13,))

    def test_library_products(self):
        self.check("tied", "--gemm", "library", sizes=(13,))

    def test_precisions(self):
        self.check("tied", "--precision", "bf16", sizes=(7,))
        self.check("untied", "--precision", "fp16", "--grad-accum", 2, sizes=(13,))
        self.check("untied", "--precision", "tf32", sizes=(13,))

    def test_fp8(self):
        """The head is of bf16, and chunks that are no single rows change no bit of what it hands down:
        nothing that fp8 rounds is another number."""
        for scaling in ("current", "delayed"):
            self.check("tied", "--precision", "fp8", "--fp8-scaling", scaling, sizes=(13,))

    def test_recompute(self):
        self.check("tied", "--recompute", "full", sizes=(13,))

    def test_no_bit_depends_on_threads_fusion_or_recompute(self):
        losses, path = self.train("tied", 7, threads=1)
        gradients = path.read_bytes()
        for threads, *flags in ((2,), (3,), (5,), (2, "--fuse", "off"), (2, "--recompute", "full"),
                                (1, "--recompute", "cheap", "--fuse", "off")):
            with self.subTest(threads=threads, flags=flags):
                other, path = self.train("tied", 7, *flags, threads=threads)
                self.assertEqual(other, losses)
                self.assertEqual(path.read_bytes(), gradients)

    def largest_tensors(self, model, *flags):
        """Elements of each tensor that a kernel or product of any program touches."""
        path = fresh("chunks.exec")
        run(GRADC, "compile", model, "-o", path, *flags, "--emit", "exec")
        elements = []
        for shape in re.findall(r"tensor<((?:\d+x)+)(?:f32|bf16|f16|i32)>", path.read_text()):
            elements.append(math.prod(int(size) for size in shape.rstrip("x").split("x")))
        return elements

    def test_no_tensor_of_tokens_times_vocabulary_exists(self):
        # More tokens than features and inner features: only logits have as many elements.
        model = model_with("chunks-wide", vocab_size=1024)
        shape = ("--micro-batch", 8, "--seq", 32)
        logits = 256 * 1024
        self.assertIn(logits, self.largest_tensors(model, *shape, "--loss-chunk", "off"))
        for flags in ((), ("--grad-accum", 2), ("--precision", "bf16"), ("--recompute", "full"),
                      ("--fuse", "off")):
            with self.subTest(flags=flags):
                elements = self.largest_tensors(model, *shape, "--loss-chunk", 64, *flags)
                self.assertIn(logits // 4, elements)
                self.assertLess(max(elements), logits)

    def test_the_plan_holds_one_chunk(self):
        model = model_with("chunks-plan", vocab_size=4096)

        def plan(rows, *flags):
            done = run(GRADC, "plan", model, "--micro-batch", 8, "--seq", 32, "--json", "--loss-chunk",
                       rows, *flags)
            return json.loads(done.stdout)

        logits = 256 * 4096 * 4
        for flags in ((), ("--grad-accum", 2), ("--recompute", "full")):
            with self.subTest(flags=flags):
                dense, chunked = plan("off", *flags), plan(64, *flags)
                # What the head held beside the logits stays: up to a chunk's worth.
                saved = dense["memory"]["peak"] - chunked["memory"]["peak"]
                self.assertGreater(saved, logits // 2)
                self.assertLessEqual(saved, logits * 3 // 4)
                # No logits are computed twice: the model's FLOPs are those of the products that run.
                self.assertEqual(dense["flops_per_step"], chunked["flops_per_step"])

    def test_the_peak_is_what_runs(self):
        executable = compile_model(self.models["tied"], "chunks-bench", *SHAPE, "--loss-chunk", 13)
        report = json.loads(run(executable, "bench", "--steps", 2, "--json").stdout)
        self.assertIn(report["arena_bytes"] - report["arena_high_water_bytes"], range(64))

    def test_it_is_explained(self):
        explained = run(GRADC, "explain", self.models["tied"], *SHAPE, "--loss-chunk", 13).stdout
        self.assertIn(f"logits {ROWS} x {VOCAB} in 3 chunks of 13 rows, the last of 12", explained)
        example = run(GRADC, "explain", SOURCE / "examples" / "linear-mlir" / "model.mlir",
                      "--loss-chunk", 256).stdout
        self.assertIn("logits 1024 x 256 in 4 chunks of 256 rows", example)

    def test_rows_that_are_none_are_refused(self):
        for rows in ("-1", "seven", "1.5", "", "99999999999999999999"):
            with self.subTest(rows=rows):
                done = run(GRADC, "plan", self.models["tied"], f"--loss-chunk={rows}", expect=1)
                self.assertIn("--loss-chunk", done.stderr)

    def test_chunks_beyond_counting_are_refused(self):
        model = model_with("chunks-long", n_positions=4096)
        done = run(GRADC, "plan", model, "--seq", 4096, "--loss-chunk", 3, expect=1)
        self.assertIn("give 4 or more", done.stderr)

    def test_a_module_keeps_its_chunks(self):
        module, out = fresh("chunks.mlir"), fresh("chunks.out")
        run(GRADC, "compile", self.models["tied"], *SHAPE, "--loss-chunk", 13, "--compile-to",
            "chunk-loss", "-o", module)
        done = run(GRADC, "compile", module, "--compile-from", "chunk-loss", "--loss-chunk", 5, "-o", out,
                   expect=1)
        self.assertIn("--loss-chunk 5", done.stderr)
        run(GRADC, "compile", module, "--compile-from", "chunk-loss", "-o", out)


if __name__ == "__main__":
    unittest.main()
