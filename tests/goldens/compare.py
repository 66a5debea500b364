"""How a run is compared with a golden: the flags that repeat it, and the bounds of each precision.

Nothing but the standard library: the end-to-end tests use it, and the check of a GPU on a machine
that has only that (bench/gpu).

A mode's bounds are its unit of rounding u (of the inputs of products: 2^-11 for tf32 and fp16, 2^-8
for bf16) times a factor: losses within u, gradients by norm within 8 u, each and all together. PyTorch's
autocast gives 5.3 u (bf16) and 5.7 u (fp16) all together on tiny-llama3. The gradient of a key's bias
is what is left after cancellation (a softmax does not see a shift of all its scores; autocast: 12 u),
so its bound is 32 u.

fp8 is bounded by what its roundings add up to, u = 2^-3 being E5M2's unit and half of it E4M3's. One
rounding is off by 0.4 u in the mean square. In these models of two layers a gradient is rounded up to
eight times on its way down and meets as many weights and activations: sqrt(8 (0.4 u)^2 + 16 (0.2 u)^2)
= 1.4 u. Bounds are twice that, 3 u, for each tensor, 4 u for a key's bias, 2.5 u all together; and an
eighth of u for losses, which see E4M3 alone, in sums that average it.
"""

import array
import dataclasses
import json
import math
import struct


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Relative errors, of tensors by norm. None: not compared."""

    loss: float
    gradient: float
    key_bias: float  # of the gradient of a key's bias
    all_gradients: float  # of all of them together
    grad_norm: float | None = None
    parameter: float | None = None  # after the last step

    def of_gradient(self, name):
        return self.key_bias if name.endswith("k_proj.bias") else self.gradient


def in_units(unit, loss=1, gradient=8, key_bias=32, all_gradients=8):
    return Bounds(unit * loss, unit * gradient, unit * key_bias, unit * all_gradients)


BOUNDS = {
    "fp32": Bounds(1e-5, 1e-4, 1e-4, 1e-4, grad_norm=1e-4, parameter=1e-4),
    "tf32": in_units(2.0 ** -11),
    "fp16": in_units(2.0 ** -11),
    "bf16": in_units(2.0 ** -8),
    "fp8": in_units(2.0 ** -3, 1 / 8, 3, 4, 2.5),
}


def read_golden(folder):
    return json.loads((folder / "golden.json").read_text())


def of_documents(golden):
    """The flags of a golden whose rows hold documents."""
    return ("--document-mask", "on") if "separator" in golden else ()


def compile_flags(golden):
    return ("--micro-batch", golden["batch"], "--seq", golden["seq"], *of_documents(golden))


def train_flags(folder, golden):
    """All but the number of steps and what is written."""
    return ("--data", folder / "tokens.bin", "--data-order", "sequential", "--lr", golden["lr"],
            "--lr-decay", "constant", "--beta1", golden["betas"][0], "--beta2", golden["betas"][1],
            "--eps", golden["eps"], "--weight-decay", golden["weight_decay"], "--clip-grad",
            golden["clip"], "--init-weights", folder / "model.safetensors")


def metrics(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def safetensors(path):
    """Name to array of f32."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f")
        values.frombytes(data[8 + length + begin:8 + length + end])
        tensors[name.removeprefix("transformer.")] = values
    return tensors


def relative(actual, expected):
    """Norm of the difference over the norm of what is expected; NaN stays NaN."""
    difference = math.sqrt(sum((a - e) ** 2 for a, e in zip(actual, expected, strict=True)))
    return difference / (math.sqrt(sum(e * e for e in expected)) + 1e-30)


def beyond(value, bound, what):
    """No line, or one that says how far it is off; one for a NaN too."""
    return [] if value <= bound else [f"{what}: {value:.3g} is not within {bound:.3g}"]


def compare_steps(lines, expected, bounds):
    """What is wrong with a run's metrics, a line each, where `expected` has losses and grad_norms."""
    if len(lines) != expected["steps"]:
        return [f"{len(lines)} steps, expected {expected['steps']}"]
    found = []
    for line, loss, norm in zip(lines, expected["losses"], expected["grad_norms"], strict=True):
        if line["skipped"]:
            found.append(f"step {line['step']} was skipped")
        found += beyond(distance(line["loss"], loss), bounds.loss, f"loss {line['step']}")
        if bounds.grad_norm is not None:
            found += beyond(distance(line["grad_norm"], norm), bounds.grad_norm,
                            f"grad_norm {line['step']}")
    return found


def distance(actual, expected):
    """A metric that is not finite is null in JSON."""
    return math.nan if actual is None else abs(actual - expected) / abs(expected)


def compare_tensors(actual, expected, bound_of, what):
    """`bound_of` gives a tensor's bound by its name."""
    if sorted(actual) != sorted(expected):
        return [f"{what}s have other names: {sorted(set(actual) ^ set(expected))}"]
    found = []
    for name, values in expected.items():
        if len(actual[name]) != len(values):
            found.append(f"{what} {name}: {len(actual[name])} elements, expected {len(values)}")
        else:
            found += beyond(relative(actual[name], values), bound_of(name), f"{what} {name}")
    return found


def compare_gradients(path, folder, bounds):
    actual, expected = safetensors(path), safetensors(folder / "grads.safetensors")
    found = compare_tensors(actual, expected, bounds.of_gradient, "gradient")
    if found:
        return found
    together = [[value for name in expected for value in tensors[name]]
                for tensors in (actual, expected)]
    return beyond(relative(*together), bounds.all_gradients, "all gradients")


def compare_parameters(path, folder, bounds):
    return compare_tensors(safetensors(path), safetensors(folder / "params_after.safetensors"),
                           lambda name: bounds.parameter, "parameter")
