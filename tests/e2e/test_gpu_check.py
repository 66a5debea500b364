"""The check of a GPU (bench/gpu), without one: on executables for the emulator, and on scripts in the
place of executables that do all that can go wrong."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

from harness import BUILD, GOLDENS, GRADC, SOURCE, WORK, Case, fresh, run

GPU = SOURCE / "bench" / "gpu"
sys.path.append(str(GPU))

import compare
import report
import speed
from stages import FAILED, NOT_RUN, PASSED, Absent, Check, Limit, Problem, run_well


def load_build():
    """bench/gpu/build as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_build", str(GPU / "build"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_build", loader))
    loader.exec_module(module)
    return module


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)
    return path


def check(folder, *flags, expect, path=None, **variables):
    """Runs a folder's own copy of the check, with `path` before the PATH; its result and what it printed.
    Without PyTorch: stages that want it take long to start it."""
    python = script(WORK / "python", f'case "$*" in *"import torch"*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    environment = os.environ | {"PYTHON": str(python), "PATH": f"{path or WORK / 'nothing'}:{os.environ['PATH']}",
                                **{name: str(value) for name, value in variables.items()}}
    done = run(folder / "check", *flags, expect=expect, env=environment)
    return json.loads((folder / "results" / "check.json").read_text()), done.stdout


def gpu_tools(name):
    """A folder with an nvidia-smi."""
    tools = fresh(name)
    script(tools / "nvidia-smi", 'for field in "$@"; do case $field in --query-gpu=memory.used) echo 100; exit;;'
           " esac; done\necho GPU, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10\n")
    return tools


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


def statuses(result):
    return {stage["stage"]: stage["status"] for stage in result["stages"]}


def detail(result, name):
    return next(stage["detail"] for stage in result["stages"] if stage["stage"] == name)


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
        self.assertEqual(checked.results[0]["status"], FAILED)
        self.assertIn("not begun", checked.results[0]["detail"])

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
        microseconds = milliseconds * 1e3
        return {"name": name, "cat": category, "dur": microseconds,
                "args": {"gflops": flops / microseconds / 1e3, "gbytes_per_s": moved / microseconds / 1e3}}

    def test_kernels_of_a_trace(self):
        step = [self.event("gemm_8x8x8", "matmul", 2, 1e9, 1e6), self.event("attention_k6", "kernel", 1, 4e8, 1e5),
                self.event("attention_grad_k7", "kernel", 4, 8e8, 1e5), self.event("add_k1", "kernel", 1, 1, 16 << 20),
                self.event("add_k1", "kernel", 1, 1, 16 << 20), self.event("sum_k2", "kernel", 5, 1, 4)]
        slow = [event | {"dur": 100 * event["dur"]} for event in step]
        path = fresh("trace.json")
        path.write_text(json.dumps({"traceEvents": [{"ph": "M"}, *slow, {"cat": "step", "name": "step 1"}, *step]}))
        table = speed.read_trace(path, 2)
        self.assertEqual([row["kernel"] for row in table],
                         ["sum_k2", "attention_grad_k7", "gemm_8x8x8", "add_k1", "attention_k6"])
        self.assertEqual({row["kernel"]: row["launches"] for row in table}["add_k1"], 2)
        shares = speed.kernel_shares(table, 1e-3, {"bf16_flops_per_s": 1e12, "copy_bytes_per_s": 32 * 2**30})
        for key, expected in (("products_of_library_alone", 0.5), ("attention_forward_of_peak", 0.4),
                              ("attention_backward_of_peak", 0.2), ("rows_of_copy", 1000 / 2048)):
            self.assert_within(abs(shares[key] - expected), 1e-9, key)
        with self.assertRaises(Problem):
            speed.read_trace(path, 5)  # 12 launches are no 5 equal steps

    def test_a_product_that_was_not_measured_makes_no_share(self):
        product = {"model": "a", "alone_ms": 2.0, "launches": 3}
        self.assertEqual(speed.library_alone({"products": [product, product | {"model": "b"}]}, "a"), 6e-3)
        self.assertIsNone(speed.library_alone({"products": [product, product | {"alone_ms": None}]}, "a"))
        self.assertIsNone(speed.library_alone({"products": []}, "a"))


class Emulated(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = fresh("gpu-check")
        run(GPU / "build", cls.folder, "--emulated", "--target", "cuda:sm_80", "--goldens", "tiny-gpt2:fp32",
            "tiny-llama3:fp8")

    def test_dry_run(self):
        result, printed = check(self.folder, expect=0)
        wants_torch = ("peer models", "peer tiny-gpt2", "rates")
        self.assertEqual(statuses(result), {
            name: NOT_RUN if name in wants_torch else PASSED
            for name in ("machine", "conformance", "golden tiny-gpt2 fp32", "bench tiny-gpt2", "kernels tiny-gpt2",
                         "one stream tiny-gpt2", "equal bits tiny-gpt2", *wants_torch)})
        self.assertTrue(result["passed"])
        self.assertIn("no PyTorch", detail(result, "rates"))
        self.assertEqual([entry["name"] for entry in result["contents"]["refused"]], ["tiny-llama3"])
        figures = {stage["stage"]: stage["figures"] for stage in result["stages"]}
        self.assertGreater(figures["conformance"]["tests"], 5)
        self.assertEqual(figures["golden tiny-gpt2 fp32"]["steps"], 10)
        table = figures["kernels tiny-gpt2"]["table"]
        flops = sum(row["flops"] for row in table if row["kind"] == "product")
        ours = sum(2 * p["m"] * p["n"] * p["k"] * p["launches"] for p in result["bench"][0]["products"])
        self.assert_within(abs(flops - ours) / ours, 1e-9, "FLOPs of products")
        self.assertTrue(any(row["kind"] == "attention backward" for row in table))
        model = result["summary"]["tiny-gpt2"]
        self.assertGreater(model["gradc"]["tokens_per_s"], 0)
        self.assertGreater(model["gradc"]["peak_bytes"], model["one_stream"]["peak_bytes"])
        self.assertIsNone(model["peer"]["tokens_per_s"])
        for words in ("No figure here is a GPU's", "fp8", "| tiny-gpt2 | 2 x 24 bf16 | PyTorch | - |"):
            self.assertIn(words, printed)

    def test_broken_executables(self):
        """One cut short, one that is wrong, one that is gone: told, and the rest is checked."""
        folder = fresh("gpu-check-broken")
        shutil.copytree(self.folder, folder)
        shutil.rmtree(folder / "results", ignore_errors=True)
        contents = json.loads((folder / "contents.json").read_text())
        contents["bench"].append(contents["bench"][0] | {"name": "cut", "executable": "bin/cut"})
        (folder / "contents.json").write_text(json.dumps(contents))
        whole = (folder / "bin" / "bench-tiny-gpt2").read_bytes()
        script(folder / "bin" / "cut", "").write_bytes(whole[:len(whole) // 3])
        (folder / "bin" / "conformance").unlink()
        golden = folder / "goldens" / "tiny-gpt2" / "golden.json"
        values = json.loads(golden.read_text())
        values["losses"][3] *= 1.001
        golden.write_text(json.dumps(values))
        result, printed = check(folder, expect=1)
        found = statuses(result)
        for name in ("conformance", "golden tiny-gpt2 fp32", "bench cut", "kernels cut"):
            self.assertEqual(found[name], FAILED, name)
        for name in ("machine", "bench tiny-gpt2", "kernels tiny-gpt2", "equal bits tiny-gpt2"):
            self.assertEqual(found[name], PASSED, name)
        self.assertIn("loss 4: 0.000999 is not within 1e-05", detail(result, "golden tiny-gpt2 fp32"))
        self.assertIn("conformance cannot be started", detail(result, "conformance"))
        self.assertIn("4 failed", printed)


class StandIns(Case):
    """Executables for a real GPU, on the stand-ins of its driver and of cuBLASLt."""

    def test_all_but_the_gpu_is_real(self):
        folder, kernels = fresh("gpu-check-stand-ins"), fresh("gpu-check-kernels")
        run(GPU / "build", folder, "--tiny", "--goldens", "tiny-gpt2:bf16")
        flags = ("--micro-batch", 2, "--seq", 24, "--precision", "bf16", "--target", "cuda:sm_90")
        run(GRADC, "compile", GOLDENS / "tiny-gpt2", "-o", f"{kernels}.o", *flags, "--emulate", "--compile-to", "codegen")
        driver = BUILD / "tests" / "libfake_cuda.so"
        run(os.environ.get("GRADC_LINKER", "clang++-22"), "-shared", f"{kernels}.o", driver, "-o", kernels)
        program = folder / "bin" / "conformance"
        program.rename(folder / "bin" / "suite")
        script(program, f'GRADC_FAKE_KERNELS={BUILD / "tests" / "libfake_add_kernel.so"} exec {folder / "bin" / "suite"} '
               '"$@"\n')
        tools = gpu_tools("gpu-check-stand-in-tools")
        script(tools / "compute-sanitizer", 'shift 4\nexec "$@"\n')
        result, printed = check(folder, expect=0, path=tools, GRADC_LIBCUDA=driver, GRADC_FAKE_KERNELS=kernels,
                                GRADC_CUBLASLT_PATH=BUILD / "tests" / "libfake_cublaslt.so")
        wants_torch = ("peer models", "peer tiny-gpt2", "rates")
        names = ("machine", "GPU", "conformance", "golden tiny-gpt2 bf16", "bench tiny-gpt2", *wants_torch,
                 "kernels tiny-gpt2", "one stream tiny-gpt2", "equal bits tiny-gpt2", "GPU after the bench",
                 *(f"{tool} tiny-gpt2 bf16" for tool in ("memcheck", "racecheck", "synccheck")))
        self.assertEqual(statuses(result), {name: NOT_RUN if name in wants_torch else PASSED for name in names})
        self.assertEqual(sorted(path.name for path in (folder / "lib").iterdir()), [])
        figures = {stage["stage"]: stage["figures"] for stage in result["stages"]}
        self.assertEqual(figures["bench tiny-gpt2"]["device"], "Fake GPU")
        self.assertEqual(figures["GPU"]["name"], "GPU")
        self.assertIn("| tiny-gpt2 | tokens/s, times torch.compile's | - | 1.10 | not measured |", printed)


class Scripts(Case):
    """A folder for a real GPU, whose executables are scripts."""

    def setUp(self):
        self.folder = fresh("gpu-check-scripts")
        build = load_build()
        builder = build.Builder(build.argparse.Namespace(out=self.folder, emulated=False, target="cuda:sm_90"))
        builder.copy()
        entry = {"name": "tiny-gpt2", "mode": "fp32", "executable": "bin/golden", "sanitizer": ["memcheck", "racecheck", "synccheck"]}
        model = {"name": "model", "executable": "bin/bench", "one_stream": "bin/bench", "config": "models/model.json", "precision": "bf16",
                 "batch": 2, "seq": 24, "steps": 1, "flops_per_step": 1e9, "products": []}
        self.contents = {"version": "0", "commit": "0", "target": "cuda:sm_90", "emulated": False, "libc": "2.2.5",
                         "conformance": {"program": "bin/conformance", "arguments": []}, "goldens": [entry],
                         "refused": [], "bench": [model]}
        self.write_contents()
        self.tools = gpu_tools("gpu-check-tools")
        for name in ("conformance", "golden", "bench"):
            script(self.folder / "bin" / name, "echo 'error: libcuda.so.1 is not there' >&2\nexit 2\n")

    def write_contents(self):
        (self.folder / "contents.json").write_text(json.dumps(self.contents))

    def test_no_driver(self):
        script(self.tools / "nvidia-smi", "echo NVIDIA-SMI has failed\nexit 9\n")
        result, printed = check(self.folder, expect=1, path=self.tools)
        found = statuses(result)
        self.assertEqual(found["machine"], PASSED)
        for name in ("GPU", "conformance", "golden tiny-gpt2 fp32", "bench model", "kernels model", "equal bits model"):
            self.assertEqual(found[name], FAILED, name)
        self.assertEqual(detail(result, "GPU"), "nvidia-smi: exit code 9: NVIDIA-SMI has failed")
        for name in ("conformance", "golden tiny-gpt2 fp32", "bench model"):
            self.assertIn("libcuda.so.1 is not there", detail(result, name))
        self.assertIn("| model | row kernels of 8 MiB and more, of the measured copy rate | - | 0.85 | not measured |",
                      printed)

    def test_conformance_that_fails(self):
        report_of = {"testsuites": [{"testsuite": [{"name": "Good", "result": "COMPLETED"},
                                                   {"name": "Bad", "result": "COMPLETED", "failures": [{}]}]}]}
        path = fresh("conformance-report.json")
        path.write_text(json.dumps(report_of))
        script(self.folder / "bin" / "conformance", f'output=${{@: -1}}\ncp {path} "${{output#*json:}}"\nexit 1\n')
        result, _ = check(self.folder, expect=1, path=self.tools)
        self.assertEqual(detail(result, "conformance"), "1 of 2 failed: Bad")

    def test_a_hang_uses_up_the_time_and_the_report_is_there(self):
        script(self.folder / "bin" / "conformance", "sleep 1000\n")
        result, printed = check(self.folder, "--seconds", 6, expect=1, path=self.tools)
        self.assertIn("was not done within", detail(result, "conformance"))
        self.assertIn("not begun", detail(result, "bench model"))
        self.assertIn("## Steps", printed)

    def test_a_machine_that_is_too_old(self):
        self.contents["libc"] = "9.1"
        self.write_contents()
        result, _ = check(self.folder, expect=1, path=self.tools)
        self.assertIn("the executables need glibc 9.1", detail(result, "machine"))

    def test_bits_that_differ(self):
        """Of one executable losses are others every time, of another the weights alone."""
        writes = ('while [ $# -gt 0 ]; do case $1 in --metrics) for step in {1..%d}; do echo "{\\"step\\": $step, '
                  '\\"loss\\": %s, \\"grad_norm\\": 1, \\"skipped\\": false}"; done >"$2";; '
                  '--save-weights) echo $RANDOM$RANDOM >"$2";; esac; shift; done\n')
        script(self.folder / "bin" / "bench", writes % (3, "1.$RANDOM$RANDOM"))
        script(self.folder / "bin" / "golden", writes % (1, "$RANDOM"))
        result, _ = check(self.folder, expect=1, path=self.tools)
        self.assertEqual(detail(result, "equal bits model"), "losses differ from run to run")
        self.assertEqual(detail(result, "golden tiny-gpt2 fp32"), "1 steps, expected 10")
        script(self.folder / "bin" / "bench", writes % (2, "1"))
        result, _ = check(self.folder, expect=1, path=self.tools)
        self.assertIn("expected three steps", detail(result, "equal bits model"))

    def test_weights_that_differ(self):
        """A golden's results, but for the bits of the weights after the second run."""
        data = GOLDENS / "tiny-gpt2"
        golden = json.loads((data / "golden.json").read_text())
        log = fresh("right.jsonl")
        log.write_text("".join(json.dumps({"step": step, "loss": loss, "grad_norm": norm, "skipped": False}) + "\n"
                               for step, (loss, norm) in enumerate(zip(golden["losses"], golden["grad_norms"]), 1)))
        right = data / "params_after.safetensors"
        script(self.folder / "bin" / "golden",
               'while [ $# -gt 0 ]; do case $1 in\n'
               f'--metrics) cp {log} "$2";; --dump-grads) cp {data / "grads.safetensors"} "$2";;\n'
               f'--save-weights) cp {right} "$2"; case $2 in *1.safetensors) echo >>"$2";; esac;;\n'
               'esac; shift; done\n')
        result, _ = check(self.folder, expect=1, path=self.tools)
        self.assertEqual(detail(result, "golden tiny-gpt2 fp32"), "weights differ from run to run")

    def test_compute_sanitizer(self):
        script(self.folder / "bin" / "golden", "exit 0\n")
        # A tool that finds something with racecheck only, and says so as the real one does.
        script(self.tools / "compute-sanitizer",
               'case $2 in racecheck) printf "========= COMPUTE-SANITIZER\\n========= Error: Race reported in add\\n";'
               ' exit "$4";; esac\nshift 4\nexec "$@"\n')
        result, _ = check(self.folder, expect=1, path=self.tools)
        found = statuses(result)
        self.assertEqual([found[f"{tool} tiny-gpt2 fp32"] for tool in ("memcheck", "racecheck", "synccheck")],
                         [PASSED, FAILED, PASSED])
        self.assertEqual(detail(result, "racecheck tiny-gpt2 fp32"), "exit code 99: Error: Race reported in add")

    def test_not_a_folder_of_the_build(self):
        done = subprocess.run([GPU / "check", fresh("nowhere")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("name a folder that bench/gpu/build made", done.stderr)


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
