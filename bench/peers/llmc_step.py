#!/usr/bin/env python3
"""Times training steps of llm.c's CPU trainer, GPT-2 124M in fp32 at 4 x 64: a peer for `bench`.

LLMC names a checkout of llm.c. The trainer is built with its own Makefile (-Ofast -march=native,
OpenMP) and runs on a checkpoint of random weights and a file of random tokens, written in its
formats. Its batch and sequence are constants of its source: 4 and 64.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile

import numpy

BATCH, SEQ = 4, 64
POSITIONS, VOCAB, LAYERS, HEADS, WIDTH, PADDED_VOCAB = 1024, 50257, 12, 12, 768, 50304
STEP_LINE = re.compile(rb"step \d+: train loss (\S+) \(took (\S+) ms\)")


def parameter_shapes():
    """The tensors of its checkpoints in their order: the deviation of random values, or None: ones."""
    layers = (LAYERS,)
    return [
        (0.02, (PADDED_VOCAB, WIDTH)), (0.02, (POSITIONS, WIDTH)),
        (None, layers + (WIDTH,)), (0.0, layers + (WIDTH,)),
        (0.02, layers + (3 * WIDTH, WIDTH)), (0.0, layers + (3 * WIDTH,)),
        (0.02, layers + (WIDTH, WIDTH)), (0.0, layers + (WIDTH,)),
        (None, layers + (WIDTH,)), (0.0, layers + (WIDTH,)),
        (0.02, layers + (4 * WIDTH, WIDTH)), (0.0, layers + (4 * WIDTH,)),
        (0.02, layers + (WIDTH, 4 * WIDTH)), (0.0, layers + (WIDTH,)),
        (None, (WIDTH,)), (0.0, (WIDTH,)),
    ]  # fmt: skip


def write_inputs(folder, random):
    header = numpy.zeros(256, numpy.int32)
    header[:8] = 20240326, 3, POSITIONS, VOCAB, LAYERS, HEADS, WIDTH, PADDED_VOCAB
    with open(folder / "gpt2_124M.bin", "wb") as file:
        file.write(header.tobytes())
        for deviation, shape in parameter_shapes():
            values = numpy.ones(shape, numpy.float32)
            if deviation is not None:
                values = random.standard_normal(shape, numpy.float32) * numpy.float32(deviation)
            file.write(values.tobytes())
    data = folder / "dev/data/tinyshakespeare"
    data.mkdir(parents=True)
    for name in ("train", "val"):
        tokens = random.integers(0, VOCAB, 64 * BATCH * SEQ + 1, numpy.uint16)
        header = numpy.zeros(256, numpy.int32)
        header[:3] = 20240520, 1, len(tokens)
        (data / f"tiny_shakespeare_{name}.bin").write_bytes(header.tobytes() + tokens.tobytes())


def time_steps(trainer, folder, steps, threads):
    """Milliseconds of each step, one of warm-up first, and the last loss."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    milliseconds, loss = [], float("nan")
    with subprocess.Popen(["stdbuf", "-oL", trainer], cwd=folder, env=environment, stdout=subprocess.PIPE) as run:
        for line in run.stdout:
            if match := STEP_LINE.search(line):
                loss = float(match[1])
                milliseconds.append(float(match[2]))
            if len(milliseconds) > steps:
                run.kill()
                break
    if len(milliseconds) <= steps:
        raise SystemExit(f"{trainer} ended after {len(milliseconds)} steps; at most 19 are timed")
    return milliseconds, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5, help="measured steps, at most 18")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    checkout = pathlib.Path(os.environ.get("LLMC", "")).resolve()
    if not (checkout / "train_gpt2.c").exists():
        raise SystemExit("LLMC: expected the folder of a checkout of llm.c in this variable")
    subprocess.run(["make", "-s", "-C", checkout, "train_gpt2"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        write_inputs(pathlib.Path(name), numpy.random.default_rng(42))
        milliseconds, loss = time_steps(checkout / "train_gpt2", name, arguments.steps, arguments.threads)
    median = statistics.median(milliseconds[1:])
    print(json.dumps({
        "peer": "llm.c", "precision": "fp32", "batch": BATCH, "seq": SEQ, "steps": arguments.steps,
        "threads": arguments.threads, "median_step_ms": round(median, 2),
        "step_ms": [round(value, 1) for value in milliseconds],
        "tokens_per_s": round(BATCH * SEQ / median * 1e3, 2), "last_loss": loss,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
