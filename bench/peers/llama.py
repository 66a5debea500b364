"""Llama as compact PyTorch: the same mathematics as transformers' LlamaForCausalLM without dropout.

With what PyTorch offers: fused attention (SDPA with is_causal and grouped queries, no mask in
memory), one product for q, k and v and one for gate and up, no copy of the logits. RoPE is
half-split, of type default or llama3.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

ROPE_TYPES = ("default", "llama3")


def rope_of(config):
    """The parameters of RoPE from either spelling of a config.json."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    rope.setdefault("rope_type", rope.pop("type", "default"))
    return rope


def fits(config):
    """Whether this file has all that a Llama's config asks for."""
    return config.get("hidden_act", "silu") == "silu" and rope_of(config)["rope_type"] in ROPE_TYPES


def frequencies(rope, width):
    """Angles a position, [width / 2], in f64."""
    result = rope["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if rope["rope_type"] == "default":
        return result
    turns = rope["original_max_position_embeddings"] * result / (2 * math.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = ((turns - low) / (high - low)).clamp(0, 1)  # 1: fast ones, as they are; 0: slow ones
    return result * (kept + (1 - kept) / rope["factor"])


def rotate(x, cosines, sines):
    """x [batch, heads, seq, width]; the tables [seq, width / 2], in f32."""
    first, second = x.float().chunk(2, dim=-1)
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    return torch.cat(turned, dim=-1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        of_attention = bool(config.get("attention_bias"))
        of_mlp = bool(config.get("mlp_bias"))
        self.heads = config["num_attention_heads"]
        self.groups = config.get("num_key_value_heads") or self.heads
        self.head = config.get("head_dim") or width // self.heads
        self.input_norm = nn.RMSNorm(width, eps=config["rms_norm_eps"])
        self.qkv = nn.Linear(width, (self.heads + 2 * self.groups) * self.head, bias=of_attention)
        self.attention_out = nn.Linear(self.heads * self.head, width, bias=of_attention)
        self.inner_norm = nn.RMSNorm(width, eps=config["rms_norm_eps"])
        self.gate_up = nn.Linear(width, 2 * inner, bias=of_mlp)
        self.down = nn.Linear(inner, width, bias=of_mlp)

    def forward(self, x, cosines, sines):
        batch, seq, _ = x.shape
        all_heads = self.qkv(self.input_norm(x)).view(batch, seq, -1, self.head).transpose(1, 2)
        q, k, v = all_heads.split((self.heads, self.groups, self.groups), dim=1)
        mixed = F.scaled_dot_product_attention(
            rotate(q, cosines, sines),
            rotate(k, cosines, sines),
            v,
            is_causal=True,
            enable_gqa=self.groups != self.heads,
        )
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, seq, -1))
        gate, up = self.gate_up(self.inner_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """Token ids [batch, seq] and targets of the same shape to the mean cross-entropy."""

    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(width, eps=config["rms_norm_eps"])
        self.head = nn.Linear(width, config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings"):
            self.head.weight = self.tokens.weight
        self.rope = frequencies(rope_of(config), self.blocks[0].head)
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs, targets):
        positions = torch.arange(inputs.shape[1], device=inputs.device, dtype=torch.float64)
        angles = torch.outer(positions, self.rope.to(inputs.device))
        cosines, sines = angles.cos().float(), angles.sin().float()
        x = self.tokens(inputs)
        for block in self.blocks:
            x = block(x, cosines, sines)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())
