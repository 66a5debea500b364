"""The figures of a check's stages put together, and as a page to read."""

import speed
from stages import FAILED, NOT_RUN, OUT_OF_TIME, PASSED

# What is aimed at on an H200: (key of a model's figures, words, least).
AIMS = (
    ("tokens_of_peer", "tokens/s, times torch.compile's", 1.1),
    ("products_of_library_alone", "products, of the library alone", 0.9),
    ("attention_forward_of_peak", "attention forward, of the measured bf16 peak", 0.6),
    ("attention_backward_of_peak", "attention backward, of the measured bf16 peak", 0.5),
    ("rows_of_copy", "row kernels of 8 MiB and more, of the measured copy rate", 0.85),
)
KERNELS_SHOWN = 25


def figures_of(result, stage):
    """None where the stage did not pass or did not run."""
    return next((entry["figures"] for entry in result["stages"] if entry["stage"] == stage), None)


def ratio(value, base):
    return value / base if value is not None and base else None


def summary(result):
    """A model's figures by its name. What a stage did not give is None."""
    rates = figures_of(result, "rates")
    peak = rates and rates["bf16_flops_per_s"]
    models = {}
    for entry in result["bench"]:
        name = entry["name"]
        ours, one, peer = (figures_of(result, f"{kind} {name}") for kind in ("bench", "one stream", "peer"))
        kernels = figures_of(result, f"kernels {name}")
        model = models[name] = dict.fromkeys(key for key, _, _ in AIMS)
        for who, step_ms in (("gradc", ours and ours["step_ms"]), ("one_stream", one and one["step_ms"]),
                             ("peer", peer and peer["median_step_ms"])):
            flops = entry["flops_per_step"] / step_ms * 1e3 if step_ms else None
            model[who] = {"step_ms": step_ms,
                          "tokens_per_s": entry["batch"] * entry["seq"] / step_ms * 1e3 if step_ms else None,
                          "flops_per_s": flops, "mfu": ratio(flops, peak)}
        model["gradc"]["peak_bytes"] = ours and ours["planned_peak_bytes"]
        model["one_stream"]["peak_bytes"] = one and one["planned_peak_bytes"]
        model["peer"]["peak_bytes"] = peer and peer.get("peak_reserved_bytes", peer["peak_rss_bytes"])
        for who, figures in (("gradc", ours), ("one_stream", one), ("peer", peer)):
            model[who]["gpu_memory_bytes"] = figures and figures["gpu_memory_bytes"]
        model["peer"]["mode"] = peer and peer["mode"]
        if model["peer"]["mode"] == "compile":
            model["tokens_of_peer"] = ratio(model["gradc"]["tokens_per_s"], model["peer"]["tokens_per_s"])
        if kernels and rates:
            alone = speed.library_alone(rates, name)
            model |= speed.kernel_shares(kernels["table"], alone, rates)
        models[name] = model
    return models


def number(value, scale=1, digits=1, unit=""):
    """Of a figure that was not measured a dash; small ones with three digits that say something."""
    if value is None:
        return "-"
    value /= scale
    return (f"{value:.{digits}f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}") + unit


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def machine_lines(result):
    gpu, machine = figures_of(result, "GPU"), figures_of(result, "machine")
    rates, after = figures_of(result, "rates"), figures_of(result, "GPU after the bench")
    contents = result["contents"]
    if contents["emulated"]:
        yield "GPU: none: executables for the emulator, to try the check itself out. No figure here is a GPU's."
    elif gpu:
        yield (f"GPU: {gpu['name']}, driver {gpu['driver_version']}, {gpu['memory.total']} MiB, clocks at most "
               f"{gpu['clocks.max.sm']} and {gpu['clocks.max.mem']} MHz, {gpu['power.limit']} W")
    if after:
        yield f"After the bench: {after['clocks.sm']} and {after['clocks.mem']} MHz, {after['temperature.gpu']} degrees"
    if machine:
        yield f"Host: {machine['cpu']}, {machine['cpus']} processors, kernel {machine['kernel']}, {machine['libc']}"
        yield f"PyTorch, its CUDA, finds a GPU: {machine['torch'] or 'not installed'}"
        yield f"cuBLASLt: {machine['cublaslt'] or 'what the loader finds'}"
    if rates:
        yield (f"Measured through PyTorch: {number(rates['copy_bytes_per_s'], 1e9, 0)} GB/s copied (read and written), "
               f"{number(rates['bf16_flops_per_s'], 1e12)} TFLOP/s in bf16 products")
    yield f"gradc {contents['version']}, commit {contents['commit']}, target {contents['target']}"


def model_rows(entry, model):
    for who, name in (("gradc", "gradc"), ("one_stream", "gradc, one stream"),
                      ("peer", f"PyTorch {model['peer']['mode'] or ''}".strip())):
        figures = model[who]
        yield (entry["name"], f"{entry['batch']} x {entry['seq']} {entry['precision']}", name,
               number(figures["step_ms"], digits=2), number(figures["tokens_per_s"], digits=0),
               number(figures["flops_per_s"], 1e12), number(figures["mfu"], 0.01, unit=" %"),
               number(figures["peak_bytes"], 2**30, 2), number(figures["gpu_memory_bytes"], 2**30, 2))


def aim_rows(result):
    for name, model in result["summary"].items():
        for key, words, least in AIMS:
            value = model[key]
            met = "not measured" if value is None else "met" if value >= least else "missed"
            yield name, words, number(value, digits=2), f"{least:.2f}", met


def kernel_lines(name, figures, rates):
    rows = figures["table"]
    yield f"### Kernels of a step of {name}"
    yield (f"{figures['launches']} launches, {figures['ms']:.2f} ms; traced, one after another. FLOPs and bytes are "
           "what the kernels do, recomputation and repeated reads included.")
    yield ""
    copy = rates and rates["copy_bytes_per_s"]
    yield from table(
        ("kernel", "kind", "launches", "ms", "share", "TFLOP/s", "GB/s", "of the copy rate"),
        [(row["kernel"], row["kind"], row["launches"], number(row["ms"], digits=3),
          number(ratio(row["ms"], figures["ms"]), 0.01, unit=" %"), number(ratio(row["flops"], row["ms"]), 1e9),
          number(ratio(row["bytes"], row["ms"]), 1e6, 0),
          number(ratio(ratio(row["bytes"] * 1e3, row["ms"]), copy), 0.01, 0, " %")) for row in rows[:KERNELS_SHOWN]])
    if len(rows) > KERNELS_SHOWN:
        yield f"and {len(rows) - KERNELS_SHOWN} more, which take {sum(r['ms'] for r in rows[KERNELS_SHOWN:]):.3f} ms"


def markdown(result):
    counts = {status: sum(entry["status"] == status for entry in result["stages"])
              for status in (PASSED, FAILED, OUT_OF_TIME, NOT_RUN)}
    lines = [f"# GPU check of {result['begun']}", "", *(f"- {line}" for line in machine_lines(result)), "",
             f"**{counts[PASSED]} stages passed, {counts[FAILED]} failed, {counts[OUT_OF_TIME]} ran out of "
             f"time, {counts[NOT_RUN]} could not run.**", ""]
    lines += table(("stage", "result", "s", ""), [(entry["stage"], entry["status"], f"{entry['seconds']:.1f}",
                                                   entry["detail"].replace("|", "/")) for entry in result["stages"]])
    if refused := result["contents"]["refused"]:
        lines += ["", "Goldens that the compiler refuses for this target:", ""]
        lines += [f"- {entry['name']} {entry['mode']}: {entry['reason']}" for entry in refused]
    lines += ["", "## Steps", "MFU: the model's FLOPs, by gradc's count for both, over the measured bf16 peak. Peak "
              "memory: gradc's plan, PyTorch's reserved; GPU: what nvidia-smi saw grow.", ""]
    lines += table(("model", "batch", "", "ms a step", "tokens/s", "TFLOP/s", "MFU", "peak GiB", "GPU GiB"),
                   [row for entry in result["bench"] for row in model_rows(entry, result["summary"][entry["name"]])])
    if not result["contents"]["emulated"]:
        lines += ["", "## Aims", "Those set for an H200.", ""]
        lines += table(("model", "", "reached", "aim", ""), list(aim_rows(result)))
    for entry in result["bench"]:
        if figures := figures_of(result, f"kernels {entry['name']}"):
            lines += ["", *kernel_lines(entry["name"], figures, figures_of(result, "rates"))]
    return "\n".join(lines) + "\n"
