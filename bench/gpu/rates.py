#!/usr/bin/env python3
"""What this machine can do at best, through PyTorch: one JSON line.

rates.py DEVICE PRODUCTS: `copy_bytes_per_s` (read and written), `bf16_flops_per_s` (a large product)
and `products`, the milliseconds that the library alone takes for each product of the list in the
file PRODUCTS. DEVICE is cuda, or cpu to try the script out, with small sizes.
"""

import json
import pathlib
import statistics
import sys
import time

import torch

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
REPEATS, AT_A_TIME = 7, 10


def milliseconds(work, device):
    """The median after three that warm up. Of a GPU by its events, several at a time: the way of one to
    the GPU is hidden behind the one before it."""
    for _ in range(3):
        work()
    times = []
    for _ in range(REPEATS):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(AT_A_TIME):
                work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / AT_A_TIME)
        else:
            start = time.perf_counter()
            work()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def copy_rate(device):
    """Bytes a second, those read and those written, of a copy much larger than any cache."""
    numbers = (1 << 30 if device == "cuda" else 1 << 20) // 4
    source = torch.zeros(numbers, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * numbers / milliseconds(lambda: target.copy_(source), device) * 1e3


def peak_rate(device):
    """FLOP/s of the best of three large bf16 products."""
    best = 0
    for size in (4096, 8192, 12288) if device == "cuda" else (64, 128):
        a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        best = max(best, 2 * size ** 3 / milliseconds(lambda: torch.mm(a, b, out=out), device) * 1e3)
    return best


def operand(rows, columns, transposed, batch, kind, device):
    """A matrix [batch, rows, columns] of that layout in memory."""
    shape = (batch, columns, rows) if transposed else (batch, rows, columns)
    matrix = torch.randn(shape, device=device).to(kind)
    return matrix.transpose(1, 2) if transposed else matrix


def time_product(product, device):
    """Milliseconds of torch.matmul alone; its result has the operands' type. None for types that it
    does not multiply (fp8)."""
    kind = TYPES.get(product["type"])
    if kind is None:
        return None
    m, n, k, batch = (product[key] for key in ("m", "n", "k", "batch"))
    torch.backends.cuda.matmul.allow_tf32 = product["tf32"]
    a = operand(m, k, product["a_transposed"], batch, kind, device)
    b = operand(k, n, product["b_transposed"], batch, kind, device)
    if batch == 1:
        a, b = a[0], b[0]
    out = torch.empty((batch, m, n)[batch == 1:], device=device, dtype=kind)
    return milliseconds(lambda: torch.matmul(a, b, out=out), device)


def main():
    device, products = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text())
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(f"PyTorch {torch.__version__} finds no GPU")
    print(json.dumps({
        "torch": torch.__version__,
        "copy_bytes_per_s": copy_rate(device),
        "bf16_flops_per_s": peak_rate(device),
        "products": [product | {"alone_ms": time_product(product, device)} for product in products],
    }))


if __name__ == "__main__":
    main()
