#!/usr/bin/env python3
"""Times training steps of a model in PyTorch on a CPU or a GPU, random tokens: a peer for `bench`.

A step is forward, backward, clipping by the global norm and AdamW. On a CPU run it through
run_pytorch.sh, which sets the environment that it needs there; PyTorch is several times slower
without. GPT-2 is gpt2.py and Llama is llama.py, which need nothing but PyTorch (check_models.py
compares them with the goldens); --impl transformers takes theirs. Attention is SDPA, AdamW the
fused one. On a GPU the products that autocast leaves in fp32 use TF32.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import llama
from gpt2 import Gpt2

GPT2_124M = {
    "model_type": "gpt2",
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
}
REPORTED_ENVIRONMENT = (
    "ATEN_CPU_CAPABILITY",
    "GLIBC_TUNABLES",
    "GOMP_CPU_AFFINITY",
    "LD_PRELOAD",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "OPENBLAS_CORETYPE",
)


class FromTransformers(nn.Module):
    """A transformers model with the loss on its logits; dropout off."""

    def __init__(self, config):
        super().__init__()
        from transformers import AutoConfig, AutoModelForCausalLM  # not needed for gpt2.py

        keys = {key: value for key, value in config.items() if key != "model_type"}
        if config["model_type"] == "gpt2":
            keys |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        self.model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config["model_type"], **keys), attn_implementation="sdpa"
        ).float()

    def forward(self, inputs, targets):
        logits = self.model(input_ids=inputs, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def read_config(path):
    """The built-in GPT-2 124M where path is None, else a config.json or the folder holding one."""
    if path is None:
        return GPT2_124M
    config = json.loads((path / "config.json" if path.is_dir() else path).read_text())
    return (GPT2_124M if config["model_type"] == "gpt2" else {}) | config


def choose_implementation(config, wanted):
    """ "compact" is gpt2.py, which knows only the published GPT-2, or llama.py."""
    if config["model_type"] == "gpt2":
        fits = config["activation_function"] == "gelu_new"
    else:
        fits = config["model_type"] == "llama" and llama.fits(config)
    if wanted == "auto":
        return "compact" if fits else "transformers"
    if wanted == "compact" and not fits:
        raise SystemExit(
            "--impl compact: this config is no GPT-2 with gelu_new and no Llama with silu; "
            "use --impl auto"
        )
    return wanted


def build_model(config, implementation):
    if implementation == "transformers":
        return FromTransformers(config)
    return (Gpt2 if config["model_type"] == "gpt2" else llama.Llama)(config)


def adamw(model, kind, learning_rate=3e-4, weight_decay=0.1):
    """Decay on tensors of two or more dimensions only."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), **{kind: True})


def time_steps(model, arguments, vocab):
    """Milliseconds of each step, warm-up ones first; the last loss; CPUs that others kept busy."""
    optimizer = adamw(model, arguments.adamw)
    run = torch.compile(model) if arguments.mode == "compile" else model
    parameters = list(model.parameters())
    shape = (arguments.batch, arguments.seq + 1)
    milliseconds, value = [], float("nan")
    for step in range(arguments.warmup + arguments.steps):
        if step == arguments.warmup:
            mark = time.perf_counter(), time.process_time(), busy_seconds()
        tokens = torch.randint(vocab, shape, device=arguments.device)
        inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        start = time.perf_counter()
        with torch.autocast(arguments.device, torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = run(inputs, targets)
        loss.backward()
        if arguments.clip > 0:
            nn.utils.clip_grad_norm_(parameters, arguments.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()  # on a GPU: waits for all that was launched before, the update too
        milliseconds.append((time.perf_counter() - start) * 1e3)
    elapsed = time.perf_counter() - mark[0]
    own, busy = time.process_time() - mark[1], busy_seconds() - mark[2]
    return milliseconds, value, max(0.0, (busy - own) / elapsed)


def busy_seconds():
    """CPU seconds of the whole machine since boot, those taken by other guests included."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def gpu_figures():
    """The GPU's name, and the most memory that tensors took, and that PyTorch took for them."""
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": torch.version.cuda,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=pathlib.Path, help="default: GPT-2 124M, vocabulary 50257")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--steps", type=int, default=10, help="measured steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before those (default 2)")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--impl", choices=("auto", "compact", "transformers"), default="auto")
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), default="fp32", help="bf16: autocast (default fp32)"
    )
    parser.add_argument("--adamw", choices=("fused", "foreach"), default="fused")
    parser.add_argument(
        "--clip", type=float, default=1.0, help="global norm; 0 is off (default 1.0)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON line instead of a sentence")
    arguments = parser.parse_args()
    if min(arguments.batch, arguments.seq, arguments.steps, arguments.threads) < 1:
        parser.error("--batch, --seq, --steps and --threads must be at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(f"--device cuda: PyTorch {torch.__version__} finds no GPU")
    torch.set_num_threads(arguments.threads)
    torch.set_float32_matmul_precision("high" if arguments.device == "cuda" else "highest")
    torch.manual_seed(42)
    config = read_config(arguments.config)
    arguments.impl = choose_implementation(config, arguments.impl)
    model = build_model(config, arguments.impl).to(arguments.device).train()
    before = peak_rss_bytes()
    milliseconds, loss, others = time_steps(model, arguments, config["vocab_size"])
    measured = milliseconds[arguments.warmup :]
    median = statistics.median(measured)
    tokens = arguments.batch * arguments.seq
    result = {
        "peer": "pytorch",
        "torch": torch.__version__,
        "cpu": cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "model_type": config["model_type"],
        "parameters": sum(p.numel() for p in model.parameters()),
        **{key: getattr(arguments, key) for key in ("impl", "mode", "adamw", "clip")},
        **{key: getattr(arguments, key) for key in ("batch", "seq", "steps", "warmup", "threads")},
        **{key: getattr(arguments, key) for key in ("precision", "device")},
        "tf32": torch.get_float32_matmul_precision() != "highest",
        **(gpu_figures() if arguments.device == "cuda" else {}),
        "median_step_ms": round(median, 2),
        "min_step_ms": round(min(measured), 2),
        "step_ms": [round(value, 1) for value in milliseconds],
        "tokens_per_s": round(tokens / median * 1e3, 2),
        "peak_rss_bytes": peak_rss_bytes(),
        "rss_before_first_step_bytes": before,
        "last_loss": loss,
        "cpus_busy_with_others": round(others, 3),
        "environment": {key: os.environ.get(key) for key in REPORTED_ENVIRONMENT},
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        peak = result.get("peak_reserved_bytes", result["peak_rss_bytes"]) / 2**30
        print(
            f"PyTorch {result['torch']} {arguments.mode}: {median:.0f} ms a step, "
            f"{result['tokens_per_s']:.0f} tokens/s, peak {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main()
