"""The check of a GPU (bench/gpu) as a whole, without one: on executables for the emulator, on those for
a GPU with its driver and libraries played, and on scripts that do all that can go wrong."""

import json
import os
import shutil
import subprocess
import unittest

from gpu_check import GPU, check, detail, gpu_tools, load_build, script, statuses
from harness import BUILD, GOLDENS, GRADC, Case, fresh, run

from stages import FAILED, NOT_RUN, OUT_OF_TIME, PASSED


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
        self.assertTrue(all(row["bytes"] >= row["least_bytes"] > 0 for row in table))
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
        self.assertIn("4 failed, 0 ran out of time", printed)


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
        found = statuses(result)
        for name in ("conformance", "bench model"):
            self.assertEqual(found[name], OUT_OF_TIME, name)
            self.assertRegex(printed, rf"\| {name} \| out of time \| .* (was not done|not begun)")
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


if __name__ == "__main__":
    unittest.main()
