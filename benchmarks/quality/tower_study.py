#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What towers and their modules do to the AUC, on generated clicks whose features belong together in groups.

    ./quickstart --build-only
    benchmarks/quality/tower_study.py --json study.json

1. partition_towers says which features live together, once for each number of towers.
2. DLRM (Dot, one vector a feature) and DCN (Cross, one vector a tower) with 2, 4, 8 and 13 towers and modules that compress 2, 4, 8
   and 16 times: median and deviation of the AUC over the seeds of the weights, beside the models without towers.
3. The partitioner's towers against feature modulo towers, where modules see a tower as a whole: AUC of the same seeds, and p of a
   two-sided Mann-Whitney test.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from functools import lru_cache

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

FEATURES = 26
DIM = 16
TOWERS = [2, 4, 8, 13]
COMPRESSIONS = [2, 4, 8, 16]
GLOBAL_BATCH = 512  # samples of all ranks in a step; 13 towers: 507
DATA = ["--feature-groups", "4", "--data-seed", "1", "--rows", "30", "--zipf", "0.2"]
COMMON = ["--sharding", "table", "--order", "tree", "--optimizer", "adam", "--learning-rate", "0.01", "--dim", str(DIM),
          "--test-samples", "32768", "--top", "128-64-1"]


class Study:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.done, self.total, self.begin = 0, 1, time.time()

    def program(self, name):
        return os.path.join(self.args.build, "examples", name)

    def run(self, command):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)}: {ran.stderr}")

    def towers(self, count):
        """The partitioner's tower file."""
        path = os.path.join(self.folder, f"towers{count}.json")
        if not os.path.exists(path):
            self.run([self.program("partition_towers"), "--towers", str(count), "--strategy", "coherent", "--ratio", "1",
                      "--batch", "256", "--steps", "1000", "--samples", "524288", "--seed", "1", "--dim", str(DIM),
                      "--learning-rate", "0.01", *DATA, "--out", path,
                      "--svg", os.path.join(self.folder, "towers.svg")])
        return path

    def train(self, model, seed, towers=None, more=()):
        """The program's report."""
        path = os.path.join(self.folder, "report.json")
        ranks = 2 if towers is None else towers[0]
        command = [self.program(f"train_{model}"), "--ranks", str(ranks), "--hosts", str(ranks), "--batch",
                   str(GLOBAL_BATCH // ranks), "--samples", str(self.args.samples), "--epochs", str(self.args.epochs), "--seed",
                   str(seed), "--measure", "0", "--json", path, *COMMON, *DATA, *more]
        if model == "dcn":
            command += ["--cross-layers", "2", "--cross-rank", "16"]
        if towers is not None:
            command += ["--collective", "hierarchical", "--towers", towers[1]]
        self.run(command)
        self.done += 1
        rate = (time.time() - self.begin) / self.done
        print(f"\r{self.done} of {self.total} trainings, {rate:.1f} s each, {rate * (self.total - self.done) / 60:.0f} min left ",
              end="", file=sys.stderr, flush=True)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def module(model, towers, compression):
    """Options of the modules: DLRM keeps a vector a feature, DCN makes one a tower."""
    if model == "dlrm":
        return ["--tower", "dot", "--tower-c", "1", "--tower-dim", str(DIM // compression)]
    return whole_tower("cross", towers, compression)


def whole_tower(kind, towers, compression):
    """One vector a tower, four with Dot: linear maps, whose products the model makes of two vectors."""
    vectors = 4 if kind == "dot" else 1
    width = max(1, round(FEATURES * DIM / towers / compression / vectors))
    return ["--tower", kind, "--tower-p", str(vectors), "--tower-dim", str(width)]


def mann_whitney(a, b):
    """Two-sided p of the exact test: how often a split of all ranks is as far from even as this one."""
    u = sum((x > y) + 0.5 * (x == y) for x in a for y in b)

    @lru_cache(maxsize=None)
    def ways(n, m, sum_):  # of n values above and m below, with so many pairs in order
        if sum_ < 0 or n < 0 or m < 0:
            return 0
        if n == 0 or m == 0:
            return int(sum_ == 0)
        return ways(n - 1, m, sum_ - m) + ways(n, m - 1, sum_)

    n, m = len(a), len(b)
    far = min(u, n * m - u)
    total = sum(ways(n, m, s) for s in range(n * m + 1))
    return min(1.0, float(2 * Fraction(sum(ways(n, m, s) for s in range(int(far) + 1)), total)))


def line(name, reports):
    aucs = [r["auc"] for r in reports]
    size = reports[0]["model"]
    return {"name": name, "auc": aucs, "median": statistics.median(aucs), "deviation": statistics.stdev(aucs),
            "mflops": size["flops_per_sample"] / 1e6, "compression": size["compression"],
            "parameters": size["dense_parameters"] + size["module_parameters"] + size["table_parameters"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--samples", type=int, default=262144)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--only", choices=["compression", "partition"], help="one of the two tables")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error(f"--seeds {args.seeds}: give at least 2, a deviation needs them")
    seeds = range(1, args.seeds + 1)
    out = {"compression": [], "partition": []}
    with tempfile.TemporaryDirectory() as folder:
        study = Study(args, folder)
        tables = 2 * (1 + len(TOWERS) * len(COMPRESSIONS)) if args.only != "partition" else 0
        pairs = 2 * 2 * 2 if args.only != "compression" else 0
        study.total = args.seeds * (tables + pairs)
        if args.only != "partition":
            for model in ("dlrm", "dcn"):
                base = line("no towers", [study.train(model, s) for s in seeds])
                out["compression"].append({"model": model, "towers": None, "asked": None, **base})
                for towers in TOWERS:
                    file = study.towers(towers)
                    for compression in COMPRESSIONS:
                        more = module(model, towers, compression)
                        one = line(f"{towers} towers", [study.train(model, s, (towers, file), more) for s in seeds])
                        out["compression"].append({"model": model, "towers": towers, "asked": compression, **one})
        if args.only != "compression":
            for model, kind in (("dlrm", "dot"), ("dcn", "cross")):
                for compression in (4, 8):
                    towers = 4
                    more = whole_tower(kind, towers, compression)
                    ours = line("partitioner", [study.train(model, s, (towers, study.towers(towers)), more) for s in seeds])
                    naive = line("modulo", [study.train(model, s, (towers, str(towers)), more) for s in seeds])
                    out["partition"].append({"model": model, "towers": towers, "asked": compression, "partitioner": ours,
                                             "modulo": naive, "p": mann_whitney(ours["auc"], naive["auc"])})
        print(file=sys.stderr)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
    report(out)


def report(out):
    if out["compression"]:
        print("| model | towers | compression | AUC, median | deviation | MFlops a sample | parameters |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for r in out["compression"]:
            print(f"| {r['model'].upper()} | {r['towers'] or '-'} | {r['compression']:.2f} | {r['median']:.4f} "
                  f"| {r['deviation']:.4f} | {r['mflops']:.3f} | {r['parameters']:,} |")
        for model in ("dlrm", "dcn"):
            falls = []
            for towers in TOWERS:
                medians = [r["median"] for r in out["compression"] if r["model"] == model and r["towers"] == towers]
                falls.append(f"{towers} towers: " + ("yes" if all(a > b for a, b in zip(medians, medians[1:])) else
                                                     "from 2 to 16, not at each step" if medians[0] > medians[-1] else "no"))
            print(f"\n{model.upper()}: does the AUC fall as compression grows? " + "; ".join(falls))
    if out["partition"]:
        print("\n| model | towers | compression | partitioner | modulo | p |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for r in out["partition"]:
            ours, naive = r["partitioner"], r["modulo"]
            print(f"| {r['model'].upper()} | {r['towers']} | {ours['compression']:.2f} | {ours['median']:.4f} "
                  f"({ours['deviation']:.4f}) | {naive['median']:.4f} ({naive['deviation']:.4f}) | {r['p']:.5f} |")


if __name__ == "__main__":
    main()
