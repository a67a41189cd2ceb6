#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What replica groups do to the normalized entropy (NE), on generated clicks: Figure 4 of two-dimensional sparse parallelism.

    ./quickstart --build-only
    benchmarks/quality/groups_study.py --json study.json --svg study.svg

1. The learning rate is tuned for one group, on seeds of its own: rates a factor of sqrt 2 apart, until the best is not at an end.
2. M = 4, 8 and 16 groups against one, with the same rate, the same global batches and the same initial weights: NE gaps in percent of the
   NE of one group, mean and 95 % interval over paired seeds (each seed has data of its own), against samples seen with c = 1 (4a),
   against c in {1, sqrt M, M/2, M} (4b), and against the steps n from one sync to the next with c = M.
3. What is expected, and whether it is so: c = 1 is worse than c = M (exact sign-flip test of the pairs, p < 0.05), the interval at
   c = M lies within 0.1 %, and the gap at c = 1 grows with M.

Samples are seen once: a run of fewer samples is the beginning of a longer one, saved, tested and gone on from.
"""

import argparse
import importlib.util
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

RANKS = 16
GROUPS = [4, 8, 16]
EVERY = [1, 4, 16, 64]
CLOSE = 0.1  # percent
LEVEL = 0.05
FIRST_TUNING_SEED = 1001
RATES = [0.028, 0.04, 0.056]
RATE_STEP = math.sqrt(2)
# The first steps of AdaGrad are as large as the rate, whatever the gradient: without a ramp they harm one group more than many.
MODEL = ["--sharding", "table", "--order", "tree", "--optimizer", "rowwise_adagrad", "--dim", "4", "--bottom", "32-4", "--top", "64-1",
         "--rows", "500", "--zipf", "0.5", "--lr-warmup", "64", "--measure", "0"]
# Student's t, 0.975, of 1, 2, ... degrees of freedom
QUANTILES = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314]
MOST_SEEDS = len(QUANTILES) + 1


def scales(groups):
    """The values of c: 1, sqrt M, M/2, M."""
    return sorted({1.0, math.sqrt(groups), groups / 2, float(groups)})


def gaps(ours, base):
    """Percent of the base, seed by seed."""
    return [100 * (a - b) / b for a, b in zip(ours, base, strict=True)]


def interval(values):
    """Mean, and half the width of its 95 % interval."""
    return statistics.mean(values), QUANTILES[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))


def sign_flip(differences):
    """Two-sided p of the exact test of pairs: how often signs by chance give a sum as far from 0."""
    found = abs(math.fsum(differences))
    near = 1e-12 * math.fsum(map(abs, differences))
    far = sum(abs(math.fsum(s * d for s, d in zip(signs, differences))) >= found - near
              for signs in itertools.product((1, -1), repeat=len(differences)))
    return far / 2 ** len(differences)


class Study:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.done, self.total, self.begin = 0, 1, time.time()

    def train(self, seed, rate, groups=1, scale=1.0, every=1, stops=None):
        """The test's NE after each of the numbers of steps."""
        args, out = self.args, []
        report, model = (os.path.join(self.folder, name) for name in ("report.json", "model.safetensors"))
        stops = stops or [args.stops[-1]]
        for i, stop in enumerate(stops):
            command = [args.trainer, "--ranks", str(RANKS), "--hosts", str(RANKS), "--batch", str(args.batch), "--samples",
                       str(args.samples), "--test-samples", str(args.test_samples), "--seed", str(seed), "--learning-rate",
                       repr(rate), "--steps", str(stop), "--json", report, *MODEL]
            if groups > 1:
                command += ["--groups", str(groups), "--moment-scale", repr(scale), "--sync-every", str(every)]
            if i > 0:
                command += ["--load", model]
            if i + 1 < len(stops):
                command += ["--save", model]
            ran = subprocess.run(command, capture_output=True, text=True, check=False,
                                 env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
            if ran.returncode != 0:
                sys.exit(f"{' '.join(command)}: {ran.stderr}")
            with open(report, encoding="utf-8") as file:
                read = json.load(file)
            if read["quality_of"] != "test" or read["steps"] != stop:
                sys.exit(f"{' '.join(command)}: {read['steps']} steps, quality of {read['quality_of']}")
            out.append(read["ne"])
        self.done += 1
        each = (time.time() - self.begin) / self.done
        print(f"\r{self.done} of {self.total} trainings, {each:.1f} s each, {each * (self.total - self.done) / 60:.0f} min left ",
              end="", file=sys.stderr, flush=True)
        return out

    def keep(self, out):
        """Writes what there is so far to --json: hours of training do not hang on the last one."""
        if self.args.json:
            with open(self.args.json + ".part", "w", encoding="utf-8") as file:
                json.dump(out, file, indent=1)
            os.replace(self.args.json + ".part", self.args.json)


def tune(train, seeds, rates):
    """All rates tried with their NE, and the best: higher and lower ones until the best is not at an end."""
    tried = {}
    rates = list(rates)
    while True:
        for rate in rates:
            tried[rate] = [train(seed, rate)[-1] for seed in seeds]
        order = sorted(tried)
        best = min(order, key=lambda rate: statistics.mean(tried[rate]))
        if order[0] < best < order[-1] or len(tried) >= 10:
            return [{"rate": rate, "ne": tried[rate]} for rate in order], best
        rates = [best / RATE_STEP if best == order[0] else best * RATE_STEP]


def study(args, folder):
    runs = [(1, 1.0, 1)]
    for groups in GROUPS:
        runs += [(groups, scale, 1) for scale in scales(groups)]
        runs += [(groups, float(groups), every) for every in EVERY if every > 1]
    it = Study(args, folder)
    tuning = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + args.tuning_seeds)
    it.total = len(runs) * args.seeds + (0 if args.rate else len(RATES) * args.tuning_seeds)
    tried, rate = ([], args.rate) if args.rate else tune(it.train, tuning, RATES)
    it.total = len(runs) * args.seeds + it.done
    by_run = {run: [] for run in runs}

    def all_of(seeds):
        return {"setting": {"ranks": RANKS, "batch": args.batch, "samples": args.samples, "test_samples": args.test_samples,
                            "stops": args.stops, "seeds": seeds, "rate": rate, "model": MODEL,
                            "seconds": round(time.time() - it.begin)},
                "rates": tried,
                "runs": [{"groups": g, "scale": c, "every": n, "ne": ne} for (g, c, n), ne in by_run.items()]}

    for seed in range(1, args.seeds + 1):
        for run in runs:
            by_run[run].append(it.train(seed, rate, *run, stops=args.stops if run[1:] == (1.0, 1) else None))
        it.keep(all_of(seed))
    print(file=sys.stderr)
    return all_of(args.seeds)


class Results:
    """Gaps to one group by what was run."""

    def __init__(self, out):
        self.setting, self.rates = out["setting"], out["rates"]
        self.runs = {(r["groups"], r["scale"], r["every"]): r["ne"] for r in out["runs"]}

    def ne(self, groups, scale, every=1, stop=-1):
        return [ne[stop] for ne in self.runs[groups, scale, every]]

    def gap(self, groups, scale, every=1, stop=-1):
        return gaps(self.ne(groups, scale, every, stop), self.ne(1, 1.0, 1, stop))

    def samples(self):
        return [stop * self.setting["batch"] * self.setting["ranks"] for stop in self.setting["stops"]]


def shown(values):
    mean, half = interval(values)
    return f"{mean:+.3f} ± {half:.3f}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join(["---:"] * len(head)) + " |",
                      *("| " + " | ".join(row) + " |" for row in rows)])


def verdicts(results):
    """What is expected, and whether it is so."""
    lines = []
    for m in GROUPS:
        more = [a - b for a, b in zip(results.gap(m, 1.0), results.gap(m, float(m)))]
        p, mean = sign_flip(more), statistics.mean(more)
        so = mean > 0 and p < LEVEL
        lines.append(f"c = 1 is worse than c = M, M = {m}: {'yes' if so else 'NO, IT IS NOT SO'} "
                     f"({shown(more)} %, p = {p:.4f})")
    for m in GROUPS:
        mean, half = interval(results.gap(m, float(m)))
        so = -CLOSE <= mean - half and mean + half <= CLOSE
        lines.append(f"the interval at c = M is within {CLOSE} %, M = {m}: {'yes' if so else 'NO, IT IS NOT SO'} "
                     f"({mean - half:+.3f} to {mean + half:+.3f} %)")
    means = [statistics.mean(results.gap(m, 1.0)) for m in GROUPS]
    steps = []
    for a, b in zip(GROUPS, GROUPS[1:]):
        more = [y - x for x, y in zip(results.gap(a, 1.0), results.gap(b, 1.0))]
        steps.append(f"{a} to {b}: {shown(more)} %, p = {sign_flip(more):.4f}")
    so = all(a < b for a, b in zip(means, means[1:]))
    lines.append(f"the gap at c = 1 grows with M: {'yes' if so else 'NO, IT IS NOT SO'} ({'; '.join(steps)})")
    return lines


def report(results):
    s = results.setting
    print(f"{s['seeds']} paired seeds, rate {s['rate']:.3g}, {s['samples']} samples, {s['batch'] * s['ranks']} a step, of all ranks. NE gap to "
          f"one group in percent, mean and 95 % interval. NE of one group: {statistics.mean(results.ne(1, 1.0)):.4f} "
          f"(deviation over seeds {statistics.stdev(results.ne(1, 1.0)):.4f}).")
    if results.rates:
        print("\nThe rate, tuned for one group on other seeds:\n")
        print(table(["rate", "NE, mean"], [[f"{r['rate']:.3g}", f"{statistics.mean(r['ne']):.4f}"] for r in results.rates]))
    print("\nAgainst samples seen, c = 1 (4a):\n")
    print(table(["samples", *(f"M = {m}" for m in GROUPS)],
                [[str(n), *(shown(results.gap(m, 1.0, 1, i)) for m in GROUPS)] for i, n in enumerate(results.samples())]))
    print("\nAgainst c (4b):\n")
    print(table(["M", "c = 1", "c = sqrt M", "c = M/2", "c = M"],
                [[str(m), *(shown(results.gap(m, c)) for c in (1.0, math.sqrt(m), m / 2, float(m)))] for m in GROUPS]))
    print("\nAgainst n, steps from one sync to the next, c = M:\n")
    print(table(["M", *(f"n = {n}" for n in EVERY)],
                [[str(m), *(shown(results.gap(m, float(m), n)) for n in EVERY)] for m in GROUPS]))
    print()
    for line in verdicts(results):
        print(f"- {line}")


def draw(results, path):
    import matplotlib
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "shardwise"
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2))
    looks = dict(zip(GROUPS, (("#4da3e0", "o"), ("#0b5fa5", "s"), ("#d9480f", "^"))))

    def plot(axis, m, xs, values):
        color, marker = looks[m]
        means, halves = zip(*(interval(v) for v in values))
        axis.errorbar(xs, means, yerr=halves, color=color, marker=marker, capsize=3, label=f"{m} groups")

    for m in GROUPS:
        plot(axes[0], m, results.samples(), [results.gap(m, 1.0, 1, i) for i in range(len(results.samples()))])
        plot(axes[1], m, scales(m), [results.gap(m, c) for c in scales(m)])
        plot(axes[2], m, EVERY, [results.gap(m, float(m), n) for n in EVERY])
    for axis, title, label in zip(axes, ("c = 1, a sync each step", "a sync each step", "c = M"),
                                  ("samples seen", "c", "n, steps from one sync to the next")):
        axis.axhspan(-CLOSE, CLOSE, color="#888888", alpha=0.2, lw=0)
        axis.axhline(0, color="#888888", lw=0.8)
        axis.set_title(title)
        axis.set_xlabel(label)
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
    for axis, ticks in zip(axes, (results.samples(), [1, 2, 4, 8, 16], EVERY)):
        axis.set_xticks(ticks, [str(t) for t in ticks])
    axes[0].set_ylabel("NE gap to one group, %, and 95 % interval")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", default=os.path.join(ROOT, "build/release/examples/train_dlrm"), metavar="FILE")
    parser.add_argument("--seeds", type=int, default=9, help=f"2 to {MOST_SEEDS}")
    parser.add_argument("--samples", type=int, default=1048576, help="to train on, each once")
    parser.add_argument("--test-samples", type=int, default=65536)
    parser.add_argument("--batch", type=int, default=64, help="samples a rank and step")
    parser.add_argument("--rate", type=float, help="learning rate; unless given, it is tuned")
    parser.add_argument("--tuning-seeds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write all numbers there, after each seed")
    parser.add_argument("--svg", metavar="FILE", help="draw the gaps (needs matplotlib)")
    parser.add_argument("--read", metavar="FILE", help="train nothing: print or draw what --json wrote")
    args = parser.parse_args()
    if args.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("--svg needs matplotlib: pip install matplotlib, or leave it out")
    if not 2 <= args.seeds <= MOST_SEEDS:
        parser.error(f"--seeds {args.seeds}: 2 to {MOST_SEEDS}")
    if args.tuning_seeds < 1 or args.batch < 1 or args.test_samples < 1:
        parser.error("--tuning-seeds, --batch and --test-samples are at least 1")
    steps = args.samples // (args.batch * RANKS)
    if steps < 8:
        parser.error(f"--samples {args.samples}: at least 8 steps of {args.batch * RANKS}")
    args.stops = [steps // 8, steps // 4, steps // 2, steps]
    if args.read:
        with open(args.read, encoding="utf-8") as file:
            out = json.load(file)
    else:
        with tempfile.TemporaryDirectory() as folder:
            out = study(args, folder)
    results = Results(out)
    report(results)
    if args.svg:
        draw(results, args.svg)


if __name__ == "__main__":
    main()
