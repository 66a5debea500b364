#!/usr/bin/env python3
"""Checks weights that a compiled executable saved: transformers loads them and agrees.

    check_export.py GOLDEN_DIR EXPORTED.safetensors

GOLDEN_DIR is a folder of make_goldens.py; EXPORTED is what `train --save-weights` wrote after the
steps that golden.json describes. The export must load with no key missing (but a tied lm_head) and
none unexpected; each parameter must be within 1e-4 by norm of params_after.safetensors, and the
logits on the first batch of tokens.bin within 1e-4 by norm of those params_after gives.
Exits 0 where all of that holds, else 1 after saying what does not.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from exact import logits_of

TOLERANCE = 1e-4


def load(golden_dir, weights):
    """The model of golden_dir's config with a file's weights, and the complaints of loading."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").symlink_to((golden_dir / "config.json").resolve())
        (folder / "model.safetensors").symlink_to(weights.resolve())
        model, report = AutoModelForCausalLM.from_pretrained(
            str(folder),
            local_files_only=True,
            attn_implementation="sdpa",
            dtype=torch.float64,
            output_loading_info=True,
        )
    complaints = []
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        entries = sorted(str(entry) for entry in report[kind])
        if kind == "missing_keys" and model.config.tie_word_embeddings:
            entries = [entry for entry in entries if entry != "lm_head.weight"]
        complaints += [f"{weights}: {kind.replace('_', ' ')}: {entry}" for entry in entries]
    return model, complaints


def distance(got, expected):
    """||got - expected|| / ||expected||."""
    return (torch.linalg.norm(got - expected) / torch.linalg.norm(expected)).item()


def first_batch(golden_dir):
    golden = json.loads((golden_dir / "golden.json").read_text())
    batch, seq = golden["batch"], golden["seq"]
    tokens = np.fromfile(golden_dir / "tokens.bin", dtype="<u2", offset=256 * 4, count=batch * seq)
    return torch.from_numpy(tokens.astype(np.int64)).view(batch, seq)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden_dir", type=pathlib.Path, metavar="GOLDEN_DIR")
    parser.add_argument("exported", type=pathlib.Path, metavar="EXPORTED.safetensors")
    arguments = parser.parse_args()
    for path in (arguments.golden_dir / "golden.json", arguments.exported):
        if not path.is_file():
            parser.error(f"{path}: no such file")

    expected, complaints = load(
        arguments.golden_dir, arguments.golden_dir / "params_after.safetensors"
    )
    got, more = load(arguments.golden_dir, arguments.exported)
    complaints += more

    got_parameters = dict(got.named_parameters())
    distances = {
        name: distance(got_parameters[name].data, parameter.data)
        for name, parameter in expected.named_parameters()
    }
    inputs = first_batch(arguments.golden_dir)
    with torch.no_grad():
        distances["logits"] = distance(logits_of(got, inputs), logits_of(expected, inputs))

    # Written so that a NaN is a complaint.
    complaints += [
        f"{name}: {value:.3e} from the expected value by norm, the bound is {TOLERANCE:.0e}"
        for name, value in distances.items()
        if not value <= TOLERANCE
    ]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        return 1
    worst = max(distances, key=distances.get)
    print(f"{len(distances)} comparisons, the farthest {worst}: {distances[worst]:.3e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
