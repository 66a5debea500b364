"""Memory is what the compiler printed: the arena to its alignment, the process within 5 % + 64 MiB."""

import json
import unittest

from harness import SOURCE, Case, compile_model, run


class Memory(Case):
    def test_peaks_are_as_planned(self):
        for model in ("gpt2-demo", "llama-demo"):
            executable = compile_model(SOURCE / "examples" / model, f"memory-{model}",
                                       "--micro-batch", 4, "--seq", 128)
            report = json.loads(run(executable, "bench", "--steps", 2, "--json").stdout)
            info = json.loads(run(executable, "info", "--json").stdout)
            # The last buffer's padding to 64 bytes is planned and not touched.
            untouched = report["arena_bytes"] - report["arena_high_water_bytes"]
            self.assertIn(untouched, range(64))
            self.assertEqual(report["planned_peak_bytes"], info["peak_bytes"])
            bound = info["peak_bytes"] * 1.05 + (64 << 20)
            self.assert_within(report["resident_peak_bytes"], bound, "resident peak")


if __name__ == "__main__":
    unittest.main()
