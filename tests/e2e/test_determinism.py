"""The same losses, bit for bit: from run to run, for any number of threads, across interruptions."""

import signal
import subprocess
import time
import unittest

from harness import GOLDENS, SOURCE, WORK, Case, compile_model, fresh, metrics, run, safetensors


class Determinism(Case):
    @classmethod
    def setUpClass(cls):
        cls.executable = compile_model(GOLDENS / "tiny-gpt2", "determinism", "--micro-batch", 2,
                                       "--seq", 16)
        cls.data = GOLDENS / "tiny-gpt2" / "tokens.bin"

    def losses(self, *flags):
        log = fresh("determinism.jsonl")
        run(self.executable, "train", "--data", self.data, "--steps", 12, "--metrics", log, *flags)
        return [(line["loss"], line["grad_norm"]) for line in metrics(log)]

    def test_same_from_run_to_run(self):
        first = self.losses()
        self.assertEqual(len(first), 12)
        for _ in range(3):
            self.assertEqual(self.losses(), first)

    def test_same_for_any_number_of_threads(self):
        one = self.losses("--threads", 1)
        for threads in (2, 3, 5):
            self.assertEqual(self.losses("--threads", threads), one)

    def test_another_seed_is_another_run(self):
        self.assertNotEqual(self.losses("--seed", 7), self.losses("--seed", 8))

    def test_resume_continues_to_the_bit(self):
        whole = self.losses()
        log, folder, weights = fresh("resume.jsonl"), fresh("resume"), fresh("resume.safetensors")
        command = [self.executable, "train", "--data", self.data, "--metrics", log,
                   "--checkpoint-dir", folder, "--checkpoint-every", 3]
        # The schedule is that of the whole run: steps is its length.
        run(*command, "--steps", 12)
        expected = safetensors(self.weights_after(12))
        run("rm", "-rf", folder / "step-12", folder / "step-9")
        done = run(*command, "--steps", 12, "--resume", "--save-weights", weights)
        self.assertIn("step", done.stdout)
        resumed = [(line["loss"], line["grad_norm"]) for line in metrics(log)]
        self.assertEqual(resumed, whole)
        self.assertEqual(safetensors(weights), expected)

    def weights_after(self, steps):
        path = fresh("whole.safetensors")
        run(self.executable, "train", "--data", self.data, "--steps", steps, "--save-weights", path)
        return path

    def test_sigterm_saves_and_resumes(self):
        steps = 20000
        log, folder = fresh("sigterm.jsonl"), fresh("sigterm")
        command = [str(a) for a in (self.executable, "train", "--data", self.data, "--steps", steps,
                                    "--metrics", log, "--checkpoint-dir", folder)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.time() + 60
        while time.time() < deadline and not (log.exists() and log.stat().st_size > 2000):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)
        stopped = metrics(log)[-1]["step"]
        self.assertGreater(stopped, 0)
        self.assertLess(stopped, steps)
        self.assertTrue((folder / f"step-{stopped}").is_dir())


if __name__ == "__main__":
    unittest.main()
