"""Compares the last validation losses of runs with that of the first; fails where one is not finite or
more than 2 % away. `./dev precisions` calls it.

Usage: validation_losses.py NAME=METRICS.jsonl...
"""

import json
import math
import sys

BOUND = 0.02


def last_validation_loss(path):
    with open(path) as lines:
        losses = [(entry["step"], entry["val_loss"]) for entry in map(json.loads, lines) if "val_loss" in entry]
    if not losses:
        sys.exit(f"{path}: no step has a validation loss; train with --val-data and --val-every")
    step, loss = losses[-1]
    # null where it is not finite
    return step, loss if isinstance(loss, (int, float)) else math.nan


def main():
    runs = [argument.split("=", 1) for argument in sys.argv[1:]]
    last = {name: last_validation_loss(path) for name, path in runs}
    first_name, (steps, first) = next(iter(last.items()))
    failed = not math.isfinite(first)
    print(f"validation loss after {steps} steps")
    for name, (step, loss) in last.items():
        away = loss / first - 1
        within = step == steps and abs(away) <= BOUND  # NaN is not
        failed |= not within
        print(f"  {name:12} {loss:.4f}  {100 * away:+.2f} % of {first_name}'s{'' if within else '  NOT WITHIN 2 %'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
