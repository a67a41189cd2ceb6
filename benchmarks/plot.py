#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws rates of forward passes and updates against the dimension: shardwise, its ceilings and its peers.

    benchmarks/peers/compare.py --json peers.json
    build/release/benchmarks/bench_lookup --benchmark_filter=lookup.*bag:20 --benchmark_format=json >lookup.json
    build/release/benchmarks/bench_update --benchmark_filter=bag:20 --benchmark_format=json >update.json
    build/peers/1.9.0/bin/python -m pip install matplotlib
    build/peers/1.9.0/bin/python benchmarks/plot.py peers.json lookup.json update.json --processor "Intel Xeon, Cascade Lake"

A rate is the bytes of all rows that ids name, 4 bytes a column, over the time; a row that two ids name counts twice, so rows
in caches can be faster than memory. A ceiling is drawn at its ratio to the kernel, which its own run measured: of forward passes
that of the lookup alone, a bare loop over rows, which the library can be faster than. A peer is its fastest release at each point.
PyTorch has no row-wise Adagrad, and TorchRec's update is FBGEMM's. It needs matplotlib, which any of the peers' virtual
environments can have.
"""

import argparse
import json
import os
import sys

SIZES = ("tables", "rows", "samples")
STANDARD = {"tables": 8, "rows": 1_000_000, "samples": 8192}  # as Sizes in benchmarks/support.hpp
LOOKS = {"ceiling": ("#888888", "--", "", "bare loop: the ceiling of lookup, update"),
         "lookup": ("#0b5fa5", "-", "o", "shardwise, lookup alone (no check of ids)"),
         "forward": ("#4da3e0", "-", "s", "shardwise"),
         "update": ("#4da3e0", "-", "s", ""),
         "PyTorch": ("#d9480f", "-", "^", "PyTorch EmbeddingBag"),
         "FBGEMM": ("#2b8a3e", "-", "D", "FBGEMM, split table-batched"),
         "TorchRec": ("#862e9c", "-", "v", "TorchRec EmbeddingBagCollection")}


def fail(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def read(paths, tables):
    """{(panel, Zipf or not, bag, who): {dim: milliseconds}}, panel "lookup" or "update", and the sizes and the processor of all."""
    lines = {}
    sizes = set()
    ceilings = {}
    processors = set()

    def add(panel, zipf, bag, who, dim, ms):
        lines.setdefault((panel, zipf, bag, who), {})[dim] = ms

    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if not {"records", "benchmarks"} & set(content):
                raise ValueError
        except OSError as error:
            fail(f"{path}: cannot be read: {error.strerror}")
        except (ValueError, TypeError):
            fail(f"{path}: neither what compare.py writes nor what a benchmark prints with --benchmark_format=json; did it end?")
        processors |= {content["processor"]} if content.get("processor") else set()
        for one in content.get("records", []):
            turn = one["turn"]
            if one["what"] not in ("lookup", "forward", "update") or turn["tables"] != tables:
                continue
            sizes.add(tuple(turn[name] for name in SIZES))
            dim, bag, zipf = turn["dim"], turn["bag"], turn["zipf"]
            panel = "update" if one["what"] == "update" else "lookup"
            add(panel, zipf, bag, one["what"], dim, one["ms"])
            if one["what"] != "lookup":  # there FBGEMM does not check ids
                for peer, numbers in one["peers"].items():
                    if "ms" in numbers:
                        add(panel, zipf, bag, peer, dim, numbers["ms"])
        of_run = tuple(int(content.get("context", {}).get(name, STANDARD[name])) for name in SIZES)
        for one in content.get("benchmarks", []):
            if of_run[0] != tables:
                continue
            name, dim, bag, zipf = [part.split(":")[-1] for part in one["run_name"].split("/")[:4]]
            if name in ("lookup", "update") and "of_ceiling" in one:
                sizes.add(of_run)
                ceilings[name, int(zipf), int(bag), int(dim)] = (one["of_ceiling"], one["median_ms"])
    for (name, zipf, bag, dim), (ratio, ms) in ceilings.items():  # beside what the peers were measured beside
        beside = lines.get((name, zipf, bag, name), {}).get(dim, ms)
        add(name, zipf, bag, "ceiling", dim, ratio * beside)
    if len(sizes) != 1:
        fail(f"the files have {', '.join('%d tables of %d rows, %d samples' % one for one in sorted(sizes)) or 'nothing'} where "
             f"--tables is {tables}; give what was measured with one size")
    return lines, dict(zip(SIZES, sizes.pop())), ", ".join(sorted(processors))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON of compare.py, bench_lookup or bench_update")
    parser.add_argument("--bag", type=int, default=20, help="ids a bag: 1, 20 or 100 (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=8, help="of runs of so many tables: 8 or 26 (default: %(default)s)")
    parser.add_argument("--processor", metavar="NAME", help="what the title calls it (default: as compare.py wrote it)")
    parser.add_argument("--output", default="rates.svg", metavar="FILE", help="the picture, .svg or .png (default: %(default)s)")
    arguments = parser.parse_args()
    lines, sizes, processor = read(arguments.files, arguments.tables)
    bags = sorted({bag for _, _, bag, _ in lines})
    if arguments.bag not in bags:
        fail(f"--bag {arguments.bag}: the files have nothing of it, but of {', '.join(map(str, bags))} ids a bag")
    if not os.path.isdir(os.path.dirname(arguments.output) or "."):
        fail(f"--output {arguments.output}: there is no folder {os.path.dirname(arguments.output)}")
    try:
        import matplotlib
    except ImportError:
        fail(f"{sys.executable} has no matplotlib: {sys.executable} -m pip install matplotlib")
    from matplotlib.ticker import NullLocator

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    looked_up = sizes["tables"] * sizes["samples"] * arguments.bag

    # The same bits for the same numbers, text as text, and white under it on any page.
    plt.rcParams |= {"svg.hashsalt": "shardwise", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    figure, panels = plt.subplots(2, 2, figsize=(9, 7.4), sharex=True, sharey="row", facecolor="white")
    shown = {}
    for row, panel in enumerate(("lookup", "update")):
        for column, zipf in enumerate((0, 1)):
            axes = panels[row][column]
            for who, (color, style, marker, label) in LOOKS.items():
                times = lines.get((panel, zipf, arguments.bag, who))
                if not times:
                    continue
                dims = sorted(times)
                rates = [looked_up * dim * 4 / times[dim] / 1e6 for dim in dims]
                (line,) = axes.plot(dims, rates, style, color=color, marker=marker, markersize=5, linewidth=1.6)
                if label:
                    shown.setdefault(label, line)
            axes.set_title(f"{'Forward pass' if row == 0 else 'Update, row-wise Adagrad'}, {'Zipf 1.05' if zipf else 'uniform'} ids")
            axes.set_xscale("log", base=2)
            axes.set_xticks([16, 64, 128], ["16", "64", "128"])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid(color="#dddddd", linewidth=0.6)
            if row == 1:
                axes.set_xlabel("dimension (columns of a table)")
            if column == 0:
                axes.set_ylabel("rows named by ids, GB/s")
    for row in panels:
        row[0].set_ylim(bottom=0)
    figure.suptitle(f"{arguments.processor or processor or 'unknown processor'}, one thread; peers at their fastest release\n"
                    f"{sizes['tables']} tables of {sizes['rows']:,} rows, {sizes['samples']} samples, {arguments.bag} ids a bag", fontsize=11)
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    date = {"metadata": {"Date": None}} if arguments.output.endswith(".svg") else {}
    figure.savefig(arguments.output, facecolor="white", **date)


if __name__ == "__main__":
    main()
