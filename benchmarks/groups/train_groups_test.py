# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""train_groups: its verdicts both ways, and a small run of every number of groups: train_groups_test.py <trainer>."""

import json
import os
import subprocess
import sys
import tempfile

from train_groups import WAYS, verdicts


def made(imbalance, exchange, overlap):
    """Results whose medians are these functions of the number of groups; of three rounds, of which one went wrong."""
    runs = [{"groups": m, "placement": placement, "overlap": over, "imbalance": [imbalance(m)] * 3, "exchange_mean": [exchange(m), 100, exchange(m)],
             "samples_per_second": [1000 + (overlap if over else 0), 1, 1000 + (overlap if over else 0)]}
            for m, placement in WAYS for over in ((True, False) if m > 1 else (True,))]
    return ["NOT SO" not in line for line in verdicts({"runs": runs})[:4]]


assert made(lambda m: 8 / m, lambda m: 9 - m, 1) == [True] * 4
assert made(lambda m: 1.1, lambda m: 9 - m, 1) == [False, True, True, True]
assert made(lambda m: 8 / m, lambda m: 9 if m == 4 else 9 - m, 1) == [True, False, False, True]
assert made(lambda m: 8 / m, lambda m: 9 - m, -1) == [True, True, True, False]

script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_groups.py")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "groups.json")
    ran = subprocess.run([sys.executable, "-B", script, "--trainer", sys.argv[1], "--rounds", "2", "--steps", "6", "--batch", "4", "--dim", "4", "--json", path],
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    again = subprocess.run([sys.executable, "-B", script, "--read", path], capture_output=True, text=True, check=True)
    assert again.stdout == ran.stdout
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["runs"]
assert len(runs) == 2 * len(WAYS) - 1
uneven = {run["groups"]: run["imbalance"][0] for run in runs}
assert uneven[1] > 1.5 * uneven[2] > 1.5 * 1.5 * uneven[4] and uneven[8] < 1.2, uneven
assert all(len(run["samples_per_second"]) == 2 and min(run["samples_per_second"]) > 0 for run in runs)
assert all((min(run["replica_sync_mean"]) > 0) == (run["groups"] > 1) for run in runs)
alone = runs[0]
assert all(run["mean_bytes"][0] > alone["mean_bytes"][0] for run in runs[1:]), "more groups hold more"
