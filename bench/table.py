"""Prints the figures that bench/run left in a folder as one table. Usage: table.py FOLDER"""

import json
import pathlib
import sys


def load(path):
    return json.loads(path.read_text().strip().splitlines()[-1])


def rows(folder, name):
    ours = load(folder / f"gradc-{name}.json")
    yield ("gradc", ours["step_ms"], ours["tokens_per_s"], ours["resident_peak_bytes"],
           f"{100 * ours['mfu']:.0f} % of the FMA peak ({ours['peak_flops_per_s'] / 1e9:.0f} GFLOP/s, "
           f"{ours['device']}); products {100 * ours['matmul_share']:.0f} % of the step at "
           f"{100 * ours['matmul_of_peak']:.0f} % of the peak")
    for mode in ("eager", "compile"):
        path = folder / f"{mode}-{name}.json"
        if path.exists():
            peer = load(path)
            yield (f"PyTorch {peer['torch']} {mode}", peer["median_step_ms"], peer["tokens_per_s"],
                   peer["peak_rss_bytes"], f"gradc is {ours['tokens_per_s'] / peer['tokens_per_s']:.2f} times it")
    path = folder / f"llmc-{name}.json"
    if path.exists():
        peer = load(path)
        yield ("llm.c", peer["median_step_ms"], peer["tokens_per_s"], peer["peak_rss_bytes"],
               f"gradc is {ours['tokens_per_s'] / peer['tokens_per_s']:.2f} times it")


def main():
    folder = pathlib.Path(sys.argv[1])
    for path in sorted(folder.glob("gradc-*.json")):
        case = path.stem.removeprefix("gradc-")
        print(f"{case} (model, precision, batch x seq)")
        for name, milliseconds, tokens, peak, note in rows(folder, case):
            print(f"  {name:28} {milliseconds:9.0f} ms {tokens:8.0f} tokens/s {peak / 2**30:6.2f} GiB  {note}")
    if not (folder / "compile-48.seconds").exists():
        return
    seconds = {}
    for layers in (12, 48):
        begin, end = map(float, (folder / f"compile-{layers}.seconds").read_text().split())
        seconds[layers] = end - begin
    print(f"gradc compile: {seconds[12]:.1f} s for 12 layers, {seconds[48]:.1f} s for 48 "
          f"({seconds[48] / seconds[12]:.2f} times)")


if __name__ == "__main__":
    main()
