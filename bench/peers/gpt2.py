"""GPT-2 as compact PyTorch: the same mathematics as transformers' GPT2LMHeadModel without dropout.

Written for speed on a CPU with what PyTorch offers: one product for q, k and v, fused attention
(SDPA with is_causal, no mask in memory), F.gelu's tanh form, a tied head, no copy of the logits.
"""

import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, inner, epsilon):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width, eps=epsilon)
        self.qkv = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width, eps=epsilon)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        batch, seq, width = x.shape
        split = (batch, seq, self.heads, width // self.heads)
        q, k, v = (
            t.view(split).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Token ids [batch, seq] and targets of the same shape to the mean cross-entropy."""

    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        inner = config["n_inner"] or 4 * width
        epsilon = config["layer_norm_epsilon"]
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["n_positions"], width)
        self.blocks = nn.ModuleList(
            Block(width, config["n_head"], inner, epsilon) for _ in range(config["n_layer"])
        )
        self.ln_f = nn.LayerNorm(width, eps=epsilon)
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
