"""Builds the golden models in transformers so that they compute in float64 throughout.

transformers casts to float32 inside some modules whatever the model's dtype is: RMSNorm, the
softmax of eager attention, the loss. A golden must be the truth and not one float32 rounding of
it, so RMSNorm is replaced, attention goes through SDPA (which keeps float64) and the loss is
computed here. The rotary tables stay as transformers computes them, in float32.
"""

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.models.llama import modeling_llama


def _rms_norm_in_input_dtype(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


modeling_llama.LlamaRMSNorm.forward = _rms_norm_in_input_dtype


def float64_model(config):
    """A model of `config` with float64 parameters, not yet given meaningful values."""
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").double().train()


def logits_of(model, inputs):
    """Logits [batch, seq, vocab] of token ids [batch, seq]; fails where float64 got lost."""
    logits = model(input_ids=inputs, use_cache=False).logits
    if logits.dtype != torch.float64:
        raise RuntimeError(f"the logits came out as {logits.dtype}, expected torch.float64")
    return logits


def loss_sum(model, inputs, targets):
    """Cross-entropy summed over all positions, so that the caller divides by the label count."""
    logits = logits_of(model, inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
