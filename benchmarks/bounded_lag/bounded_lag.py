#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it brings that ranks may be k batches apart: Figures 7 and 8 of the bounded lag paper, on this machine.

    ./quickstart --build-only
    benchmarks/bounded_lag/bounded_lag.py --data CRITEO.tsv --json lag.json --svg lag.svg

Runs infer_dlrm again and again, with every way to be apart, in random turns, and shows medians over --rounds:

  delays   8 ranks, threads, each late by U(0, 50 ms) before each batch; 200 tiny batches. Milliseconds a batch beside what is computed, against the curve that
           follows from the laws of the protocol alone (a simulation below), and one rank that is always 25 ms late, which nothing masks
  plain    the same ranks without delays, on generated rows: k above 0 costs nothing
  balanced 2 ranks, a core each, batches of 1024, no delays: over k = 0 of the same way, by the fastest twentieth, medians and means of runs (80 rounds tell 2 %)
  skew     look-ups of 1 to 100 ids, drawn for each table, rank and batch: Figure 7, left
  sequences  the same look-ups, the rows of all ids sent home instead of sums
  criteo   rows of --data, no delays: Figure 8
  mpi      processes: ranks in step, slots over messages (a FIFO of k + 1 exchanges), and one-sided slots

All numbers are infer_dlrm's own, of its --json.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LATE = 50.0  # milliseconds at most
WAYS = {"owner": ["--ids", "owner"], "together, thread": ["--progress", "thread"], "together, calls": [], "each, calls": ["--serve", "each"],
        "each, thread": ["--serve", "each", "--progress", "thread"], "owner, messages": ["--ids", "owner", "--transport", "messages"],
        "together, messages": ["--transport", "messages"], "each, messages": ["--serve", "each", "--transport", "messages"]}
SEQUENCES = ["--batches", 20, "--batch", 64, "--skew", 100, "--rows", 20000, "--pooling", "none"]
TINY = ["--rows", 200, "--dim", 4, "--bottom", "4", "--top", "4-1", "--batch", 4]


def simulate(way, k, ranks, batches, seed=1):
    """Milliseconds a batch of ranks whose only work is to be late by U(0, LATE) before each start; messages take no time."""
    dice = random.Random(seed)
    late = [[dice.uniform(0, LATE) for _ in range(batches)] for _ in range(ranks)]
    start = [[None] * batches for _ in range(ranks)]  # when a rank has started its batch
    done = [[None] * batches for _ in range(ranks)]   # and when it has the rows of it
    if way.startswith(("owner", "together, thread")):
        for j in range(batches):
            for p in range(ranks):
                before = max(start[p][j - 1] if j else 0, done[p][j - 1 - k] if j > k else 0)
                start[p][j] = before + late[p][j]
            for p in range(ranks):
                done[p][j] = max(start[q][j] for q in range(ranks))
        # a rank takes rows as it waits for them, not before: batch j - k once it has started batch j
        return statistics.mean(max(start[p][-1], max(done[p])) for p in range(ranks)) / batches
    if way == "each, thread":
        return statistics.mean(sum(row) for row in late) / batches
    # In calls: who computes answers nobody. A rank that is late answers all that is there when it starts, and whenever it waits.
    together = way.startswith("together")
    clock = [0.0] * ranks
    state = [(0, 0, "late")] * ranks  # batches started, finished, and what it does
    until = [late[p][0] for p in range(ranks)]
    asked = [[0] * ranks for _ in range(ranks)]      # [owner][asker]: batches asked for
    answered = [[0] * ranks for _ in range(ranks)]
    end = [None] * ranks

    def answer(owner, now):
        moved = False
        if together:
            while True:
                j = answered[owner][(owner + 1) % ranks]
                if j < state[owner][0] and all(asked[owner][p] > j for p in range(ranks) if p != owner):
                    for p in range(ranks):
                        answered[owner][p] = j + 1
                    moved = True
                else:
                    break
        else:
            for p in range(ranks):
                if p != owner and asked[owner][p] > answered[owner][p]:
                    answered[owner][p] = asked[owner][p]
                    moved = True
        return moved

    while any(e is None for e in end):
        p = min((q for q in range(ranks) if state[q][2] == "late"), key=lambda q: until[q])
        now = until[p]
        started, finished, _ = state[p]
        state[p] = (started + 1, finished, "waits" if started + 1 - finished > k else "again")
        for owner in range(ranks):
            asked[owner][p] = started + 1
        moved = True
        while moved:  # whoever is in a call goes on
            moved = False
            for q in range(ranks):
                if state[q][2] == "late":
                    continue
                moved |= answer(q, now)
                s, f, what = state[q]
                has = min(answered[o][q] for o in range(ranks) if o != q)
                last = s == batches
                if what == "waits" and has > f:
                    f += 1
                    moved = True
                    what = "again"
                if what == "again":
                    if last and f == batches:
                        end[q] = now if end[q] is None else end[q]
                        what = "drains"
                    elif last or s - f > k:
                        what = "waits"
                    else:
                        what = "late"
                        until[q] = now + late[q][s]
                state[q] = (s, f, what)
    return statistics.mean(end) / batches


def infer(args, flags, ranks, mpi, folder):
    path = os.path.join(folder, "report.json")
    command = [args.program, *([] if mpi else ["--ranks", ranks]), *flags, "--json", path]
    if mpi:
        command = [args.mpiexec, "-np", ranks, *command]
    sys.path.insert(0, os.path.join(ROOT, "tests"))
    import mpi_launch
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=mpi_launch.environment(OPENBLAS_NUM_THREADS="1"))
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {ran.stderr.strip()}")
    with open(path, encoding="utf-8") as file:
        read = json.load(file)
    return {"iteration_ms": read["iteration_ms"]["mean"], "delay_ms": read["delay_ms_per_batch"]["mean"], "throughput": read["throughput"]["mean"],
            "lag_max": read["lag_max"], "slots": max(rank["memory"]["slots"] for rank in read["by_rank"])}


def cuts(args):
    """(cut, way, k, flags, ranks, mpi, rounds) of all runs."""
    runs = []
    ks = args.k
    data = ["--data", args.data] if args.data else []
    medium = ["--batch", 256, "--runs", 3, "--warmup", 5, "--dim", 16]
    for k in ks:
        for way, flags in WAYS.items():
            runs.append(("delays", way, k, [*TINY, "--batches", 200, "--runs", 1, "--warmup", 1, "--delay", f"uniform:0:{LATE:.0f}ms", "--bound", k, *flags], 8, False, 1))
        for way in ("owner", "together, thread"):
            runs.append(("straggler", way, k, [*TINY, "--batches", 60, "--runs", 1, "--warmup", 1, "--delay", "constant:25ms@3", "--bound", k, *WAYS[way]], 8, False, 1))
            if k <= 2:
                runs.append(("exponential", way, k, [*TINY, "--batches", 200, "--runs", 1, "--warmup", 1, "--delay", "exponential:10ms", "--bound", k, *WAYS[way]], 8, False, 1))
        for way, flags in WAYS.items():
            if "thread" in way and way != "together, thread":
                continue
            runs.append(("plain", way, k, [*medium, "--batches", 60, "--bound", k, *flags], args.ranks, False, args.rounds))
            runs.append(("skew", way, k, [*medium, "--batches", 20, "--skew", 100, "--rows", 20000, "--bound", k, *flags], args.ranks, False, args.rounds))
            if "messages" not in way:
                runs.append(("balanced", way, k, ["--batch", 1024, "--batches", 100, "--warmup", 20, "--runs", 1, "--bound", k, *flags], 2, False, args.rounds))
            if "owner" not in way:
                runs.append(("sequences", way, k, [*medium, *SEQUENCES, "--bound", k, *flags], args.ranks, False, args.rounds))
            if data:
                runs.append(("criteo", way, k, [*medium, *data, "--batch", 64, "--rows", 10000, "--bound", k, *flags], args.ranks, False, args.rounds))
        for way, flags in {"one-sided": ["--ids", "owner"], "a FIFO of messages": ["--ids", "owner", "--transport", "messages"],
                           "windows": ["--ids", "owner", "--hosts", args.mpi_ranks], "in step": ["--ids", "owner", "--transport", "rounds"]}.items():
            if args.mpiexec and (k == 0 or way != "in step"):
                runs.append(("mpi", way, k, [*medium, "--batches", 60, *([] if way == "windows" else ["--hosts", 1]), "--bound", k, *flags], args.mpi_ranks, True, args.rounds))
    for cut in ("plain", "skew", "sequences", "criteo"):
        if cut != "criteo" or data:
            extra = {"plain": ["--batches", 60], "skew": ["--batches", 20, "--skew", 100, "--rows", 20000], "sequences": SEQUENCES,
                     "criteo": [*data, "--batch", 64, "--rows", 10000]}[cut]
            runs.append((cut, "in step", 0, [*medium, *extra, "--transport", "rounds"], args.ranks, False, args.rounds))
    return [run for run in runs if run[0] in args.only]


def measure(args):
    runs = cuts(args)
    out = {}
    for cut, way, *_ in runs:
        out.setdefault(cut, {}).setdefault(way, {})
    begin, done, all_runs = time.time(), 0, sum(run[6] for run in runs)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(max(run[6] for run in runs)):
            for cut, way, k, flags, ranks, mpi, rounds in random.sample(runs, len(runs)):
                if turn >= rounds:
                    continue
                got = infer(args, flags, ranks, mpi, folder)
                out[cut][way].setdefault(str(k), []).append(got)
                done += 1
                each = (time.time() - begin) / done
                print(f"\r{done} of {all_runs} runs, {each:.1f} s each, {each * (all_runs - done) / 60:.1f} min left ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {"setting": {"ranks": args.ranks, "mpi_ranks": args.mpi_ranks, "rounds": args.rounds, "late_ms": LATE, "data": bool(args.data)}, "cuts": out}


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def average(runs, key):
    return statistics.mean(run[key] for run in runs)


def quick(runs, key):
    """A twentieth of the runs is as fast: of those that nothing else on the machine disturbs."""
    return sorted(run[key] for run in runs)[(len(runs) - 1) // 20]


def curve(way, k):
    """Of the protocol alone, the mean of three seeds."""
    return statistics.mean(simulate(way.replace("messages", "calls").replace("owner, calls", "owner"), k, 8, 1000, seed) for seed in (1, 2, 3))


def markdown(out):
    lines = []
    for cut, ways in out["cuts"].items():
        ks = sorted({int(k) for by_k in ways.values() for k in by_k})
        key = {"delays": "delay_ms", "straggler": "delay_ms", "exponential": "delay_ms"}.get(cut, "iteration_ms")
        base = middle(ways["in step"]["0"], key) if "in step" in ways else None
        lines += ["", f"### {cut}", "", "| | " + " | ".join(f"k = {k}" for k in ks) + " |", "| --- |" + " ---: |" * len(ks)]
        for way, by_k in ways.items():
            cells = []
            for k in ks:
                if str(k) not in by_k:
                    cells.append("")
                    continue
                ms = middle(by_k[str(k)], key)
                note = ""
                if cut == "delays":
                    note = f" ({ms / curve(way, k):.2f})"
                elif cut == "balanced" and k != 0 and "0" in by_k:
                    over = [of(by_k[str(k)], key) / of(by_k["0"], key) for of in (quick, middle, average)]
                    note = f" ({', '.join(f'{ratio:.2f}' for ratio in over)})"
                elif base is not None and way != "in step":
                    note = f" ({ms / base:.2f})"
                cells.append(f"{ms:.2f}{note}" if ms >= 10 else f"{ms:.3f}{note}")
            lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(out, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    plt.rcParams |= {"svg.hashsalt": "shardwise", "svg.fonttype": "none", "font.size": 9}
    colors = dict(zip(WAYS, ["#0b5fa5", "#2b8a3e", "#d9480f", "#862e9c", "#c2255c", "#4da3e0", "#e8a36b", "#b98bd0"]))
    panels = [cut for cut in ("delays", "skew", "sequences", "criteo") if cut in out["cuts"]]
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4), facecolor="white", squeeze=False)
    titles = {"delays": "ranks late by U(0, 50 ms):\nms a batch, beside computing", "skew": "1 to 100 ids, by table, rank and batch:\nms a batch over that in step",
              "sequences": "the same, rows sent one by one:\nms a batch over that in step", "criteo": "rows of Criteo, no delays:\nms a batch over that in step"}
    for axis, cut in zip(axes[0], panels):
        ways = out["cuts"][cut]
        base = 1 if cut == "delays" else middle(ways["in step"]["0"], "iteration_ms")
        for way, by_k in ways.items():
            if way == "in step":
                continue
            ks = sorted(map(int, by_k))
            key = "delay_ms" if cut == "delays" else "iteration_ms"
            axis.plot(ks, [middle(by_k[str(k)], key) / base for k in ks], marker="o", markersize=4, color=colors[way], label=way, linestyle="--" if "messages" in way else "-")
        if cut == "delays":
            for way, text in (("owner", "the protocol alone"), ("together, calls", None), ("each, calls", None)):
                ks = range(0, 9)
                axis.plot(ks, [curve(way, k) for k in ks], color="#999999", linewidth=4, alpha=0.35, zorder=0, label=text)
            axis.axhline(LATE / 2, color="#999999", linewidth=1, linestyle=":")
            axis.set_ylim(bottom=0)
        else:
            axis.axhline(1, color="#999999", linewidth=1, linestyle=":")
            axis.set_ylim(0, 1.5)
        axis.set_title(titles[cut], fontsize=9)
        axis.set_xlabel("k, batches that ranks may be apart")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/examples/infer_dlrm"), help="infer_dlrm of a release build")
    parser.add_argument("--mpiexec", default="mpiexec", help="empty: no processes")
    parser.add_argument("--data", help="file of Criteo's form")
    parser.add_argument("--only", nargs="+", default=["delays", "straggler", "exponential", "plain", "balanced", "skew", "sequences", "criteo", "mpi"], help="cuts")
    parser.add_argument("--k", nargs="+", type=int, default=[0, 1, 2, 4, 8])
    parser.add_argument("--ranks", type=int, default=4, help="of plain, skew, sequences and criteo (default: %(default)s)")
    parser.add_argument("--mpi-ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", nargs="+", metavar="FILE", help="show what was measured before, and run nothing; several files are put together")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    args = parser.parse_args()
    if args.read:
        out = None
        for path in args.read:
            with open(path, encoding="utf-8") as file:
                read = json.load(file)
            out = read if out is None else {**out, "cuts": {**out["cuts"], **read["cuts"]}}
    else:
        out = measure(args)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
    if args.svg:
        draw(out, args.svg)
    print(markdown(out))


if __name__ == "__main__":
    main()
