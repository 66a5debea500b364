#!/usr/bin/env python3
"""Writes the golden folders beside this file: tiny models trained in PyTorch and transformers.

    make_goldens.py [--out DIR] [NAME ...]

Each folder holds a model's config, initial weights and tokens, and what a correct trainer gets
from them; README.md lists the files. Everything is computed in float64 and stored as float32
(losses, norms and logits as full-precision numbers in golden.json). The output is a function of
this file and the package versions recorded in golden.json.
"""

import argparse
import json
import pathlib

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config

from exact import float64_model, logits_of, loss_sum

STEPS = 10
ACCUM_STEPS = 3
GRAD_ACCUM = 2
BATCHES_IN_FILE = 12
LR, BETAS, WEIGHT_DECAY, CLIP = 1e-3, (0.9, 0.95), 0.1, 1.0
# GPT-2's key biases have a gradient of exactly zero: softmax ignores a shift of its row. In float32
# it is noise of about 1e-9, which AdamW with an eps of 1e-8 turns into steps of about lr: no two
# correct float32 trainers agree on these biases. With 1e-5 they do, to about 1e-6 of the norm.
GPT2_EPS, LLAMA_EPS = 1e-5, 1e-8

# Standard deviation of the initial matrices: far above a family's 0.02, so that activations and
# gradients of these tiny models are of the order of one and every path carries signal.
WEIGHT_STD = 0.15
VECTOR_STD = 0.1  # biases around 0, norm weights around 1

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    # So small that at theta 10000 and a head of 24 the first frequency is kept, the next two are
    # blended and the others divided.
    "original_max_position_embeddings": 32,
}
ROPE_THETA = 10000.0


def gpt2(**changes):
    keys = dict(
        vocab_size=97,
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=3,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2Config(**(keys | changes))


def small(kind, **changes):
    """A config of Llama's graph, half as wide as tiny-llama."""
    keys = dict(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=56,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return kind(**(keys | changes))


def llama(**changes):
    wide = dict(vocab_size=101, hidden_size=64, intermediate_size=112)
    return small(LlamaConfig, **(wide | changes))


# Tokens that end documents, as often as a document has this many tokens on average.
SEPARATOR, DOCUMENT_LENGTH = 5, 7

MODELS = {
    # name: (config, sequence length, AdamW's eps, seed), a name with "documents" for packed rows
    "tiny-gpt2": (gpt2(), 24, GPT2_EPS, 11),
    "tiny-gpt2-documents": (gpt2(eos_token_id=SEPARATOR), 24, GPT2_EPS, 15),
    "tiny-mistral": (small(MistralConfig, sliding_window=7), 20, LLAMA_EPS, 16),
    "tiny-mistral-documents": (
        small(MistralConfig, sliding_window=4, eos_token_id=SEPARATOR),
        20,
        LLAMA_EPS,
        17,
    ),
    "tiny-qwen2": (
        small(Qwen2Config, use_sliding_window=True, sliding_window=6, max_window_layers=1),
        20,
        # Its key biases have no gradient either.
        GPT2_EPS,
        18,
    ),
    "tiny-gpt2-variant": (gpt2(activation_function="gelu", n_inner=80), 24, GPT2_EPS, 12),
    "tiny-llama": (llama(), 20, LLAMA_EPS, 13),
    "tiny-llama3": (
        llama(
            tie_word_embeddings=True,
            attention_bias=True,
            mlp_bias=True,
            head_dim=24,
            num_key_value_heads=1,
            rope_parameters=LLAMA3_ROPE | {"rope_theta": ROPE_THETA},
        ),
        20,
        LLAMA_EPS,
        14,
    ),
}
BATCH = 2


def initialise(model, generator):
    """Seeded values that float32 holds exactly, for every parameter including biases and norms."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            if parameter.dim() >= 2:
                value = WEIGHT_STD * noise
            else:
                value = VECTOR_STD * noise + (0.0 if name.endswith("bias") else 1.0)
            parameter.copy_(value)


def make_tokens(vocab, count, generator, separator):
    """Half random, half a fixed function of the token before: there is something to learn."""
    tokens = torch.randint(vocab, (count,), generator=generator)
    follows = torch.rand(count, generator=generator) < 0.5
    for i in range(1, count):
        if follows[i]:
            tokens[i] = (3 * tokens[i - 1] + 7) % vocab
    if separator is not None:
        tokens[torch.rand(count, generator=generator) < 1 / DOCUMENT_LENGTH] = separator
    return tokens


def write_tokens(path, tokens):
    header = np.zeros(256, dtype="<i4")
    header[:3] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + tokens.numpy().astype("<u2").tobytes())


def microbatches(tokens, seq, separator):
    """Sequential reading: BATCH*seq+1 tokens a microbatch, then BATCH*seq further on. A separator
    has no target: it would be the next document's first token."""
    stride = BATCH * seq
    for start in range(0, len(tokens) - stride, stride):
        window = tokens[start : start + stride + 1]
        inputs, targets = window[:-1].view(BATCH, seq), window[1:].view(BATCH, seq)
        if separator is not None:
            targets = torch.where(inputs == separator, -1, targets)
        yield inputs, targets


def adamw(model, eps):
    """Decay on everything with two or more dimensions: biases and norms are left out."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=eps)


def train(model, tokens, seq, eps, steps, grad_accum, separator):
    """Returns the losses, the norms before clipping, and the gradients of the first step."""
    optimizer = adamw(model, eps)
    data = microbatches(tokens, seq, separator)
    losses, norms, first_grads = [], [], None
    for _ in range(steps):
        optimizer.zero_grad()
        total = 0.0
        step = [next(data) for _ in range(grad_accum)]
        labels = sum((targets >= 0).sum().item() for _, targets in step)
        for inputs, targets in step:
            loss = loss_sum(model, inputs, targets, separator) / labels
            loss.backward()
            total += loss.item()
        if first_grads is None:
            first_grads = {n: p.grad.detach().clone() for n, p in model.named_parameters()}
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        losses.append(total)
        optimizer.step()
    return losses, norms, first_grads


def save_tensors(path, named):
    save_file(
        {name: t.detach().float().contiguous() for name, t in named},
        path,
        metadata={"format": "pt"},
    )
    path.chmod(0o644)


def sampled_logits(model, inputs, separator):
    """A few logits for a test of the forward pass alone: three positions, eight columns each."""
    vocab, seq = model.config.vocab_size, inputs.shape[1]
    columns = [0, 1, 2, 3, vocab // 2, vocab - 3, vocab - 2, vocab - 1]
    with torch.no_grad():
        logits = logits_of(model, inputs, separator)
    positions = [(0, 0), (0, seq // 2), (BATCH - 1, seq - 1)]
    return [
        {"row": b, "position": t, "columns": columns, "values": logits[b, t, columns].tolist()}
        for b, t in positions
    ]


def write_rope_spellings(folder):
    """config.v4.json and config.v5.json: the same model as transformers 4 and 5 spell it."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
    v4 = config | {
        "rope_theta": rope["rope_theta"],
        "rope_scaling": scaling,
        "torch_dtype": config["dtype"],
        "transformers_version": "4.57.0",
    }
    del v4["dtype"]
    for name, keys in {
        "config.v4.json": v4,
        "config.v5.json": config | {"rope_parameters": rope},
    }.items():
        path = folder / name
        path.write_text(json.dumps(keys, indent=2, sort_keys=True) + "\n")
        read = AutoConfig.from_pretrained(path).rope_parameters
        if read != rope:
            raise RuntimeError(f"{path}: transformers reads {read}, expected {rope}")


def make_golden(folder, config, seq, eps, seed):
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    model = float64_model(config)
    separator = SEPARATOR if "documents" in folder.name else None
    initialise(model, generator)
    initial = {n: t.clone() for n, t in model.state_dict().items()}
    tokens = make_tokens(config.vocab_size, BATCHES_IN_FILE * BATCH * seq + 1, generator, separator)

    config.architectures = [type(model).__name__]
    config.dtype = "float32"
    config.save_pretrained(folder)
    if config.model_type == "llama" and config.rope_parameters["rope_type"] == "llama3":
        write_rope_spellings(folder)
    write_tokens(folder / "tokens.bin", tokens)
    save_tensors(folder / "model.safetensors", model.named_parameters())

    first_inputs, _ = next(microbatches(tokens, seq, separator))
    logits = sampled_logits(model, first_inputs, separator)
    losses, norms, grads = train(model, tokens, seq, eps, STEPS, 1, separator)
    save_tensors(folder / "grads.safetensors", grads.items())
    save_tensors(folder / "params_after.safetensors", model.named_parameters())

    model.load_state_dict(initial)
    accum_losses, accum_norms, _ = train(
        model, tokens, seq, eps, ACCUM_STEPS, GRAD_ACCUM, separator
    )

    golden = {
        "made_with": {"torch": torch.__version__, "transformers": transformers.__version__},
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": BATCH,
        "seq": seq,
        "steps": STEPS,
        "grad_accum": 1,
        "lr": LR,
        "betas": BETAS,
        "eps": eps,
        "weight_decay": WEIGHT_DECAY,
        "clip": CLIP,
        "losses": losses,
        "grad_norms": norms,
        "accum": {
            "steps": ACCUM_STEPS,
            "grad_accum": GRAD_ACCUM,
            "losses": accum_losses,
            "grad_norms": accum_norms,
        },
        "logits": logits,
    }
    if separator is not None:
        golden["separator"] = separator
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{folder.name}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, norm {norms[0]:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(MODELS))
    if unknown:
        parser.error(f"unknown golden {unknown[0]}; known: {', '.join(MODELS)}")
    torch.set_num_threads(1)  # one order of every sum
    for name in arguments.names or MODELS:
        make_golden(arguments.out / name, *MODELS[name])


if __name__ == "__main__":
    main()
