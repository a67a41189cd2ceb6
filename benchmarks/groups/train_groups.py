#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with 1, 2, 4 and 8 replica groups of 8 ranks on this machine: Table 1 and Figure 6 of two-dimensional sparse parallelism.

    ./quickstart --build-only
    benchmarks/groups/train_groups.py --json groups.json --svg groups.svg

8 ranks, threads of one process, pretend to be 2 hosts of 4. Tables are whole, placed by load, and skewed: the largest has a hundred times the rows of the
smallest, and a sample has 50 times the ids in one that it has in another. All numbers are train_dlrm's own, of its --json: samples a second, bytes that ranks
hold at most, how unevenly they look up, and what look-ups, exchanges and syncs take, on the slowest rank and in the mean. Each number of groups runs with both
placements, and with syncs that overlap with dense work or do not. All runs take turns, --rounds times, and medians are shown: this machine's cores are few, and its
speed drifts.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS, HOSTS = 8, 2
EVEN = 1.02  # an imbalance that samples make: groups see different ones
WAYS = [(1, None), (2, "across"), (2, "inside"), (4, "across"), (4, "inside"), (8, "across")]
ROWS = [(20_000, 2000, 200_000, 50_000, 5000)[t % 5] for t in range(26)]
BAGS = [{2: 100, 7: 40}.get(t, (1, 3)[t % 2]) for t in range(26)]  # ids a sample: at most so many, half of it in the mean


def commas(numbers):
    return ",".join(map(str, numbers))


def train(args, groups, placement, overlap, folder):
    path = os.path.join(folder, "report.json")
    command = [args.trainer, "--ranks", RANKS, "--hosts", HOSTS, "--sharding", "col1", "--order", "tree", "--optimizer", "rowwise_adagrad", "--dim", args.dim,
               "--rows", commas(ROWS), "--bag", commas(BAGS), "--zipf", args.zipf, "--batch", args.batch, "--samples", args.steps * args.batch * RANKS, "--test-samples", 0, "--measure", 4,
               "--bottom", f"128-{args.dim}", "--top", "256-128-1", "--json", path]
    if groups > 1:
        command += ["--groups", groups, "--group-placement", placement, *([] if overlap else ["--no-sync-overlap"])]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    if ran.returncode != 0:
        sys.exit(f"{args.trainer}: {ran.stderr.strip()}")
    with open(path, encoding="utf-8") as file:
        read = json.load(file)
    peak, seconds = read["memory"]["measured"]["peak"]["by_rank"], read["time"]
    out = {"samples_per_second": read["samples_per_second"], "peak_bytes": max(peak), "mean_bytes": statistics.mean(peak),
           "imbalance": read["looked_up_rows"]["max_over_mean"], "time_imbalance": read["imbalance"]}
    for name in ("lookup", "exchange", "replica_sync", "step"):
        for of in ("mean", "max"):
            out[f"{name}_{of}"] = 1e3 * seconds[name][of]
    return out, read["losses"]


def measure(args):
    runs = [(m, placement, overlap) for m, placement in WAYS for overlap in ((True, False) if m > 1 else (True,))]
    measured, losses, begin = {run: [] for run in runs}, {}, time.time()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.rounds):
            for i, run in enumerate(runs):
                out, lost = train(args, *run, folder)
                measured[run].append(out)
                if losses.setdefault(run[:2], lost) != lost:
                    sys.exit(f"{run[0]} groups, {run[1]}, overlap {run[2]}: other losses than the first run of the same groups")
                done = turn * len(runs) + i + 1
                each = (time.time() - begin) / done
                print(f"\r{done} of {args.rounds * len(runs)} runs, {each:.1f} s each, {each * (args.rounds * len(runs) - done) / 60:.1f} min left ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {"setting": {"batch": args.batch, "dim": args.dim, "zipf": args.zipf, "steps": args.steps, "rounds": args.rounds, "rows": ROWS, "bags": BAGS},
            "runs": [{"groups": m, "placement": placement, "overlap": overlap, **{key: [one[key] for one in measured[m, placement, overlap]] for key in measured[m, placement, overlap][0]}}
                     for m, placement, overlap in runs]}


def middle(run, key):
    return statistics.median(run[key])


def overlapped(out):
    return [run for run in out["runs"] if run["overlap"]]


def without(out, run):
    """The same run with syncs that do not overlap."""
    return next(r for r in out["runs"] if (r["groups"], r["placement"], r["overlap"]) == (run["groups"], run["placement"], False))


def markdown(out):
    lines = ["| groups | samples/s | without overlap | peak MB | mean MB | imbalance | look-ups ms | exchange ms | sync ms | without overlap |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for run in overlapped(out):
        several = run["groups"] > 1
        apart = without(out, run) if several else None
        lines.append(f"| {run['groups']}{' ' + run['placement'] if several and run['groups'] < RANKS else ''} | {middle(run, 'samples_per_second'):,.0f} | "
                     f"{format(middle(apart, 'samples_per_second'), ',.0f') if several else ''} | {middle(run, 'peak_bytes') / 1e6:.1f} | {middle(run, 'mean_bytes') / 1e6:.1f} | {middle(run, 'imbalance'):.2f} | "
                     f"{middle(run, 'lookup_max'):.2f} | {middle(run, 'exchange_mean'):.2f} | {middle(run, 'replica_sync_mean'):.2f} | {format(middle(apart, 'replica_sync_mean'), '.2f') if several else ''} |")
    return "\n".join(lines)


def verdicts(out):
    """What the paper leads one to expect, and whether it is so."""
    by_groups = {run["groups"]: run for run in overlapped(out)}
    ways = sorted(by_groups)
    ratios = [middle(by_groups[m], "imbalance") for m in ways]
    lines = [f"imbalance falls with M: {'yes' if all(b < a or b < EVEN for a, b in zip(ratios, ratios[1:])) else 'NO, IT IS NOT SO'} ({', '.join(f'{r:.2f}' for r in ratios)})"]
    for placement in ("across", "inside"):
        runs = [r for r in overlapped(out) if r["groups"] == 1 or r["placement"] == placement or r["groups"] == RANKS]
        times = [middle(r, "exchange_mean") for r in runs]
        lines.append(f"exchanges shrink with M, {placement}: {'yes' if all(a > b for a, b in zip(times, times[1:])) else 'NO, IT IS NOT SO'} ({', '.join(f'{t:.2f}' for t in times)} ms)")
    gains = [middle(r, "samples_per_second") / middle(without(out, r), "samples_per_second") for r in overlapped(out) if r["groups"] > 1]
    lines.append(f"overlap makes steps faster: {'yes' if all(g > 1 for g in gains) else 'NO, IT IS NOT SO'} (samples a second over those without, {', '.join(f'{g:.2f}' for g in gains)})")
    best = max(overlapped(out), key=lambda r: middle(r, "samples_per_second"))
    lines.append(f"most samples a second: {best['groups']} groups{', ' + best['placement'] if best['placement'] else ''}")
    return lines


def draw(out, path):
    import matplotlib
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "shardwise"
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    looks = {"across": {"color": "#1f5fa8", "marker": "o"}, "inside": {"color": "#b3541e", "marker": "s"}}

    def line(axis, placement, key, scale, label, **look):
        runs = [r for r in overlapped(out) if r["groups"] in (1, RANKS) or r["placement"] == placement]
        axis.plot([r["groups"] for r in runs], [middle(r, key) * scale for r in runs], label=label, **{**looks[placement], **look})

    line(axes[0], "across", "peak_bytes", 1e-6, "fullest rank")
    line(axes[0], "across", "mean_bytes", 1e-6, "mean", linestyle="--")
    axes[0].set_title("memory of the embedding layer, MB")
    axes[0].legend(fontsize=8)
    for placement in looks:
        line(axes[1], placement, "exchange_mean", 1, f"exchange, {placement}")
        line(axes[1], placement, "replica_sync_mean", 1, f"sync, {placement}", linestyle="--")
        line(axes[2], placement, "samples_per_second", 1e-3, placement)
    axes[1].set_title("of a step, ms, mean of ranks")
    axes[1].legend(fontsize=8)
    axes[2].set_title("thousand samples/s")
    axes[2].legend(fontsize=8)
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axis.set_xlabel("groups")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", default=os.path.join(ROOT, "build/release/examples/train_dlrm"), metavar="FILE")
    parser.add_argument("--rounds", type=int, default=7, help="turns that each run takes (default 7)")
    parser.add_argument("--steps", type=int, default=60, help="of a run (default 60)")
    parser.add_argument("--batch", type=int, default=128, help="samples a rank and step (default 128)")
    parser.add_argument("--dim", type=int, default=64, help="columns of every table (default 64)")
    parser.add_argument("--zipf", type=float, default=1.05, help="exponent of the power law of ids (default 1.05): the larger, the fewer rows a step touches")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    parser.add_argument("--svg", metavar="FILE", help="draw them (needs matplotlib)")
    parser.add_argument("--read", metavar="FILE", help="train nothing: print or draw what --json wrote")
    args = parser.parse_args()
    if args.rounds < 1 or args.batch < 1 or args.dim < 1 or args.steps < 5:
        parser.error("--rounds, --batch and --dim are at least 1, --steps at least 5")
    if args.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("--svg needs matplotlib: pip install matplotlib, or leave it out")
    if args.read:
        with open(args.read, encoding="utf-8") as file:
            out = json.load(file)
    else:
        out = measure(args)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
    print(markdown(out))
    print()
    for line in verdicts(out):
        print(f"- {line}")
    if args.svg:
        draw(out, args.svg)


if __name__ == "__main__":
    main()
