"""Commands of a GPU's program beside one another: each event is needed, no bit changes, and flags go with a module."""

import os
import re
import unittest
from itertools import product

from cuda_program import TARGET, OneLayer
from harness import BUILD, GOLDENS, GRADC, compile_model, fresh, run


class Streams(OneLayer):
    def test_a_second_stream_changes_no_bit(self):
        self.assertRegex(run(GRADC, "explain", self.program.executable).stdout,
                         r"== streams\n\d+ commands on stream 0, \d+ on stream 1, \d+ events; the arena is "
                         r"\d+\.\d\d MiB larger than with --streams 1\n")
        one = compile_model(self.model, "gpt2-one-stream", *self.flags, *TARGET, "--emulate", "--streams", 1)
        self.assertNotIn("stream", run(GRADC, "explain", one).stdout.partition("== commands")[2])
        weights = [fresh(f"{name}.safetensors") for name in ("one", "two")]
        run(one, *self.command(2, "--save-weights", weights[0]))
        self.program.run(*self.command(2, "--save-weights", weights[1]))
        self.assertEqual(weights[0].read_bytes(), weights[1].read_bytes())

    def plan(self):
        planned = fresh("planned.mlir")
        run(GRADC, "compile", self.model, "-o", planned, *self.flags, *TARGET, "--compile-to", "memory-plan")
        return planned

    def test_every_event_is_needed(self):
        planned = self.plan()
        lines = planned.read_text().splitlines(keepends=True)
        waits = [number for number, line in enumerate(lines) if "exec.wait" in line]
        self.assertGreater(len(waits), 10)
        for number in waits:
            planned.write_text("".join(lines[:number] + lines[number + 1:]))
            said = run(BUILD / "bin" / "gradc-opt", planned, "--check-streams", "-o", os.devnull, expect=1).stderr
            self.assertIn("streams are not ordered: ", said)

    def test_a_plan_is_checked_as_it_is_read(self):
        planned = self.plan()
        right = planned.read_text()
        self.assertIn("stream 1", right)
        for old, new, said in ((r"^ *exec\.wait .*\n", "", "streams are not ordered"),
                               (r"(exec\.wait \d+ stream) 1\b", r"\1 -1", "attribute 'stream' failed"),
                               (r"(flops.*) stream 1\b", r"\1 stream 1000000", "expected a stream from 0 to 7"),
                               (r"exec\.record 0 stream 0\b", "exec.record 400000000 stream 0", "expected an event"),
                               (r"<arena, \d+,", "<arena, -64,", "inside of the arena"),
                               (r"(<arena, \d+, bytes) \d+", r"\1 9223372036854775807", "inside of the arena"),
                               (r"extent [1-9]\d* tasks", "extent -32 tasks", "an extent and tasks of 1 or more"),
                               (r"tasks \d+ \[", "tasks 9223372036854775807 [", "an extent and tasks of 1 or more"),
                               (r"exec\.launch @\w+", "exec.launch @none", "a kernel of the module")):
            with self.subTest(new):
                changed = re.sub(old, new, right, flags=re.MULTILINE)
                self.assertNotEqual(changed, right)
                planned.write_text(changed)
                done = run(GRADC, "compile", planned, "--compile-from", "memory-plan", "-o", fresh("tampered"), expect=1)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_stand_in_shows_that_events_are_needed(self):
        """Where stream 0 waits for nothing its memory is overwritten too soon; where stream 1 does, it reads what is
        not there yet. That each event is needed, check-streams shows."""
        log = fresh("deaf.jsonl")
        self.program.run(*self.command(3, "--metrics", log))
        right = self.losses(log)
        for order, deaf in (("late", 0), ("copies", 1)):
            with self.subTest(order):
                done = self.program.run(*self.command(3, "--metrics", log), expect=None, GRADC_FAKE_ORDER=order,
                                        GRADC_FAKE_DEAF=str(deaf))
                if done.returncode == 0:
                    self.assertNotEqual(self.losses(log), right)
                else:  # memory that nothing has written yet is NaN
                    self.assertIn("not finite", done.stderr)

    def test_a_module_goes_on_with_the_streams_that_its_budget_left(self):
        """A budget takes the second stream back before it recomputes; later phases have to know."""
        model, tight = GOLDENS / "tiny-gpt2", ("--memory-budget", "70MiB", *TARGET)
        paths = [fresh(f"{name}.mlir") for name in ("at-once", "fused", "resumed")]
        run(GRADC, "compile", model, "-o", paths[0], *tight, "--compile-to", "memory-plan")
        run(GRADC, "compile", model, "-o", paths[1], *tight, "--compile-to", "fusion")
        run(GRADC, "compile", paths[1], "-o", paths[2], "--compile-from", "fusion", "--compile-to", "memory-plan")
        self.assertNotIn("stream 1", paths[0].read_text())
        self.assertEqual(paths[2].read_text(), paths[0].read_text())

    def test_every_golden_is_ordered(self):
        """The compiler checks each plan itself, and fails where commands are not ordered."""
        for golden in sorted(path.parent for path in GOLDENS.glob("*/config.json")):
            documents = ("--document-mask", "on", "--document-separator", 0) if "documents" in golden.name else ()
            for mode, flags in product(("none", "cheap", "full"), ((), ("--epilogues", "off"), ("--fuse", "off"))):
                with self.subTest(golden.name, mode=mode, flags=flags):
                    run(GRADC, "plan", golden, *TARGET, "--precision", "bf16", "--recompute", mode, *documents, *flags)

    def test_recompute_without_epilogues_changes_no_bit(self):
        """With them a GELU is of what the library has not rounded yet, and again of what it has."""
        gradients = []
        for mode in ("none", "full"):
            flags = (*self.flags, *TARGET, "--emulate", "--precision", "bf16", "--epilogues", "off", "--recompute", mode)
            gradients.append(fresh(f"{mode}.safetensors"))
            run(compile_model(self.model, f"streams-{mode}", *flags), *self.command(2, "--dump-grads", gradients[-1]))
        self.assertEqual(gradients[0].read_bytes(), gradients[1].read_bytes())

    def test_flags_are_judged_for_the_modules_target(self):
        module, planned = fresh("autodiff.mlir"), fresh("autodiff.exec")
        run(GRADC, "compile", self.model, "-o", module, *self.flags, *TARGET, "--compile-to", "autodiff")
        resume = (GRADC, "compile", module, "-o", planned, "--compile-from", "autodiff", "--emit", "exec")
        run(*resume, "--streams", 2)
        self.assertIn("stream 1", planned.read_text())
        self.assertIn("--weight-panels on: only generated products of the CPU",
                      run(*resume, "--weight-panels", "on", expect=1).stderr)
        self.assertIn("--streams 2: the CPU runs one command at a time",
                      run(GRADC, "compile", self.model, "-o", planned, "--streams", 2, expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
