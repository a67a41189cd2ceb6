# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compare.py measures: turns, and the programs of shardwise that measure their part of one."""

import itertools
from typing import NamedTuple

MEASURES = ("lookup", "forward", "update", "step", "dlrm", "sharded")


class Shape(NamedTuple):
    """Tables on one rank: lookup, forward, update and step."""

    tables: int
    rows: int  # a table
    samples: int
    dim: int
    bag: int
    zipf: int

    def text(self):
        return f"{self.tables} x {self.rows:,} rows, dim {self.dim}, bag {self.bag}, {'Zipf' if self.zipf else 'uniform'}"

    def weight(self):
        """About how long a turn takes, in any unit, until the turns before it tell."""
        return self.dim * (20 + self.bag) * self.tables * self.samples / 33e6 + 3


class Dlrm(NamedTuple):
    """A training step of a model in MODELS."""

    model: str
    threads: int  # or ranks
    rule: str
    sums: str  # of SUMS

    def text(self):
        return f"{self.model}, {self.threads} thread{'s'[:self.threads > 1]}, {self.rule}, sums in {self.sums}"

    def weight(self):
        return 7


class Sharded(NamedTuple):
    """A step of tables that are sharded over processes."""

    tables: int
    rows: int
    samples: int  # a rank
    dim: int
    bag: int
    zipf: int
    sharding: str  # "row" or "table"
    ranks: int

    def text(self):
        return (f"{self.sharding}-wise, {self.ranks} ranks, {self.tables} x {self.rows:,} rows, dim {self.dim}, bag {self.bag}, "
                f"{'Zipf' if self.zipf else 'uniform'}")

    def weight(self):
        return 1 + self.ranks * (1 + self.bag) / 3


KINDS = {"shape": Shape, "dlrm": Dlrm, "sharded": Sharded}

SMALL = {"rows": 100_000, "dim": 64, "batch": 2048, "bottom": [64, 64], "top": [128, 64, 1]}  # as train_dlrm's defaults
LARGE = SMALL | {"bottom": [512, 256, 64], "top": [512, 256, 1]}  # as the reference DLRM's
MODELS = {"small": SMALL, "large": LARGE}
# Sums of dense products and gradients: in single precision as PyTorch's; train_dlrm's default; all in double.
SUMS = {"float": ["--order", "tree"], "blocks": ["--order", "wide_tree", "--precision", "blocks"],
        "double": ["--order", "wide_tree", "--precision", "wide"]}
BATCHES = 40


def to_json(turn):
    return {"kind": type(turn).__name__.lower()} | turn._asdict()


def of_json(fields):
    return KINDS[fields["kind"]](**{name: value for name, value in fields.items() if name != "kind"})


def all_turns(quick):
    """Every turn of a round."""
    def shapes(tables, rows, samples, dims, bags):
        return [Shape(tables, rows, samples, *rest) for rest in itertools.product(dims, bags, (0, 1))]

    def sharded(bags, laws, rankses):
        return [Sharded(26, 100_000, 2048, 64, bag, zipf, sharding, ranks)
                for ranks, sharding, bag, zipf in itertools.product(rankses, ("row", "table"), bags, laws)]

    dlrms = [Dlrm(model, threads, rule, sums) for model in MODELS for threads in (1, 2)
             for rule, sums in (("adagrad", "float"), ("adagrad", "blocks"), ("adagrad", "double"), ("rowwise_adagrad", "float"),
                                ("rowwise_adagrad", "blocks"))]  # the last are train_dlrm's defaults
    if quick:
        return (shapes(8, 500_000, 8192, (16, 64), (1, 20)) + shapes(26, 100_000, 2048, (64,), (1,)) + dlrms[:5:4]
                + sharded((1,), (0,), (2,)))
    return (shapes(8, 1_000_000, 8192, (16, 64, 128), (1, 20, 100)) + shapes(26, 100_000, 2048, (16, 64, 128), (1, 20)) + dlrms
            + sharded((1, 10), (0, 1), (2, 4)))


def dlrm_command(turn, folder, report):
    model = MODELS[turn.model]
    files = [[f"{folder}/day_{day}_{kind}.npy" for kind in ("dense", "sparse", "labels")] for day in (0, 1)]
    return ["examples/train_dlrm", "--ranks", str(turn.threads), "--hosts", "1", "--batch", str(model["batch"] // turn.threads),
            "--rows", str(model["rows"]), "--dim", str(model["dim"]), "--bottom", "-".join(map(str, model["bottom"])),
            "--top", "-".join(map(str, model["top"])), "--sharding", "table", "--optimizer", turn.rule, *SUMS[turn.sums],
            "--measure", "0", "--data", *files[0], "--test", *files[1], "--json", report]


def programs(turn, folder="CLICKS", report="REPORT"):
    """The programs of a turn, each with its ranks (0: without MPI), and what of whose counters is which measure."""
    if isinstance(turn, Dlrm):
        return [(0, dlrm_command(turn, folder, report), [])]
    sizes = [f"--tables={turn.tables}", f"--rows={turn.rows}", f"--samples={turn.samples}", "--benchmark_format=json"]
    if isinstance(turn, Sharded):
        name = f"^sharded_step/{turn.sharding}/ranks:{turn.ranks}/bag:{turn.bag}/zipf:{turn.zipf}/"
        return [(turn.ranks, ["benchmarks/bench_sharded_step", *sizes, f"--dim={turn.dim}", f"--benchmark_filter={name}"],
                 [("sharded", "sharded_step", "median_ms")])]
    here = f"dim:{turn.dim}/bag:{turn.bag}/zipf:{turn.zipf}/"
    return [(0, ["benchmarks/bench_lookup", *sizes, "--ceiling=0", f"--benchmark_filter=^(lookup|forward)/{here}"],
             [("lookup", "lookup", "median_ms"), ("forward", "forward", "median_ms")]),
            (0, ["benchmarks/bench_update", *sizes, "--ceiling=0", f"--benchmark_filter=^update/{here}"],
             [("update", "update", "median_ms"), ("step", "update", "step_ms")])]
