# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bounded_lag.py measures against: curves of the protocol alone, and its tables.

    bounded_lag_test.py INFER_DLRM
"""

import contextlib
import io
import json
import os
import sys
import tempfile

import bounded_lag
import timeline

# Milliseconds a batch with delays of U(0, 10 ms), worked out elsewhere from the protocol alone, k = 0, 1, 2, 4, 8.
KNOWN = {"owner": (8.887, 6.376, 5.866, 5.502, 5.273), "together, thread": (8.91, 6.39, 5.89, 5.52, 5.27), "together, calls": (8.91, 7.71, 6.42, 5.70, 5.33),
         "each, calls": (8.91, 6.42, 5.39, 5.02, 5.01), "each, thread": (5.0, 5.0, 5.0, 5.0, 5.0)}


def curves():
    for way, values in KNOWN.items():
        for k, known in zip((0, 1, 2, 4, 8), values):
            ours = bounded_lag.curve(way, k) / (bounded_lag.LATE / 10)
            assert abs(ours / known - 1) < 0.015, (way, k, ours, known)


def runs(program):
    """A short measurement, its tables, and what a picture is drawn from."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lag.json")
        sys.argv = ["bounded_lag.py", "--program", program, "--mpiexec", "", "--only", "plain", "balanced", "--k", "0", "1", "--rounds", "1", "--ranks", "2", "--json", path]
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            bounded_lag.main()
        with open(path, encoding="utf-8") as file:
            out = json.load(file)
        assert set(out["cuts"]) == {"plain", "balanced"} and "in step" in out["cuts"]["plain"]
        assert all(runs[0]["iteration_ms"] > 0 for by_k in out["cuts"]["plain"].values() for runs in by_k.values())
        assert "| owner |" in text.getvalue() and "k = 1" in text.getvalue(), text.getvalue()
        trace = os.path.join(folder, "trace.json")
        bounded_lag.subprocess.run([program, *timeline.RUN, "--bound", "1", "--trace", trace], check=True, stdout=bounded_lag.subprocess.DEVNULL)
        lanes = timeline.read(trace)
        assert set(lanes) == {0, 1, 2}
        for lane in lanes.values():
            assert {batch for _, _, what, batch in lane if what == "late"} <= set(range(8))
        shares = [timeline.share(lanes, what) for what in timeline.KINDS]
        assert all(share >= 0 for share in shares) and 60 < sum(shares) < 110, shares


if __name__ == "__main__":
    curves()
    runs(sys.argv[1])
