#!/usr/bin/env python3
"""Fails where a compact model's loss, in f64, is not that of a golden. Usage: check_models.py GOLDENS

A peer that computed less than the model it stands for would be no peer. GOLDENS is tests/goldens,
whose losses are transformers'.
"""

import array
import json
import pathlib
import sys

import torch

from gpt2 import Gpt2
from llama import Llama

BOUND = 1e-6  # relative; the goldens' weights were rounded to f32, and RoPE's tables are f32
GPT2_NAMES = {"h.": "blocks.", "attn.c_attn": "qkv", "attn.c_proj": "attention_out", "mlp.c_fc": "up",
              "mlp.c_proj": "down", "wte": "tokens", "wpe": "positions"}
LLAMA_NAMES = {"model.embed_tokens": "tokens", "model.norm": "norm", "lm_head": "head"}
LLAMA_PARTS = {"input_norm": ["input_layernorm"], "inner_norm": ["post_attention_layernorm"],
               "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
               "attention_out": ["self_attn.o_proj"], "gate_up": ["mlp.gate_proj", "mlp.up_proj"],
               "down": ["mlp.down_proj"]}


def read_weights(path):
    """Name to tensor in f64."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:8 + length])
    entries.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[8 + length:][slice(*entry["data_offsets"])]),
                                   dtype=torch.float32).view(entry["shape"]).double()
            for name, entry in entries.items()}


def of_gpt2(weights):
    """By our names. GPT-2's products hold their weights the other way round."""
    result = {}
    for name, tensor in weights.items():
        turned = ".c_" in name and name.endswith(".weight")
        name = name.removeprefix("transformer.")
        for theirs, ours in GPT2_NAMES.items():
            name = name.replace(theirs, ours)
        result[name] = tensor.T if turned else tensor
    return result


def of_llama(weights):
    """By our names, the products that are one of ours joined."""
    result = {}
    for theirs, ours in LLAMA_NAMES.items():
        if f"{theirs}.weight" in weights:
            result[f"{ours}.weight"] = weights[f"{theirs}.weight"]
    result.setdefault("head.weight", result["tokens.weight"])
    layers = {name.split(".")[2] for name in weights if name.startswith("model.layers.")}
    for layer in layers:
        for ours, parts in LLAMA_PARTS.items():
            for kind in ("weight", "bias"):
                names = [f"model.layers.{layer}.{part}.{kind}" for part in parts]
                if names[0] in weights:
                    result[f"blocks.{layer}.{ours}.{kind}"] = torch.cat([weights[name] for name in names])
    return result


def first_batch(folder, golden):
    """Inputs and targets [batch, seq]: the first batch * seq + 1 tokens behind llm.c's header."""
    count = golden["batch"] * golden["seq"]
    ids = array.array("H", (folder / "tokens.bin").read_bytes()[1024:1024 + 2 * (count + 1)])
    tokens = torch.tensor(ids.tolist())
    shape = golden["batch"], golden["seq"]
    return tokens[:-1].view(shape), tokens[1:].view(shape)


def error_of(folder):
    """Of the loss of the first step, relative."""
    config = json.loads((folder / "config.json").read_text())
    golden = json.loads((folder / "golden.json").read_text())
    kind, names = (Llama, of_llama) if config["model_type"] == "llama" else (Gpt2, of_gpt2)
    model = kind(config).double()
    model.load_state_dict(names(read_weights(folder / "model.safetensors")), strict=True)
    with torch.no_grad():
        loss = model(*first_batch(folder, golden)).item()
    return abs(loss - golden["losses"][0]) / golden["losses"][0]


def main():
    goldens = pathlib.Path(sys.argv[1])
    wrong = False
    for name in ("tiny-gpt2", "tiny-llama", "tiny-llama3"):
        error = error_of(goldens / name)
        wrong |= not error <= BOUND
        print(f"{name}: loss off by {error:.1e} of itself, at most {BOUND:.0e}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
