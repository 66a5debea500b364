"""Executables for an NVIDIA GPU, on stand-ins of its driver and of cuBLASLt (tests/cuda): kernels run on the
emulator, streams as late or as early as a GPU might run them, and every call is checked. They have to
give the bits of the emulated executable, and to say what failed where a call fails."""

import json
import re
import unittest

from cuda_program import DRIVER, TARGET, OneLayer, Program
from harness import GOLDENS, GRADC, SOURCE, Case, compile_model, fresh, metrics, model_with, run

LINEAR = SOURCE / "examples" / "linear-mlir" / "model.mlir"


class Gpt2(OneLayer):
    def test_trains_to_the_bits_of_the_emulated_executable(self):
        weights, log = fresh("emulated.safetensors"), fresh("emulated.jsonl")
        run(self.program.emulated, *self.command(3, "--save-weights", weights, "--metrics", log))
        # Of a graph the second stream runs as late as it may, or with "copies" as early.
        for variables in ({}, {"GRADC_CUDA_GRAPH": "off", "GRADC_FAKE_ORDER": "copies"},
                          {"GRADC_FAKE_ORDER": "compute"}, {"GRADC_FAKE_ORDER": "copies"}):
            with self.subTest(**variables):
                ours, ourLog = fresh("cuda.safetensors"), fresh("cuda.jsonl")
                self.program.run(*self.command(3, "--save-weights", ours, "--metrics", ourLog), **variables)
                self.assertEqual(len(self.losses(log)), 3)
                self.assertEqual(self.losses(ourLog), self.losses(log))
                self.assertEqual(ours.read_bytes(), weights.read_bytes())
                self.assertIsNone(metrics(ourLog)[0]["mfu"])

    def test_resumes_evaluates_and_generates(self):
        whole, folder = fresh("whole.safetensors"), fresh("checkpoints")
        self.program.run(*self.command(3, "--save-weights", whole))
        self.program.run(*self.command(2, "--checkpoint-dir", folder))
        resumed, grads = fresh("resumed.safetensors"), fresh("grads.safetensors")
        self.program.run(*self.command(3, "--checkpoint-dir", folder, "--resume", "--save-weights",
                                       resumed, "--dump-grads", grads, "--check-nans"))
        self.assertEqual(resumed.read_bytes(), whole.read_bytes())
        emulatedGrads = fresh("emulated-grads.safetensors")
        run(self.program.emulated, *self.command(3, "--dump-grads", emulatedGrads))
        self.assertEqual(grads.read_bytes(), emulatedGrads.read_bytes())
        for arguments in (("eval", "--data", self.data, "--batches", 2, "--json"),
                          ("generate", "--prompt-ids", "1,2", "--tokens", 3, "--temperature", 0)):
            arguments += ("--init-weights", whole)
            self.assertEqual(self.program.run(*arguments).stdout,
                             run(self.program.emulated, *arguments).stdout)

    def test_traces_each_launch_by_the_gpus_clock(self):
        """The first step launch by launch, the others as a graph; the same launches, one after the other."""
        trace, weights = fresh("trace.json"), fresh("traced.safetensors")
        log = fresh("calls.txt")
        self.program.run(*self.command(4, "--trace", trace, "--trace-steps", 3, "--save-weights", weights),
                         GRADC_FAKE_LOG=str(log))
        plain = fresh("plain.safetensors")
        self.program.run(*self.command(4, "--save-weights", plain))
        self.assertEqual(weights.read_bytes(), plain.read_bytes())
        events = json.loads(trace.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        launches = [event for event in events if event.get("cat") in ("kernel", "matmul")]
        self.assertTrue(all(event["dur"] > 0 for event in launches))
        perStep, rest = divmod(len(launches), 3)
        self.assertGreater(perStep, 20)
        self.assertEqual(rest, 0)
        names = [event["name"] for event in launches]
        self.assertEqual(names[:perStep], names[perStep:2 * perStep])
        self.assertEqual(names[:perStep], names[2 * perStep:])
        for before, after in zip(launches, launches[1:]):
            self.assertGreaterEqual(after["ts"], before["ts"] + before["dur"] - 0.1)  # of a float's rounding
        self.assertEqual(log.read_text().split().count("cuEventRecordWithFlags"), perStep + 1)

    def test_names_the_call_the_kernel_and_the_step(self):
        said = self.program.run(*self.command(2), expect=2, GRADC_FAKE_FAIL="cuLaunchKernel:3:700").stderr
        self.assertRegex(said, r"^error: step 1: train_step, run 1: kernel \w+: cuLaunchKernel failed: "
                               r"CUDA_ERROR_ILLEGAL_ADDRESS \(.*\)\n$")
        said = self.program.run(*self.command(3), expect=2, GRADC_FAKE_FAIL="cuGraphLaunch:2:700").stderr
        self.assertRegex(said, r"^error: step 3: train_step, run 3: cuGraphLaunch failed: ")


class SharedMemory(Case):
    def test_kernels_that_ask_for_all_that_is_given_unasked(self):
        """Attention of heads of 64 in f32 takes 48 KB and has static memory besides: such a launch fails on a
        GPU unless the driver was asked."""
        program = Program(model_with("heads-of-64", n_layer=1, n_embd=64, n_head=1), "heads-of-64", "--seq", 16)
        losses = []
        for run_it in (program.run, lambda *arguments: run(program.emulated, *arguments)):
            log = fresh("heads-of-64.jsonl")
            run_it("train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--steps", 1, "--metrics", log)
            losses.append([line["loss"] for line in metrics(log)])
        self.assertEqual(len(losses[0]), 1)
        self.assertEqual(*losses)


class Linear(Case):
    @classmethod
    def setUpClass(cls):
        cls.program = Program(LINEAR, "linear")

    def bench(self, **variables):
        return self.program.run("bench", "--steps", 2, "--json", "--threads", 1, **variables)

    def test_bench_names_the_gpu_and_proves_the_plan(self):
        result = json.loads(self.bench().stdout)
        self.assertEqual(result["device"], "Fake GPU")
        self.assertIsNone(result["mfu"])
        # The library's part of the arena is reached as far as it asks for.
        self.assertGreater(result["arena_high_water_bytes"], 0)
        self.assertLessEqual(result["arena_high_water_bytes"], result["arena_bytes"])
        self.program.run("bench", "--steps", 1)

    def test_autotune_measures_once_and_changes_no_plan(self):
        cache = fresh("algorithms")
        cache.mkdir()

        def tuned():
            done = self.program.run("bench", "--steps", 2, "--json", "--autotune", GRADC_CACHE_DIR=str(cache))
            return json.loads(done.stdout)
        first, second, plain = tuned(), tuned(), json.loads(self.bench().stdout)
        self.assertEqual(plain["algorithms"], [])
        self.assertGreater(len(first["algorithms"]), 0)
        self.assertTrue(all("the library's choice" in line for line in first["algorithms"]))
        self.assertTrue(all("as measured before" in line for line in second["algorithms"]))
        self.assertEqual(len(second["algorithms"]), len(first["algorithms"]))
        # The stand-in's algorithms have the same bits.
        self.assertEqual({plain["loss"], first["loss"]}, {second["loss"]})
        for executable in (compile_model(LINEAR, "linear-cpu"), self.program.emulated):
            self.assertIn("--autotune: chooses among", run(executable, "bench", "--autotune", expect=1).stderr)
            self.assertNotIn("--autotune", run(executable, "bench", "--help").stdout)
        self.assertIn("--autotune", run(self.program.executable, "bench", "--help").stdout)

    def test_shows_a_profiler_its_programs_and_kernels(self):
        log = fresh("ranges.txt")
        self.bench(GRADC_FAKE_LOG=str(log), NVTX_INJECTION64_PATH=str(DRIVER))
        lines = log.read_text().split()
        self.assertEqual(lines.count("push:train_step"), 6)
        self.assertGreater(sum(line.startswith("push:gemm_") for line in lines), 0)
        depth = 0
        for line in lines:
            depth += line.startswith("push:") - (line == "pop")
            self.assertIn(depth, (0, 1, 2))
            if line == "cuLaunchKernel":
                self.assertEqual(depth, 2)
        self.assertEqual(depth, 0)

    def test_replays_a_graph(self):
        def calls(**variables):
            log = fresh("calls.txt")
            self.bench(GRADC_FAKE_LOG=str(log), NVTX_INJECTION64_PATH=str(DRIVER), **variables)
            return log.read_text().split()
        graphs, eager = calls(), calls(GRADC_CUDA_GRAPH="off")
        # Two steps to warm up, of which the first is launched one by one, two timed, two observed: by a graph
        # of their own, with an event before the first launch and after each.
        self.assertEqual(graphs.count("cuGraphLaunch"), 5)
        self.assertEqual(graphs.count("cuGraphInstantiateWithFlags"), 2)
        self.assertEqual(eager.count("cuGraphLaunch"), 0)
        self.assertEqual(graphs.count("cuMemAlloc_v2"), 1)
        launches, rest = divmod(graphs.count("cuLaunchKernel"), 3)  # run, captured, captured for an observer
        self.assertEqual(rest, 0)
        self.assertEqual(eager.count("cuLaunchKernel"), 6 * launches)
        products = [line for line in graphs if line.startswith("push:gemm_")]
        self.assertEqual(graphs.count("cuEventRecordWithFlags"), launches + len(products) // 3 + 1)
        self.assertEqual(eager.count("cuEventRecordWithFlags"), 0)

    def test_every_call_that_fails_is_named(self):
        text = (SOURCE / "runtime" / "cuda" / "DriverApi.def").read_text()
        symbols = re.findall(r"^GRADC_CUDA\(\w+, (\w+),", text, re.M)
        self.assertGreater(len(symbols), 35)
        for symbol in symbols:
            call = re.sub(r"_v\d$", "", symbol)
            # What names errors does not fail here; what releases is not listened to.
            if symbol.startswith("cuGetError") or re.search("Destroy|Free|Release|Unload", symbol):
                continue
            if symbol == "cuFuncSetAttribute":  # no kernel of this model asks for much shared memory
                continue
            # Where the cubin does not load the PTX may.
            number = 2 if symbol == "cuModuleLoadDataEx" else 1
            with self.subTest(symbol):
                said = self.bench(expect=2, GRADC_FAKE_FAIL=f"{symbol}:{number}:999",
                                  GRADC_FAKE_REFUSE="cubin").stderr
                lines = [line for line in said.splitlines() if not line.startswith("fake driver:")]
                self.assertEqual(len(lines), 1, said)
                self.assertRegex(lines[0], f"^error: .*{call} failed: an error without a name")

    def test_what_is_released_may_fail(self):
        for symbol in ("cuStreamDestroy_v2", "cuMemFree_v2", "cuModuleUnload", "cuGraphExecDestroy"):
            self.bench(GRADC_FAKE_FAIL=f"{symbol}:1:700")

    def refusal(self, **variables):
        said = self.bench(expect=2, **variables).stderr
        self.assertEqual(said.count("\n"), 1, said)
        return said

    def test_machines_that_do_not_do(self):
        for variable in ("GRADC_LIBCUDA", "GRADC_CUBLASLT_PATH"):
            for library in ("/nonexistent/lib.so.1", str(LINEAR)):
                self.assertIn(f"check {variable}, which names it", self.refusal(**{variable: library}))
        self.assertIn("so it is no driver of CUDA 12 or later: check GRADC_LIBCUDA",
                      self.refusal(GRADC_LIBCUDA="libc.so.6"))
        for value in ("-10", "-90", "5"):
            self.assertIn("gives Fake GPU no usable compute capability",
                          self.refusal(GRADC_FAKE_CAPABILITY=value))
        self.assertIn("for sm_90 and later, and this machine's Fake GPU is an sm_80",
                      self.refusal(GRADC_FAKE_CAPABILITY="80"))
        self.assertIn("shows no GPU", self.refusal(GRADC_FAKE_CAPABILITY="0"))
        self.assertIn("of the GPU's memory", self.refusal(GRADC_FAKE_MEMORY="1000000"))
        self.assertIn("cuBLASLt cannot be loaded", self.refusal(GRADC_CUBLASLT_PATH="/nonexistent/lib"))

    def test_a_gpus_name_is_foreign_text(self):
        shown = self.bench(GRADC_FAKE_NAME="A\n\udcff" + "B" * 400).stdout
        self.assertEqual(json.loads(shown)["device"], "A??" + "B" * 252)

    def test_a_machine_that_does_not_do_makes_and_says_nothing(self):
        folder = fresh("no-device")
        command = ("train", "--data", GOLDENS / "tiny-gpt2" / "tokens.bin", "--steps", 1, "--checkpoint-dir", folder)
        for variables in ({"GRADC_LIBCUDA": "/nonexistent/libcuda.so.1"}, {"GRADC_FAKE_CAPABILITY": "80"}):
            refused = self.program.run(*command, expect=2, **variables)
            self.assertEqual((refused.stdout, refused.stderr.count("\n")), ("", 1))
            self.assertFalse(folder.exists())

    def test_graphs_are_on_or_off(self):
        for word in ("OFF", "0", "xyz"):
            said = self.program.run("bench", "--steps", 1, expect=1, GRADC_CUDA_GRAPH=word).stderr
            self.assertEqual(said, f'error: GRADC_CUDA_GRAPH: expected on or off, got: "{word}"\n')
        self.bench(GRADC_CUDA_GRAPH="on")

    def test_a_driver_older_than_the_assembler_gets_the_ptx(self):
        self.assertEqual(json.loads(self.bench(GRADC_FAKE_REFUSE="cubin").stdout)["loss"],
                         json.loads(self.bench().stdout)["loss"])

    def test_the_file_needs_nothing_of_the_toolkit(self):
        needed = run("ldd", self.program.executable).stdout
        for library in ("cuda", "cublas", "dnnl", "gomp", "stdc++"):
            self.assertNotIn(library, needed)
        said = run(GRADC, "explain", self.program.executable).stdout
        self.assertIn("PTX for sm_90 and later", said)
        info = json.loads(run(self.program.executable, "info", "--json").stdout)
        self.assertEqual(info["flags"]["cpu"], "x86-64")


if __name__ == "__main__":
    unittest.main()
