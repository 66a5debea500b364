"""Stages that say whether results are right: conformance, goldens, equal bits, compute-sanitizer."""

import json
import os
import re
import shutil

import compare
from stages import Absent, Problem, run, run_well

SANITIZER_ERROR = 99  # the exit code that compute-sanitizer is told to use
# Kernels of NVIDIA's own library: what the tools say of them is not ours to mend. No kernel of a
# program has such a name.
LIBRARY_KERNEL = re.compile(r"cublas|cutlass|nvjet|gemm|splitk|xmma", re.IGNORECASE)


def conformance(folder, entry, limit):
    """The suite of every device (tests/runtime/DeviceConformance.cpp)."""
    report = folder.scratch / "conformance.json"
    report.unlink(missing_ok=True)
    done = run([folder.path / entry["program"], *entry["arguments"], f"--gtest_output=json:{report}"],
               limit, folder.environment)
    if not report.exists():
        raise Problem(f"exit code {done.code} and no report: {done.last_words()}")
    suites = json.loads(report.read_text())["testsuites"]
    cases = [case for suite in suites for case in suite["testsuite"]]
    ran = [case for case in cases if case["result"] == "COMPLETED"]
    failed = [case["name"] for case in ran if case.get("failures")]
    if failed or done.code != 0:
        raise Problem(f"{len(failed)} of {len(ran)} failed: {', '.join(failed) or done.last_words()}")
    if not ran:
        raise Problem("no test ran")
    return {"tests": len(ran)}


def train(folder, entry, limit, *flags):
    """Trains a golden's executable on the golden's data and weights."""
    data = folder.golden(entry)
    return run_well([folder.path / entry["executable"], "train",
                     *compare.train_flags(data, compare.read_golden(data)), *flags], limit,
                    folder.environment)


def raise_all(problems):
    if problems:
        rest = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise Problem("; ".join(problems[:3]) + rest)


def same(first, second, what):
    """A Problem where two runs differ in a bit."""
    if first != second:
        raise Problem(f"{what} differ from run to run")


def golden(folder, entry, limit):
    """Against PyTorch in f64, within the bounds of the precision; and again, to the same bits."""
    data, bounds = folder.golden(entry), compare.BOUNDS[entry["mode"]]
    expected = compare.read_golden(data)
    runs = []
    for number in range(2):
        log, weights = folder.fresh(f"golden{number}.jsonl"), folder.fresh(f"golden{number}.safetensors")
        train(folder, entry, limit, "--steps", expected["steps"], "--metrics", log, "--save-weights", weights)
        runs.append((compare.metrics(log), weights))
    lines, weights = runs[0]
    raise_all(compare.compare_steps(lines, expected, bounds))
    if bounds.parameter is not None:
        raise_all(compare.compare_parameters(weights, data, bounds))
    gradients = folder.fresh("gradients.safetensors")
    train(folder, entry, limit, "--steps", 1, "--dump-grads", gradients)
    raise_all(compare.compare_gradients(gradients, data, bounds))
    same(*([(line["loss"], line["grad_norm"]) for line in lines] for lines, _ in runs), "losses")
    same(*(path.read_bytes() for _, path in runs), "weights")
    worst = max(compare.distance(line["loss"], loss) for line, loss in zip(lines, expected["losses"]))
    return {"steps": expected["steps"], "worst_loss_error": worst}


def equal_bits(folder, entry, limit):
    """Three steps of a whole model, twice: losses and gradient norms to the bit."""
    runs = []
    for _ in range(2):
        log = folder.fresh("bits.jsonl")
        run_well([folder.path / entry["executable"], "train", "--data", folder.path / "tokens.bin", "--steps", 3,
                  "--metrics", log], limit, folder.environment)
        runs.append([(line["loss"], line["grad_norm"]) for line in compare.metrics(log)])
    if len(runs[0]) != 3 or any(value is None for step in runs[0] for value in step):
        raise Problem(f"expected three steps of finite losses, got: {runs[0]}")
    same(*runs, "losses")


def find_sanitizer():
    places = [os.environ.get("PATH", ""), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")]
    found = shutil.which("compute-sanitizer", path=os.pathsep.join(places))
    if not found:
        raise Absent("compute-sanitizer is not there: it comes with the CUDA toolkit")
    return found


def sanitizer_reports(text):
    """What compute-sanitizer reported, without its title and sums: lines that begin with signs of
    equality, an empty one between reports."""
    reports = [[]]
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        said = line.strip("= ")
        if not said:
            reports.append([])
        elif said != "COMPUTE-SANITIZER" and "SUMMARY:" not in said:
            reports[-1].append(said)
    return [" ".join(lines) for lines in reports if lines]


def kernel_of(report):
    """The name of the kernel that a report is of, which precedes its offset; without one, nothing."""
    found = re.search(r"\bat (.*?)\+0x[0-9a-f]+", report)
    return found.group(1) if found else ""


def read_sanitizer(done):
    """How many reports were of the library's own kernels; a Problem with the first that was not."""
    reports = sanitizer_reports(done.output + done.errors)
    refusals = [report for report in reports if re.search("(?i)device (is )?not supported", report)]
    if refusals and len(refusals) == len(reports):
        raise Absent(f"compute-sanitizer cannot run on this machine: {refusals[0]}")
    ours = [report for report in reports if not LIBRARY_KERNEL.search(kernel_of(report))]
    if ours:
        raise Problem(f"exit code {done.code}: {ours[0][:500]}")
    if done.code not in (0, SANITIZER_ERROR) or (done.code and not reports):
        raise Problem(f"exit code {done.code}: {done.last_words()}")
    return len(reports)


def sanitizer(folder, tool, entry, limit):
    """One training step of a golden under a tool of compute-sanitizer."""
    data = folder.golden(entry)
    done = run([find_sanitizer(), "--tool", tool, "--error-exitcode", SANITIZER_ERROR,
                folder.path / entry["executable"], "train",
                *compare.train_flags(data, compare.read_golden(data)), "--steps", 1], limit, folder.environment)
    return {"reports_of_library_kernels": read_sanitizer(done)}
