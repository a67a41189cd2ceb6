# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The statistics of groups_study against known values, its verdicts both ways, and a small study: groups_study_test.py <trainer>."""

import contextlib
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import groups_study
from groups_study import GROUPS, EVERY, Results, gaps, interval, report, scales, sign_flip, tune, verdicts


def near(a, b, tolerance=1e-9):
    assert abs(a - b) <= tolerance, (a, b)


# statistics
near(gaps([1.01], [1.0])[0], 1)
near(gaps([0.5], [1.0])[0], -50)
mean, half = interval([1, 2, 3])
near(mean, 2)
near(half, 4.3027 / math.sqrt(3), 1e-4)
near(interval(list(range(9)))[1], 2.3060 * statistics.stdev(range(9)) / 3, 1e-4)
for freedom, known in ((1, 12.7062), (8, 2.3060), (15, 2.1314)):
    near(groups_study.QUANTILES[freedom - 1], known)
near(sign_flip([0.3] * 9), 2 / 512)
near(sign_flip([-0.1, -0.2, -0.4]), 2 / 8)
near(sign_flip([1, -1]), 1)
near(sign_flip([-1, 2, 3]), 4 / 8)  # sums of 6, 4, 2 and 0, with both signs
assert scales(4) == [1, 2, 4] and len(scales(16)) == 4


# The rate: walks on where the best is at an end.
def valley(_, rate):
    return [math.log(rate / 0.01) ** 2]


tried, best = tune(valley, [1, 2], [0.05, 0.1, 0.2])
assert tried[0]["rate"] < best < tried[-1]["rate"] and abs(math.log(best / 0.01)) < math.log(2) / 4 + 1e-9, (tried, best)


# verdicts
def made(gap, seeds=9):
    """Results whose gaps, in percent, are gap(groups, scale) and a little noise."""
    noise = [0.01 * ((7 * s) % 9 - 4) for s in range(seeds)]
    base = [0.8 + 0.01 * s for s in range(seeds)]
    runs = [{"groups": 1, "scale": 1.0, "every": 1, "ne": [[b] for b in base]}]
    for m in GROUPS:
        for c, n in [(c, 1) for c in scales(m)] + [(float(m), n) for n in EVERY if n > 1]:
            runs.append({"groups": m, "scale": c, "every": n, "ne": [[b * (1 + (gap(m, c) + e) / 100)] for b, e in zip(base, noise)]})
    return Results({"setting": {"seeds": seeds, "rate": 0.1, "stops": [8], "batch": 1, "ranks": 16, "samples": 128},
                    "rates": [], "runs": runs})


def answers(gap):
    return ["NOT SO" not in line for line in verdicts(made(gap))]


assert answers(lambda m, c: 0.05 * m if c == 1 else 0) == [True] * 7
assert answers(lambda m, c: 0.0) == [False] * 3 + [True] * 3 + [False]  # the noise of all runs is the same: no difference
assert answers(lambda m, c: 0.0 if c == 1 else 0.5) == [False] * 3 + [False] * 3 + [False]
assert answers(lambda m, c: (1.0 if m == 8 else 0.5) if c == 1 else -0.2) == [True] * 3 + [False] * 3 + [False]
assert answers(lambda m, c: 0.05 * m if c == 1 else 0.095) == [True] * 3 + [False] * 3 + [True]  # near, but the interval is not
assert answers(lambda m, c: -0.05 * m if c == 1 else 0.0) == [False] * 3 + [True] * 3 + [False]

# a small study, and what it wrote read again
if len(sys.argv) > 1:
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "groups_study.py")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "study.json")
        ran = subprocess.run([sys.executable, "-B", script, "--trainer", sys.argv[1], "--seeds", "2", "--samples", "512", "--batch", "4",
                              "--test-samples", "256", "--rate", "0.1", "--json", path], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        again = subprocess.run([sys.executable, "-B", script, "--read", path], capture_output=True, text=True, check=True)
        assert again.stdout == ran.stdout
        with open(path, encoding="utf-8") as file:
            out = json.load(file)
    assert len(out["runs"]) == 1 + sum(len(scales(m)) + 3 for m in GROUPS)
    by_run = {(r["groups"], r["scale"], r["every"]): r["ne"] for r in out["runs"]}
    assert all(len(ne) == 2 for ne in by_run.values())
    assert all(len(ne[0]) == (4 if run[1:] == (1.0, 1) else 1) for run, ne in by_run.items())
    lasts = [ne[0][-1] for ne in by_run.values()]
    assert all(0.5 < last < 2 for last in lasts)
    for m in GROUPS:  # c and n do reach the trainer
        assert by_run[m, 1.0, 1][0][-1] != by_run[m, float(m), 1][0][-1] != by_run[m, float(m), 4][0][-1]
    assert by_run[1, 1.0, 1][0][0] != by_run[1, 1.0, 1][0][-1]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        report(Results(out))
    assert text.getvalue() == ran.stdout and ran.stdout.count("\n- ") == 7
