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
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen2 import modeling_qwen2


def _rms_norm_in_input_dtype(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


for norm in (modeling_llama.LlamaRMSNorm, modeling_mistral.MistralRMSNorm, modeling_qwen2.Qwen2RMSNorm):
    norm.forward = _rms_norm_in_input_dtype


def float64_model(config):
    """A model of `config` with float64 parameters, not yet given meaningful values."""
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").double().train()


def documents(inputs, separator, window):
    """Of rows of documents, each up to and with a separator: who sees whom, [batch, 1, seq, seq],
    and each token's position in its document, [batch, seq]. `window`: keys a query sees, or None."""
    ends = inputs == separator
    number = ends.cumsum(1) - ends.long()  # of the token's document in its row
    place = torch.arange(inputs.shape[1])
    back = place[:, None] - place[None, :]
    sees = (number[:, :, None] == number[:, None, :]) & (back >= 0)
    if window is not None:
        sees &= back < window
    starts = torch.stack([torch.searchsorted(row, row) for row in number])
    return sees[:, None], place - starts


def logits_of(model, inputs, separator=None):
    """Logits [batch, seq, vocab] of token ids [batch, seq]; fails where float64 got lost."""
    keywords = {}
    if separator is not None:
        window = getattr(model.config, "sliding_window", None)
        mask, positions = documents(inputs, separator, window)
        keywords = {"attention_mask": mask, "position_ids": positions}
    logits = model(input_ids=inputs, use_cache=False, **keywords).logits
    if logits.dtype != torch.float64:
        raise RuntimeError(f"the logits came out as {logits.dtype}, expected torch.float64")
    return logits


def loss_sum(model, inputs, targets, separator=None):
    """Cross-entropy summed over all positions whose target is not -1, so that the caller divides by
    the label count."""
    logits = logits_of(model, inputs, separator)
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), reduction="sum", ignore_index=-1
    )
