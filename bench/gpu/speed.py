"""Stages that measure: whole steps of gradc and of PyTorch, each kernel, and what the machine can do."""

import json
import os
import re
import shutil

from machine import MemoryProbe
from stages import Absent, Problem, run, run_well

TRACED_STEPS = 3
ATTENTION = re.compile(r"attention(_grad)?(_k\d+)?$")
LARGE_LAUNCH = 8 << 20  # bytes: row kernels that move less are not held against the copy's rate
# A model's backward of attention is four products. The fewest that a kernel can do are five: scores
# are computed again, not kept.
MODEL_OF_LEAST_BACKWARD = 4 / 5


def last_json(done, what):
    try:
        return json.loads(done.output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise Problem(f"{what} printed no JSON: {done.last_words()}")


def bench(folder, entry, limit):
    """The executable's own bench, on random tokens."""
    with MemoryProbe() as probe:
        done = run_well([folder.path / entry["executable"], "bench", "--steps", entry["steps"], "--json"],
                        limit, folder.environment)
    figures = last_json(done, "bench")
    return {**figures, "step_ms": float(figures["step_ms"]), "gpu_memory_bytes": probe.bytes}


def kind_of(event):
    if event["cat"] == "matmul":
        return "product"
    attention = ATTENTION.match(event["name"])
    if attention:
        return "attention backward" if attention[1] else "attention forward"
    return "rows"


def read_trace(path, steps):
    """The kernels of the last traced step, by the time that they took, with the `flops` and `bytes` of
    what they do."""
    events = json.loads(path.read_text())["traceEvents"]
    launches = [event for event in events if event.get("cat") in ("kernel", "matmul")]
    if not launches or len(launches) % steps:
        raise Problem(f"the trace has {len(launches)} launches in {steps} steps")
    table = {}
    for event in launches[-(len(launches) // steps):]:
        row = table.setdefault(event["name"], {"kernel": event["name"], "kind": kind_of(event), "launches": 0,
                                               "ms": 0.0, "flops": 0, "bytes": 0})
        row["launches"] += 1
        row["ms"] += event["dur"] / 1e3
        for key in ("flops", "bytes"):
            row[key] += event["args"][key]
    return sorted(table.values(), key=lambda row: -row["ms"])


def add_least(table, uses):
    """Adds `least_flops` and `least_bytes`, the fewest that would do, as the executable tells them."""
    uses = {use["name"]: use for use in uses}
    for row in table:
        use = uses.get(row["kernel"], {"launches": 0})
        if use["launches"] != row["launches"]:
            raise Problem(f"{row['kernel']}: the trace has {row['launches']} launches a step, the executable tells "
                          f"{use['launches']}")
        row |= {key: use[key] for key in ("least_flops", "least_bytes")}


def kernels(folder, entry, limit):
    """Each kernel's time, from a trace of whole steps."""
    trace, executable = folder.fresh("trace.json"), folder.path / entry["executable"]
    run_well([executable, "train", "--data", folder.path / "tokens.bin", "--steps",
              TRACED_STEPS, "--trace-steps", TRACED_STEPS, "--trace", trace], limit, folder.environment)
    table = read_trace(trace, TRACED_STEPS)
    add_least(table, last_json(run_well([executable, "info", "--json"], limit, folder.environment), "info")["kernels"])
    return {"launches": sum(row["launches"] for row in table), "ms": sum(row["ms"] for row in table),
            "table": table}


def with_torch(folder, script, *arguments, limit):
    """Runs a script that needs PyTorch; Absent where the interpreter has none."""
    if run([folder.python, "-c", "import torch"], limit).code != 0:
        raise Absent(f"{folder.python} has no PyTorch: name one that has in PYTHON")
    return run_well([folder.python, "-B", folder.scripts / script, *arguments], limit)


def peer_models(folder, limit):
    """That the peer computes the goldens' losses: that it is the same model."""
    with_torch(folder, "check_models.py", folder.path / "goldens", limit=limit)


def peer(folder, entry, limit):
    """PyTorch on the same model, batch and precision: torch.compile where there is the C compiler that it
    wants, autocast, fused attention and AdamW."""
    compiler = any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang")))
    mode = ("--mode", "compile" if compiler else "eager", "--device", "cuda", "--warmup", 4)
    if folder.emulated:
        mode = ("--mode", "eager", "--device", "cpu", "--warmup", 1)
    with MemoryProbe() as probe:
        done = with_torch(folder, "pytorch_step.py", "--config", folder.path / entry["config"], "--precision",
                          entry["precision"], "--batch", entry["batch"], "--seq", entry["seq"], "--steps",
                          entry["steps"], *mode, "--json", limit=limit)
    return last_json(done, "the peer") | {"gpu_memory_bytes": probe.bytes}


def rates(folder, entries, limit):
    """Copies, large products, and the library alone on the products of the models."""
    products = folder.fresh("products.json")
    products.write_text(json.dumps([product | {"model": entry["name"]} for entry in entries
                                    for product in entry["products"]]))
    device = "cpu" if folder.emulated else "cuda"
    return last_json(with_torch(folder, "rates.py", device, products, limit=limit), "rates.py")


def kernel_shares(table, alone, measured):
    """The kernels of a step against what the machine can do, by kind: shares, None where not known."""
    def sums(kind, key, least=0):
        rows = [row for row in table if row["kind"] == kind and row["least_bytes"] >= least * row["launches"]]
        return sum(row[key] for row in rows), sum(row["ms"] for row in rows) / 1e3

    def share(amount, seconds, best):
        return amount / seconds / best if amount and seconds and best else None

    product_seconds = sums("product", "flops")[1]
    backward, backward_seconds = sums("attention backward", "least_flops")
    return {
        "products_of_library_alone": alone / product_seconds if alone and product_seconds else None,
        "attention_forward_of_peak": share(*sums("attention forward", "least_flops"),
                                           measured["bf16_flops_per_s"]),
        "attention_backward_of_peak": share(MODEL_OF_LEAST_BACKWARD * backward, backward_seconds,
                                            measured["bf16_flops_per_s"]),
        "rows_of_copy": share(*sums("rows", "least_bytes", LARGE_LAUNCH), measured["copy_bytes_per_s"]),
    }


def library_alone(measured, model):
    """Seconds of all products of a step, by the library alone; None where one was not measured."""
    products = [product for product in measured["products"] if product["model"] == model]
    if not products or any(product["alone_ms"] is None for product in products):
        return None
    return sum(product["alone_ms"] * product["launches"] for product in products) / 1e3
