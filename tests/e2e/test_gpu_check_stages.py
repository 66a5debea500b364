"""The parts of the GPU check (bench/gpu), one by one: stages, what is read of tools' output, the report."""

import contextlib
import io
import json
import math
import pathlib
import time
import unittest

from gpu_check import load_build, script
from harness import GOLDENS, GRADC, WORK, Case, fresh, run

import compare
import correctness
import report
import speed
from stages import FAILED, NOT_RUN, OUT_OF_TIME, Absent, Check, Done, Problem, run_well


def ends(process):
    """Whether it is gone, or dead and not waited for, within ten seconds."""
    for _ in range(100):
        try:
            state = pathlib.Path(f"/proc/{process}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state.rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


class Stages(Case):
    def setUp(self):
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def test_what_hangs_is_ended_with_its_children(self):
        pid = fresh("child.pid")
        hang = script(WORK / "hang", f"sleep 1000 & echo $! >{pid}\nwait\n")
        checked = Check(60)
        begin = time.monotonic()
        self.assertIsNone(checked.stage("hangs", 1, lambda limit: run_well([hang], limit)))
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn("hang was not done within 1 s", checked.results[0]["detail"])
        self.assertEqual(checked.results[0]["status"], OUT_OF_TIME)
        self.assertTrue(ends(int(pid.read_text())), "the child lives on")
        self.assertEqual(checked.stage("next", 5, lambda limit: {"ran": True}), {"ran": True})
        self.assertFalse(checked.passed())

    def test_nothing_ends_the_whole(self):
        changes = []
        checked = Check(60, lambda: changes.append(1))

        def broken(limit):
            return json.loads("no JSON")

        def absent(limit):
            raise Absent("no such tool")

        for name, work in (("broken", broken), ("absent", absent),
                           ("missing", lambda limit: run_well(["/nowhere/program"], limit)),
                           ("fails", lambda limit: run_well(["sh", "-c", "echo bad >&2; exit 2"], limit)),
                           ("dies", lambda limit: run_well(["sh", "-c", "kill -SEGV $$"], limit))):
            checked.stage(name, 10, work)
        found = [(result["status"], result["detail"]) for result in checked.results]
        self.assertEqual([status for status, _ in found], [FAILED, NOT_RUN, FAILED, FAILED, FAILED])
        self.assertIn("could not read the result: JSONDecodeError", found[0][1])
        self.assertEqual(found[1][1], "no such tool")
        self.assertIn("program cannot be started: No such file", found[2][1])
        self.assertEqual(found[3][1], "sh: exit code 2: bad")
        self.assertIn("signal 11", found[4][1])
        self.assertEqual(len(changes), 5)

    def test_what_time_is_left_for(self):
        checked = Check(0.5)
        checked.stage("late", 10, lambda limit: {})
        self.assertEqual(checked.results[0]["status"], OUT_OF_TIME)
        self.assertFalse(checked.passed())
        self.assertIn("not begun", checked.results[0]["detail"])

    def test_more_time_is_more_for_each_stage(self):
        limits = []
        for seconds, slowness in ((100, 1), (460, 1), (4600, 1), (460, 10), (4600, 10), (9200, 10), (100, 10)):
            Check(seconds, slowness=slowness).stage("any", 20, lambda limit: limits.append(round(limit.seconds)))
        self.assertEqual(limits, [20, 20, 200, 200, 200, 400, 100])

    def test_absent_tools_do_not_fail_a_check(self):
        def absent(limit):
            raise Absent("no such tool")

        checked = Check(10)
        self.assertFalse(checked.passed(), "nothing ran")
        checked.stage("absent", 1, absent)
        checked.stage("passes", 1, lambda limit: {})
        self.assertTrue(checked.passed())


class Reading(Case):
    """What is read of executables' and tools' output."""

    def test_products_of_a_step(self):
        planned = fresh("step.exec")
        flags = ("--micro-batch", 2, "--seq", 24, "--precision", "bf16", "--target", "cuda:sm_90")
        for microbatches in (1, 3):
            run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", planned, "--emit", "exec", *flags, "--grad-accum",
                microbatches)
            products = load_build().list_products(planned.read_text())
            flops = sum(2 * p["m"] * p["n"] * p["k"] * p["batch"] * p["launches"] for p in products)
            text = planned.read_text()
            expected = int(text.split("matmul_flops = ", 1)[1].split(" ", 1)[0])
            self.assertEqual(flops, expected, f"{microbatches} microbatches")
            self.assertEqual({p["type"] for p in products}, {"bf16"})
            layouts = {(p["a_transposed"], p["b_transposed"]) for p in products}
            self.assertEqual(layouts, {(False, False), (False, True), (True, False)})

    def test_comparisons_fail_on_what_is_no_number(self):
        bounds, expected = compare.BOUNDS["fp32"], {"steps": 1, "losses": [2.0], "grad_norms": [1.0]}
        line = {"step": 1, "loss": 2.0, "grad_norm": 1.0, "skipped": False}
        self.assertEqual(compare.compare_steps([line], expected, bounds), [])
        for change in ({"loss": None}, {"loss": math.nan}, {"loss": 2.0001}, {"grad_norm": None}, {"grad_norm": 1.001},
                       {"skipped": True}):
            self.assertEqual(len(compare.compare_steps([line | change], expected, bounds)), 1, change)
        self.assertEqual(compare.compare_steps([], expected, bounds), ["0 steps, expected 1"])

        def problems(actual):
            return compare.compare_tensors(actual, {"w": [3.0, 4.0]}, lambda name: 1e-3, "tensor")

        self.assertEqual(problems({"w": [3.0, 4.004]}), [])
        for actual in ({"w": [3.0, 4.01]}, {"w": [3.0, math.nan]}, {"w": [3.0]}, {"v": [3.0, 4.0]}, {}):
            self.assertEqual(len(problems(actual)), 1, actual)

    def event(self, name, category, milliseconds, flops, moved):
        return {"name": name, "cat": category, "dur": milliseconds * 1e3, "args": {"flops": flops, "bytes": moved}}

    def test_kernels_of_a_trace(self):
        step = [self.event("gemm_8x8x8", "matmul", 2, 10**9, 10**6), self.event("attention_k6", "kernel", 1, 6 * 10**8, 10**5),
                self.event("attention_grad_k7", "kernel", 4, 14 * 10**8, 10**5), self.event("add_k1", "kernel", 1, 1, 20 << 20),
                self.event("add_k1", "kernel", 1, 1, 20 << 20), self.event("sum_k2", "kernel", 5, 1, 16 << 20)]
        slow = [event | {"dur": 100 * event["dur"]} for event in step]
        path = fresh("trace.json")
        path.write_text(json.dumps({"traceEvents": [{"ph": "M"}, *slow, {"cat": "step", "name": "step 1"}, *step]}))
        table = speed.read_trace(path, 2)
        self.assertEqual([row["kernel"] for row in table],
                         ["sum_k2", "attention_grad_k7", "gemm_8x8x8", "add_k1", "attention_k6"])
        rows = {row["kernel"]: row for row in table}
        self.assertEqual([rows["add_k1"][key] for key in ("launches", "flops", "bytes")], [2, 2, 40 << 20])
        # Shares are of the fewest FLOPs and bytes that would do.
        uses = [{"name": name, "launches": launches, "least_flops": flops, "least_bytes": moved}
                for name, launches, flops, moved in (("gemm_8x8x8", 1, 10**9, 10**6), ("attention_k6", 1, 4 * 10**8, 10**5),
                                                     ("attention_grad_k7", 1, 10**9, 10**5), ("add_k1", 2, 2, 32 << 20),
                                                     ("sum_k2", 1, 1, 4), ("logits_k9", 0, 0, 0))]
        speed.add_least(table, uses)
        shares = speed.kernel_shares(table, 1e-3, {"bf16_flops_per_s": 1e12, "copy_bytes_per_s": 32 * 2**30})
        for key, expected in (("products_of_library_alone", 0.5), ("attention_forward_of_peak", 0.4),
                              ("attention_backward_of_peak", 0.2), ("rows_of_copy", 1000 / 2048)):
            self.assert_within(abs(shares[key] - expected), 1e-9, key)
        for wrong in (uses[1:], [uses[0] | {"launches": 2}, *uses[1:]]):
            with self.assertRaisesRegex(Problem, "gemm_8x8x8: the trace has 1 launches a step, the executable tells"):
                speed.add_least(table, wrong)
        with self.assertRaises(Problem):
            speed.read_trace(path, 5)  # 12 launches are no 5 equal steps

    def test_reports_of_compute_sanitizer(self):
        def read(code, *reports):
            lines = ["", "COMPUTE-SANITIZER", *reports, "ERROR SUMMARY: 1 error"]
            text = "\n".join(f"========= {line}".rstrip() for line in lines)
            return correctness.read_sanitizer(Done(code, f"step 1\n{text}\n", ""))

        library = ("Error: Race reported between Write access at void cutlass::Kernel<...>()+0x5300",
                   "    and Read access at void cutlass::Kernel<...>()+0x8140 [8 hazards]", "")
        ours = ("Invalid __global__ read of size 4 bytes", "    at add_k1+0x40", "")
        self.assertEqual(read(0), 0)
        self.assertEqual(read(correctness.SANITIZER_ERROR, *library), 1)
        with self.assertRaisesRegex(Problem, "exit code 99: Invalid __global__ read of size 4 bytes at add_k1"):
            read(correctness.SANITIZER_ERROR, *library, *ours)
        for code in (1, correctness.SANITIZER_ERROR):
            with self.assertRaisesRegex(Problem, f"exit code {code}: "):
                read(code)  # it failed, and no report says why
        with self.assertRaisesRegex(Absent, "Device not supported"):
            read(1, "Error: Device not supported. Please refer to the documentation.", "")

    def test_a_product_that_was_not_measured_makes_no_share(self):
        product = {"model": "a", "alone_ms": 2.0, "launches": 3}
        self.assertEqual(speed.library_alone({"products": [product, product | {"model": "b"}]}, "a"), 6e-3)
        self.assertIsNone(speed.library_alone({"products": [product, product | {"alone_ms": None}]}, "a"))
        self.assertIsNone(speed.library_alone({"products": []}, "a"))


class Reports(Case):
    def test_figures_put_together(self):
        entry = {"name": "m", "batch": 4, "seq": 256, "precision": "bf16", "flops_per_step": 2e12}
        stages = [
            {"stage": "bench m", "figures": {"step_ms": 10.0, "planned_peak_bytes": 2**30, "gpu_memory_bytes": 2**31}},
            {"stage": "one stream m", "figures": {"step_ms": 12.5, "planned_peak_bytes": 2**29, "gpu_memory_bytes": 2**30}},
            {"stage": "peer m", "figures": {"mode": "compile", "median_step_ms": 20.0, "peak_rss_bytes": 1, "peak_reserved_bytes": 2**32,
                                            "gpu_memory_bytes": None}},
            {"stage": "rates", "figures": {"bf16_flops_per_s": 8e14, "copy_bytes_per_s": 4e12, "products": []}},
        ]
        result = {"bench": [entry], "stages": stages}
        model = report.summary(result)["m"]
        self.assertEqual(model["tokens_of_peer"], 2)
        self.assertEqual([model[who]["mfu"] for who in ("gradc", "one_stream", "peer")], [0.25, 0.2, 0.125])
        self.assertEqual(model["gradc"]["tokens_per_s"], 102400)
        self.assertEqual((model["gradc"]["peak_bytes"], model["peer"]["peak_bytes"]), (2**30, 2**32))
        self.assertIsNone(model["products_of_library_alone"])
        stages[2]["figures"]["mode"] = "eager"  # no comparison with what was not compiled
        self.assertIsNone(report.summary(result)["m"]["tokens_of_peer"])


if __name__ == "__main__":
    unittest.main()
