# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""train_dcn is the trainer of train_dlrm with another dense part: what differs is tested here."""

import json
import math

from programs import main, run

SMALL = ["--steps", 12, "--batch", 8, "--rows", 200, "--dim", 8, "--test-samples", 512]


def report(*arguments, **keywords):
    """Runs, and returns the JSON report, whose every byte was predicted."""
    run("--json", "report.json", *arguments, **keywords)
    with open("report.json", encoding="utf-8") as file:
        r = json.load(file)
    assert r["bytes"]["predicted"] == r["bytes"]["moved"], r["bytes"]
    assert r["memory"]["predicted"] == r["memory"]["measured"], r["memory"]
    return r


def help_():
    text = run("--help")
    for part in ("deep and cross network", "train_dcn", "--cross-layers", "--cross-rank", "--tower", "--collective"):
        assert part in text, part


def trains():
    """It learns, with full weights and with a rank, and another number of ranks changes nothing."""
    common = ["--rows", 200, "--dim", 8, "--test-samples", 2048, "--samples", 20000, "--batch", 64, "--optimizer", "adam",
              "--learning-rate", 0.005]
    for rank in (0, 4):
        r = report(*common, "--cross-rank", rank)
        assert r["config"]["model"] == "dcn" and r["auc"] > 0.55, r["auc"]
    policies = ["--rows", 200, "--dim", 8, "--steps", 30, "--optimizer", "sgd"]
    alone = report(*policies, "--ranks", 1, "--hosts", 1, "--batch", 48)["losses"]
    losses = report(*policies, "--ranks", 3, "--hosts", 3, "--batch", 16)["losses"]
    assert max(abs(a - b) / a for a, b in zip(alone, losses)) < 1e-12
    towered = report(*SMALL, "--collective", "hierarchical", "--tower", "cross", "--cross-rank", 3)
    assert all(math.isfinite(x) for x in towered["losses"])
    assert towered["losses"] != report(*SMALL, "--collective", "hierarchical", "--cross-rank", 3)["losses"]
    deeper = report(*SMALL, "--cross-layers", 4)["losses"]
    assert deeper != report(*SMALL)["losses"]


def bad_usage():
    for arguments, text in [(["--cross-layers", 0], "--cross-layers 0: give at least 1"),
                            (["--cross-rank", -1], "--cross-rank -1: give at least 0"),
                            (["--nonsense"], "train_dcn --help shows all options")]:
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("train_dcn: ") and len(error.strip().splitlines()) == 1, error


def mpi():
    for tower in ([], ["--collective", "hierarchical", "--tower", "cross"]):
        threads = report(*SMALL, "--hosts", 2, "--ranks", 4, *tower)
        processes = report(*SMALL, "--hosts", 2, *tower, ranks=4)
        for key in "losses auc loss bytes memory".split():
            assert threads[key] == processes[key], key


main({"help": help_, "trains": trains, "bad_usage": bad_usage, "mpi": mpi})
