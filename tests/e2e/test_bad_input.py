"""What users get wrong: one line that says what, where and the mend, and the contract's exit code."""

import json
import os
import struct
import subprocess
import time
import unittest

from harness import GOLDENS, GRADC, SOURCE, WORK, Case, compile_model, fresh, run


class BadInput(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = GOLDENS / "tiny-gpt2"
        cls.executable = compile_model(cls.folder, "bad-input", "--micro-batch", 2, "--seq", 16)
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def refuse(self, *arguments, code=1, says=(), **variables):
        done = run(*arguments, expect=code, env={**os.environ, **variables})
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(lines), 1, f"one line of error, got: {done.stderr!r}")
        for part in says:
            self.assertIn(str(part), lines[0])

    def config(self, **changes):
        values = json.loads((self.folder / "config.json").read_text())
        values.update(changes)
        path = WORK / "bad-config.json"
        path.write_text(json.dumps(values))
        return path

    def compile_refused(self, path, *flags, code=1, says=()):
        self.refuse(GRADC, "compile", path, "-o", WORK / "bad", *flags, code=code, says=says)

    def test_configs(self):
        self.compile_refused(WORK / "absent.json", says=["absent.json"])
        self.compile_refused(self.config(n_embed=12), says=["n_embed"])
        self.compile_refused(self.config(scale_attn_by_inverse_layer_idx=True),
                             says=["scale_attn_by_inverse_layer_idx"])
        self.compile_refused(self.config(n_head=5), says=["n_head"])
        self.compile_refused(self.config(model_type="mamba"), says=["mamba"])
        self.compile_refused(self.config(resid_pdrop=1), says=["resid_pdrop", "below 1"])
        truncated = WORK / "truncated.json"
        truncated.write_text('{"model_type": "gpt2", ')
        self.compile_refused(truncated, says=["truncated.json"])

    def test_numbers_that_are_none(self):
        for flag, value in (("--beta1", "nan"), ("--beta2", 1), ("--eps", "nan"), ("--clip-grad", "nan"),
                            ("--weight-decay", "nan"), ("--loss-scale", "nan"),
                            ("--loss-scale-backoff", 1), ("--loss-scale-growth", "nan")):
            self.refuse(self.executable, "train", "--data", self.data, "--steps", 1, flag, value,
                        says=[flag])

    def test_outputs_that_are_inputs(self):
        data = WORK / "bad-both.bin"
        data.write_bytes(self.data.read_bytes())
        for flag in ("--metrics", "--save-weights", "--dump-grads", "--trace"):
            self.refuse(self.executable, "train", "--data", data, "--steps", 1, flag, data,
                        says=["another name"])
        self.assertEqual(data.read_bytes(), self.data.read_bytes())

    def test_modules_that_nest_too_deep(self):
        module = WORK / "bad-deep.mlir"
        module.write_text("module attributes {a = " + "[" * 20000 + "]" * 20000 + "} {}")
        self.compile_refused(module, says=["nests brackets"])

    def test_a_run_that_ends_without_a_number_fails(self):
        weights = fresh("bad-nan.safetensors")
        self.refuse(self.executable, "train", "--data", self.data, "--steps", 3, "--lr", 1e30,
                    "--save-weights", weights, says=["not finite"])
        self.assertFalse(weights.exists())

    def test_a_second_run_in_a_folder_is_refused(self):
        folder = fresh("bad-shared")
        command = [str(a) for a in (self.executable, "train", "--data", self.data, "--steps", 100000,
                                    "--checkpoint-dir", folder, "--checkpoint-every", 100000)]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.time() + 60
            while time.time() < deadline and not (folder / ".lock").exists():
                time.sleep(0.02)
            self.refuse(*command, says=["another run"])
        finally:
            first.kill()
            first.wait()

    def test_damaged_checkpoints_are_not_passed_over(self):
        folder = fresh("bad-damaged")
        command = [self.executable, "train", "--data", self.data, "--checkpoint-dir", folder]
        run(*command, "--steps", 2)
        (folder / "step-2" / "manifest.json").write_text("garbage")
        self.refuse(*command, "--steps", 4, "--resume", says=["none of its checkpoints is sound"])

    def test_flags(self):
        self.compile_refused(self.folder, "--seq", 33, says=[33, 32])
        self.compile_refused(self.folder, "--precision", "fp4", says=["fp4"])
        self.compile_refused(self.folder, "--optimizer", "adam9", says=["adam9", "adamw"])
        self.compile_refused(self.folder, "--no-such-flag", says=["--no-such-flag"])
        self.compile_refused(self.folder, "--seq", 8, "--seq", 16, says=["--seq"])
        self.refuse(self.executable, "train", "--data", self.data, "--steps", 1, "--lr", 1, "--lr", 2,
                    says=["--lr"])
        self.refuse(self.executable, "train", "--steps", 1, says=["--data"])

    def test_flags_that_would_do_nothing(self):
        self.compile_refused(self.folder, "--epilogues", "off", says=["--epilogues off", "--target cuda:ARCH"])
        self.refuse(GRADC, "explain", self.executable, "--precision", "bf16", says=["--precision", "compiled already"])
        self.refuse(GRADC, "explain", self.executable, "--html", "page.html", says=["--html is not implemented"])
        run(GRADC, "explain", self.executable, "--json")

    def test_what_a_budget_does_is_said(self):
        said = run(GRADC, "plan", self.folder, "--target", "cuda:sm_90", "--memory-budget", "70MiB").stdout
        self.assertRegex(said, r"\nrecompute    level \d+ of 0 \(keep all\) to \d+ .*: .* MiB again with .* GFLOP\n")
        self.assertIn("\nstreams      1: a second one does not fit the memory\n", said)

    def test_output_cannot_be_written(self):
        self.refuse(GRADC, "compile", self.folder, "-o", "/nonexistent/exe", code=2,
                    says=["/nonexistent/exe"])

    def test_a_toolkit_that_does_not_work(self):
        temporary, home = fresh("bad-temporary"), fresh("bad-toolkit")
        temporary.mkdir()
        (home / "bin").mkdir(parents=True)
        ptxas = home / "bin" / "ptxas"
        compile_gpu = (GRADC, "compile", SOURCE / "examples" / "linear-mlir" / "model.mlir", "-o", WORK / "bad",
                       "--target", "cuda:sm_80")
        for script, says in (("echo 'no licence'; exit 1", "exit code 1: no licence"),
                             ("echo rubbish > $5", "no ELF file"), ("rm $5", "is gone")):
            ptxas.write_text(f"#!/bin/sh\n{script}\n")
            ptxas.chmod(0o755)
            for flags in ((), ("--emit", "cubin")):
                self.refuse(*compile_gpu, *flags, code=2, says=[ptxas, says, "set CUDA_HOME"], CUDA_HOME=str(home),
                            TMPDIR=str(temporary))
        self.refuse(*compile_gpu, code=2, says=["/nonexistent", "set TMPDIR"], CUDA_HOME=str(home),
                    TMPDIR="/nonexistent")
        self.assertEqual(list(temporary.iterdir()), [])
        ptxas.unlink()  # the mend
        run(*compile_gpu, env={**os.environ, "CUDA_HOME": str(home)})

    def train_refused(self, data, *flags, code=1, says=()):
        self.refuse(self.executable, "train", "--data", data, "--steps", 2, *flags, code=code, says=says)

    def test_data(self):
        self.train_refused(WORK / "absent.bin", says=["absent.bin"])
        empty = WORK / "empty.bin"
        empty.write_bytes(b"")
        self.train_refused(empty, says=["empty.bin"])
        beyond = WORK / "beyond.bin"
        beyond.write_bytes(struct.pack("<200H", *([5] * 20 + [97] + [5] * 179)))
        self.train_refused(beyond, "--data-order", "sequential", says=["beyond.bin", 97])
        short = WORK / "short.bin"
        short.write_bytes(struct.pack("<10H", *range(10)))
        self.train_refused(short, says=["short.bin"])
        lying = WORK / "lying.bin"
        lying.write_bytes(struct.pack("<256i", 20240520, 1, 1000, *([0] * 253)) + b"\0" * 100)
        self.train_refused(lying, says=["lying.bin"])

    def test_weights(self):
        data = self.folder / "tokens.bin"
        whole = (self.folder / "model.safetensors").read_bytes()
        cut = WORK / "cut.safetensors"
        cut.write_bytes(whole[:-10])
        self.train_refused(data, "--init-weights", cut, says=["cut.safetensors"])
        other = GOLDENS / "tiny-llama" / "model.safetensors"
        self.train_refused(data, "--init-weights", other, says=["model.safetensors"])

    def test_a_full_disk_keeps_what_was_saved(self):
        self.refuse(self.executable, "train", "--data", self.folder / "tokens.bin", "--steps", 1,
                    "--save-weights", "/dev/full", code=2,
                    says=["/dev/full"])

    def test_a_full_disk_behind_standard_output(self):
        data = self.folder / "tokens.bin"
        weights = fresh("bad-output.safetensors")

        def lost(*arguments, code):
            with open("/dev/full", "w") as full:
                done = subprocess.run([str(a) for a in (self.executable, *arguments)], stdout=full,
                                      stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stderr
        said = lost("train", "--data", data, "--steps", 2, "--save-weights", weights, code=0)
        self.assertRegex(said, "^warning: standard output: cannot be written; .*\n$")
        self.assertTrue(weights.exists())
        for arguments in (("info", "--json"), ("eval", "--data", data, "--init-weights", weights),
                          ("bench", "--steps", 1, "--json")):
            self.assertRegex(lost(*arguments, code=2), "^error: standard output: cannot be written; .*\n$")

    def test_what_cannot_fit_in_memory_is_refused_before_the_first_step(self):
        config = self.config(n_embd=49152, n_head=64, n_layer=64)
        executable = compile_model(config, "too-big", "--micro-batch", 1, "--seq", 16)
        self.refuse(executable, "train", "--data", self.folder / "tokens.bin", "--steps", 1, code=2,
                    says=["GiB"])


if __name__ == "__main__":
    unittest.main()
