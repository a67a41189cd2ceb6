#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulates exchanges and syncs of replica groups on clusters of 8 GPUs a host, and prints what two-dimensional sparse parallelism shows in its
Figure 2 (exchanges and activations grow with the GPUs), Table 2 and Figure 7 (groups of a fixed size do not), and section 5 (syncs inside hosts).

    cmake --preset simgrid && cmake --build --preset simgrid --target exchange_schedule replay_smpi plan_groups
    benchmarks/cluster/groups.py --json groups.json --svg groups.svg

exchange_schedule writes the rounds of a step in expectation, those of the sync last, and replay sends them over SimGrid's SMPI, one partner after the other.
plan_groups says what a GPU holds and how even look-ups are. Tables are cut into four blocks of columns, placed by load, with look-ups that differ between tables by
up to 20 times. A step is look-ups at --lookup-rate on the GPU with the most, exchanges and syncs, one after the other, and --compute.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import sweep

GROUP = 16  # GPUs of a group


def laws(args):
    """A table each: rows, power law, look-ups a sample."""
    tables = [(200_000 * (1 + t % 5), args.lookups * (1, 2, 3, 20, 5, 1, 8, 1)[t % 8]) for t in range(args.tables)]
    return [word for rows, lookups in tables for word in ("--law", f"zipf:{rows}:{args.zipf}:{lookups}")]


def run(command):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{command[0]}: {ran.stderr.strip()}")
    return ran.stdout


def measure(args, folder, hosts, groups, placement="across"):
    """Of one number of groups."""
    cluster = sweep.CLUSTERS[args.cluster]
    path, plan = os.path.join(folder, "schedule"), os.path.join(folder, "plan.json")
    cut = ["--groups", groups, *(["--group-placement", placement, "--sync-every", args.sync_every] if groups > 1 else [])]
    shape = [*laws(args), "--hosts", hosts, "--ranks-per-host", sweep.RANKS_A_HOST, "--batch", args.batch, "--dim", args.dim, "--sharding", args.sharding]
    schedule = json.loads(run([os.path.join(args.build, "benchmarks/exchange_schedule"), *shape, *cut, "--out", path]))
    us = sweep.simulate(args.build, folder, cluster, hosts, path, "pair", 0.0, 0)
    run([os.path.join(args.build, "examples/plan_groups"), *shape, *cut, "--optimizer", "sgd", "--lookup-rate", args.lookup_rate, "--other-memory", args.other_memory,
         "--host-bandwidth", cluster["host"], "--cross-bandwidth", cluster["cross_host"], "--memory", args.memory, "--compute", args.compute, "--json", plan])
    with open(plan, encoding="utf-8") as file:
        choice = next(c for c in json.load(file)["choices"] if c["groups"] == groups)
    ranks = hosts * sweep.RANKS_A_HOST
    exchange, sync = (1e-3 * sum(t for kind, t in us.items() if kind.startswith("sync_") == of) for of in (False, True))
    exchange -= 1e-3 * us.get("reduction", 0)
    sync /= args.sync_every  # a step
    lookup = 1e3 * choice["seconds"]["lookup"]
    step = args.compute + lookup + exchange + sync
    return {"ranks": ranks, "groups": groups, "placement": placement if groups > 1 else None, "exchange_ms": exchange, "sync_ms": sync, "lookup_ms": lookup, "imbalance": choice["imbalance"],
            "step_ms": step, "memory": choice["memory"], "fits": choice["fits"], "samples_per_second": 1e3 * args.batch * ranks / step,
            "megabytes": {link: sum(r[link]["payload"] for r in schedule["rounds"]) / ranks / 1e6 for link in ("host", "cross_host")}}


def markdown(out):
    lines = ["| GPUs | | exchange ms | sync ms | look-ups ms | imbalance | activations MB | tables MB | peak MB | fits | samples/s | scaling factor |",
             "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |"]
    for name, title in (("full", "all GPUs"), ("fixed", f"groups of {GROUP}")):
        first = out[name][0]
        for r in out[name]:
            factor = r["samples_per_second"] / first["samples_per_second"] * first["ranks"] / r["ranks"]
            lines.append(f"| {r['ranks']} | {title} | {r['exchange_ms']:.2f} | {r['sync_ms']:.2f} | {r['lookup_ms']:.2f} | {r['imbalance']:.2f} | {r['memory']['flights'] / 1e6:.0f} "
                         f"| {r['memory']['tables'] / 1e6:.0f} | {r['memory']['peak'] / 1e6:.0f} | {'yes' if r['fits'] else 'no'} | {r['samples_per_second']:,.0f} | {100 * factor:.0f} % |")
    lines += ["", "| GPUs | groups | copies on | sync ms | across hosts over inside | exchange ms |", "| ---: | ---: | --- | ---: | ---: | ---: |"]
    across = {(r["ranks"], r["groups"]): r["sync_ms"] for r in out["syncs"] if r["placement"] == "across"}
    for r in out["syncs"]:
        times = f"{across[r['ranks'], r['groups']] / r['sync_ms']:.1f}" if r["placement"] == "inside" else ""
        lines.append(f"| {r['ranks']} | {r['groups']} | {'one host' if r['placement'] == 'inside' else 'several hosts'} | {r['sync_ms']:.2f} | {times} | {r['exchange_ms']:.2f} |")
    return "\n".join(lines)


def draw(out, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 3, figsize=(12.6, 3.9))
    looks = {"full": ("all GPUs", "#b3541e", "s"), "fixed": (f"groups of {GROUP}", "#1f5fa8", "o")}
    for axis, key, title in ((axes[0], lambda r: r["exchange_ms"], "exchange of a step, ms"), (axes[1], lambda r: r["memory"]["flights"] / 1e6, "activations of the fullest GPU, MB"),
                             (axes[2], lambda r: r["samples_per_second"] / 1e6, "million samples/s")):
        for name, (label, color, marker) in looks.items():
            axis.plot([r["ranks"] for r in out[name]], [key(r) for r in out[name]], color=color, marker=marker, label=label)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("GPUs")
        axis.set_xscale("log", base=2)
        axis.set_xticks([r["ranks"] for r in out["full"]], [str(r["ranks"]) for r in out["full"]])
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    first = out["fixed"][0]
    axes[2].plot([r["ranks"] for r in out["fixed"]], [first["samples_per_second"] * r["ranks"] / first["ranks"] / 1e6 for r in out["fixed"]], color="#888888", linestyle="--", label="linear")
    for r in out["full"]:
        if not r["fits"]:
            axes[2].annotate("does not fit", (r["ranks"], r["samples_per_second"] / 1e6), fontsize=8, color="#b3541e", ha="right", va="top", xytext=(0, -30), textcoords="offset points")
    axes[2].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4, 8, 16], help="hosts of 8 GPUs (default 2 4 8 16)")
    parser.add_argument("--cluster", choices=list(sweep.CLUSTERS), default="A100")
    parser.add_argument("--batch", type=int, default=1152, help="samples a GPU (default 1152)")
    parser.add_argument("--tables", type=int, default=32, help="of 200,000 to a million rows (default 32)")
    parser.add_argument("--lookups", type=int, default=40, help="of a sample in each table, times 1 to 20 (default 40)")
    parser.add_argument("--zipf", type=float, default=1.2, help="exponent of the power law of ids (default 1.2)")
    parser.add_argument("--sharding", default="col4", help="of the tables (default col4)")
    parser.add_argument("--sync-every", type=int, default=4, help="steps (default 4)")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--lookup-rate", type=float, default=200.0, metavar="GB/s", help="of rows that a GPU looks up and updates")
    parser.add_argument("--compute", type=float, default=300.0, metavar="MS", help="of a step beside the embedding layer")
    parser.add_argument("--memory", type=float, default=3.0, metavar="GB", help="that a GPU has")
    parser.add_argument("--other-memory", type=float, default=0.0, metavar="GB", help="of it, beside the embedding layer")
    parser.add_argument("--build", default=os.path.join(sweep.ROOT, "build/simgrid"), metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    parser.add_argument("--svg", metavar="FILE", help="draw them (needs matplotlib)")
    parser.add_argument("--read", metavar="FILE", help="simulate nothing: print or draw what --json wrote")
    args = parser.parse_args()
    for hosts in args.hosts:
        if hosts < 2 or hosts * sweep.RANKS_A_HOST % GROUP != 0:
            parser.error(f"--hosts {hosts}: groups are of {GROUP} GPUs, so give multiples of {GROUP // sweep.RANKS_A_HOST}")
    if args.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("--svg needs matplotlib: pip install matplotlib, or leave it out")
    if args.read:
        with open(args.read, encoding="utf-8") as file:
            out = json.load(file)
    else:
        out = {"full": [], "fixed": [], "syncs": []}
        turns = [("full", h, 1, "across") for h in args.hosts] + [("fixed", h, h * sweep.RANKS_A_HOST // GROUP, "across") for h in args.hosts]
        turns += [("syncs", args.hosts[-1], m, placement) for m in (2, 4, 8) for placement in ("across", "inside")]
        begin = time.time()
        with tempfile.TemporaryDirectory() as folder:
            for i, (name, hosts, groups, placement) in enumerate(turns):
                print(f"{name}: {hosts} hosts, {groups} groups ({i} of {len(turns)} done, {time.time() - begin:.0f} s)", file=sys.stderr, flush=True)
                out[name].append(measure(args, folder, hosts, groups, placement))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
    print(markdown(out))
    if args.svg:
        draw(out, args.svg)


if __name__ == "__main__":
    main()
