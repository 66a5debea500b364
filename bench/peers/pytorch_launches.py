#!/usr/bin/env python3
"""Counts what a training step of PyTorch would launch on a GPU, on a machine without one.

Eager: the operators that reach a device below autograd, views and allocations left out: each is one
kernel on CUDA, or more (softmax's statistics, sorts of an embedding's gradient), so this is the
least. Compiled: the kernels and library calls in the code that inductor writes for this machine; its
code for a GPU may fuse otherwise. Forward and backward of a layer are the difference of two depths;
the optimizer (fused AdamW over all parameters of a group) and clipping are not in it.
"""

import argparse
import collections
import json
import pathlib
import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpt2 import Gpt2
from pytorch_step import FromTransformers, choose_implementation, read_config

WITHOUT_KERNEL = ("empty", "detach", "_unsafe_view", "lift_fresh", "new_empty", "_local_scalar")
LAYER_KEYS = {"gpt2": "n_layer", "llama": "num_hidden_layers"}


class Launches(TorchDispatchMode):
    """Counts operators by name."""

    def __init__(self):
        super().__init__()
        self.names = collections.Counter()

    def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
        name = operator._schema.name.split("::")[-1]
        if not operator.is_view and not name.startswith(WITHOUT_KERNEL):
            self.names[name] += 1
        return operator(*arguments, **(keywords or {}))


def build(config, layers):
    config = config | {LAYER_KEYS[config["model_type"]]: layers}
    compact = choose_implementation(config, "auto") == "compact"
    return (Gpt2 if compact else FromTransformers)(config).train()


def loss_of(model, tokens, precision):
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        return model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def count_eager(config, layers, tokens, precision):
    model = build(config, layers)
    with Launches() as launches:
        loss_of(model, tokens, precision).backward()
    return launches.names


def count_compiled(config, layers, tokens, precision):
    from torch._inductor.utils import run_fw_bw_and_get_code

    torch._dynamo.reset()
    model = torch.compile(build(config, layers))
    _, codes = run_fw_bw_and_get_code(lambda: loss_of(model, tokens, precision))
    names = collections.Counter()
    for code in codes:
        for name in re.findall(
            r"^ +(?:\w+ = )?(cpp_fused\w*|extern_kernels\.\w+|torch\.ops\.\w+\.\w+)[.(]", code, re.M
        ):
            names[re.sub(r"_\d+$", "", name)] += 1
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=pathlib.Path, help="default: GPT-2 124M")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    arguments = parser.parse_args()
    config = read_config(arguments.config)
    count = count_compiled if arguments.mode == "compile" else count_eager
    tokens = torch.randint(config["vocab_size"], (1, 17))
    few, more = (count(config, layers, tokens, arguments.precision) for layers in (2, 3))
    layer = {name: more[name] - few[name] for name in more if more[name] != few[name]}
    result = {
        "torch": torch.__version__,
        "model_type": config["model_type"],
        "mode": arguments.mode,
        "precision": arguments.precision,
        "launches_a_layer": sum(layer.values()),
        "of_no_layer": few.total() - 2 * sum(layer.values()),
        "layer": layer,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
