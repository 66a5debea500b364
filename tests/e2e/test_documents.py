"""Packed documents with --document-mask: the same losses and gradients as rows of their own, for any
split and any number of threads; evaluation and generation see documents alike."""

import array
import json
import random
import unittest

from harness import GOLDENS, WORK, Case, compile_model, fresh, metrics, model_with, run, safetensors

# Sums in another order, in f32.
LOSS_BOUND = 1e-6
GRADIENT_BOUND = 1e-5
SEPARATOR = 5


def write_tokens(name, documents):
    """A nanoGPT file of documents, each ended by the separator."""
    tokens = [token for document in documents for token in (*document, SEPARATOR)]
    path = WORK / name
    path.write_bytes(array.array("H", tokens).tobytes())
    return path


def random_documents(lengths, vocab):
    """Documents without separators inside, which count in their length."""
    source = random.Random(3)
    others = [token for token in range(vocab) if token != SEPARATOR]
    return [source.choices(others, k=length - 1) for length in lengths]


class Documents(Case):
    # Learned positions, and rotary ones with windows and grouped heads.
    MODELS = {"tiny-gpt2-documents": 97, "tiny-mistral-documents": 61}
    DROPOUT = {"tiny-gpt2-documents": {"attn_pdrop": 0.1, "embd_pdrop": 0.2, "resid_pdrop": 0.1},
               "tiny-mistral-documents": {"attention_dropout": 0.1}}

    def compile(self, model, name, *flags, folder=None):
        return compile_model(folder or GOLDENS / model, f"documents-{model}-{name}", "--document-mask",
                             "on", *flags)

    def with_dropout(self, model):
        return model_with(f"documents-{model}-dropout", model, **self.DROPOUT[model])

    def train(self, executable, model, data, *flags, rate=0.01):
        """Loss of each step, and the gradients of the last."""
        log, gradients = fresh("documents.jsonl"), fresh("documents.safetensors")
        run(executable, "train", "--data", data, "--data-order", "sequential", "--lr", rate,
            "--init-weights", GOLDENS / model / "model.safetensors", "--metrics", log,
            "--dump-grads", gradients, *flags)
        return [line["loss"] for line in metrics(log)], gradients

    def assert_same(self, actual, expected):
        (losses, gradients), (other_losses, other_gradients) = actual, expected
        self.assertEqual(len(losses), len(other_losses))
        for loss, other in zip(losses, other_losses):
            self.assert_within(abs(loss - other) / other, LOSS_BOUND, "loss")
        self.assert_tensors(safetensors(gradients), safetensors(other_gradients), GRADIENT_BOUND,
                            "gradient")

    def test_packed_rows_are_rows_of_their_own(self):
        for model, vocab in self.MODELS.items():
            with self.subTest(model):
                data = write_tokens("documents-equal.bin", random_documents([8] * 13, vocab))
                packed = self.compile(model, "packed", "--micro-batch", 2, "--seq", 24)
                apart = self.compile(model, "apart", "--micro-batch", 6, "--seq", 8)
                expected = self.train(apart, model, data, "--steps", 1)
                log, kept = expected[0], WORK / "documents-apart.safetensors"
                expected[1].rename(kept)
                actual = self.train(packed, model, data, "--steps", 1)
                self.assert_same(actual, (log, kept))
                unmasked = compile_model(GOLDENS / model, f"documents-{model}-unmasked",
                                         "--micro-batch", 2, "--seq", 24)
                (other,), _ = self.train(unmasked, model, data, "--steps", 1)
                self.assertGreater(abs(other - log[0]), 1e-3)

    def test_split_into_microbatches_changes_nothing(self):
        """Documents of many lengths: microbatches have different numbers of labels. The same elements
        are dropped in every split, with the loss in chunks of rows, and without fusion."""
        for model, vocab in self.MODELS.items():
            with self.subTest(model):
                lengths = [1, 1, 1, 17, 2, 30, 4, 1, 9, 40, 3, 3, 25, 60, 1, 2, 50, 31, 20]
                data = write_tokens("documents-many.bin", random_documents(lengths, vocab))
                results, folder = [], self.with_dropout(model)
                for rows, *flags in ((4,), (2, "--grad-accum", 2, "--loss-chunk", 13),
                                     (1, "--grad-accum", 4, "--loss-chunk", 7, "--fuse", "off")):
                    executable = self.compile(model, f"split{rows}", "--micro-batch", rows, "--seq",
                                              20, *flags, folder=folder)
                    # AdamW makes whole steps of what rounding leaves of a gradient near 0: small ones.
                    losses, gradients = self.train(executable, model, data, "--steps", 3, rate=0.001)
                    results.append((losses, gradients.rename(WORK / f"documents-split{rows}")))
                for other in results[1:]:
                    self.assert_same(other, results[0])

    def test_same_bits_for_any_number_of_threads_recompute_and_fusion(self):
        for model in self.MODELS:
            with self.subTest(model):
                data = GOLDENS / model / "tokens.bin"
                shape, folder = ("--micro-batch", 4, "--seq", 20), self.with_dropout(model)
                plain = self.compile(model, "plain", *shape, folder=folder)
                again = self.compile(model, "full", *shape, "--recompute", "full", "--fuse", "off",
                                     folder=folder)
                results = []
                for executable, threads in ((plain, 1), (plain, 2), (plain, 5), (again, 2)):
                    losses, gradients = self.train(executable, model, data, "--steps", 3,
                                                   "--threads", threads)
                    results.append((losses, gradients.read_bytes()))
                for other in results[1:]:
                    self.assertEqual(other, results[0])

    def test_narrow_types_agree_with_float64(self):
        """The bounds of tests/goldens/compare.py, in units: for a loss and for each gradient."""
        model = "tiny-mistral-documents"
        golden = json.loads((GOLDENS / model / "golden.json").read_text())
        expected = safetensors(GOLDENS / model / "grads.safetensors")
        for unit, of_loss, of_gradient, *mode in (
                (2.0 ** -8, 1, 8, "bf16"), (2.0 ** -11, 1, 8, "fp16"), (2.0 ** -3, 1 / 8, 3, "fp8"),
                (2.0 ** -3, 1 / 8, 3, "fp8", "--fp8-scaling", "delayed")):
            with self.subTest(mode):
                executable = self.compile(model, "".join(mode), "--micro-batch", golden["batch"], "--seq",
                                          golden["seq"], "--precision", *mode)
                (loss,), gradients = self.train(executable, model, GOLDENS / model / "tokens.bin",
                                                "--steps", 1)
                first = golden["losses"][0]
                self.assert_within(abs(loss - first) / first, of_loss * unit, "loss")
                self.assert_tensors(safetensors(gradients), expected, of_gradient * unit, "gradient")

    def test_evaluation_counts_the_labels_that_are_left(self):
        model, vocab = "tiny-gpt2-documents", 97
        documents = random_documents([7, 1, 5, 5, 7], vocab)
        data = write_tokens("documents-eval.bin", documents)  # 25 tokens
        executable = self.compile(model, "eval", "--micro-batch", 1, "--seq", 24)
        (loss,), _ = self.train(executable, model, data, "--steps", 1)
        done = run(executable, "eval", "--data", data, "--json", "--init-weights",
                   GOLDENS / model / "model.safetensors")
        result = json.loads(done.stdout)
        # 24 predictions, of which those behind the first four separators have no label.
        self.assertEqual(result["tokens"], 20)
        self.assert_within(abs(result["loss"] - loss) / loss, LOSS_BOUND, "loss")

    def test_generation_forgets_documents_before(self):
        for model in self.MODELS:
            with self.subTest(model):
                executable = self.compile(model, "generate", "--micro-batch", 1, "--seq", 24)
                outputs = [
                    run(executable, "generate", "--prompt-ids", prompt, "--tokens", 6,
                        "--temperature", 0, "--init-weights",
                        GOLDENS / model / "model.safetensors").stdout.strip().split(",")[-6:]
                    for prompt in ("11,12", f"9,8,7,{SEPARATOR},11,12", f"1,{SEPARATOR},11,12")]
                self.assertEqual(len(outputs[0]), 6)
                self.assertEqual(outputs[1], outputs[0])
                self.assertEqual(outputs[2], outputs[0])

    def test_data_without_a_label_is_refused(self):
        executable = self.compile("tiny-gpt2-documents", "none", "--micro-batch", 1, "--seq", 24)
        data = write_tokens("documents-none.bin", [()] * 40)
        for command in (("train", "--steps", 1), ("eval", "--init-weights", GOLDENS /
                        "tiny-gpt2-documents" / "model.safetensors")):
            done = run(executable, *command, "--data", data, expect=1)
            self.assertIn("--document-separator", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_metadata_names_the_flags(self):
        for flags, mask, separator in (((), "on", SEPARATOR),
                                       (("--document-separator", 7), "on", 7)):
            executable = self.compile("tiny-gpt2-documents", f"info{separator}", "--micro-batch", 1, "--seq", 24, *flags)
            found = json.loads(run(executable, "info", "--json").stdout)["flags"]
            self.assertEqual((found["document_mask"], found["document_separator"]),
                             (mask, separator))


if __name__ == "__main__":
    unittest.main()
