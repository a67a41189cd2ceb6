#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws where ranks wait, in step and k batches apart: Figure 1 of the bounded lag paper, from traces of infer_dlrm.

    ./quickstart --build-only
    benchmarks/bounded_lag/timeline.py --svg timeline.svg                    # runs it twice, with the same delays
    benchmarks/bounded_lag/timeline.py --read in_step.json apart.json --svg timeline.svg

A lane is a rank. Boxes are what it does, numbered by batch: late on purpose, computing, or waiting. Under --read any traces that infer_dlrm --trace has written.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = ["--ranks", "3", "--batches", "8", "--warmup", "2", "--runs", "1", "--batch", "512", "--rows", "2000", "--dim", "32", "--bottom", "256-32", "--top", "512-256-1",
       "--ids", "owner", "--delay", "exponential:6ms", "--seed", "11"]
KINDS = {"late": "#d9d9d9", "computes": "#4da3e0", "waits": "#d9480f"}


def kind(event):
    if event["name"] == "delay":
        return "late"
    return "waits" if event["cat"] == "wait" else "computes"


def read(path):
    """{rank: [(begin, end, kind, batch)]}, milliseconds from the first."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {(e["pid"], e["tid"]): int(e["args"]["name"].split()[1]) for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X" and e["cat"] in ("compute", "pack", "wait")]
    if not spans:
        sys.exit(f"{path}: has no spans: infer_dlrm --trace writes some")
    first, flight = min(e["ts"] for e in spans), min(e["args"]["flight"] for e in spans)
    lanes = {}
    for e in spans:
        if e["dur"] < 50:  # microseconds: nobody sees those
            continue
        begin = (e["ts"] - first) / 1e3
        lanes.setdefault(names[e["pid"], e["tid"]], []).append((begin, begin + e["dur"] / 1e3, kind(e), e["args"]["flight"] - flight))
    return {rank: sorted(lane) for rank, lane in sorted(lanes.items())}


def share(lanes, what):
    """Of the time of all ranks, in percent."""
    whole = sum(max(end for _, end, _, _ in lane) for lane in lanes.values())
    return 100 * sum(end - begin for lane in lanes.values() for begin, end, k, _ in lane if k == what) / whole


def draw(traces, titles, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    plt.rcParams |= {"svg.hashsalt": "shardwise", "svg.fonttype": "none", "font.size": 9}
    last = max(end for lanes in traces for lane in lanes.values() for _, end, _, _ in lane)
    figure, axes = plt.subplots(len(traces), 1, figsize=(10, 1.0 + 1.5 * len(traces)), sharex=True, facecolor="white", squeeze=False)
    for axis, lanes, title in zip(axes[:, 0], traces, titles):
        for rank, lane in lanes.items():
            by_batch = {}
            for begin, end, what, batch in lane:
                axis.broken_barh([(begin, end - begin)], (rank - 0.4, 0.8), facecolors=KINDS[what], edgecolor="white", linewidth=0.3)
                if what == "late":
                    by_batch[batch] = begin
            for batch, begin in by_batch.items():  # where it begins
                axis.plot([begin, begin], [rank - 0.4, rank + 0.4], color="#333333", linewidth=0.8)
                axis.text(begin + last / 400, rank + 0.18, str(batch), fontsize=7, color="#333333")
        end = max(end for lane in lanes.values() for _, end, _, _ in lane)
        axis.axvline(end, color="#333333", linewidth=0.8, linestyle=":")
        axis.set_yticks(list(lanes), [f"rank {rank}" for rank in lanes])
        axis.invert_yaxis()
        axis.set_title(f"{title}: all done after {end:.0f} ms, {share(lanes, 'waits'):.0f} % of it waiting", fontsize=9, loc="left")
        axis.set_xlim(0, last * 1.01)
    axes[-1, 0].set_xlabel("milliseconds")
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in KINDS.values()]
    figure.legend(handles, [f"{what}" for what in KINDS], loc="upper right", ncol=3, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/examples/infer_dlrm"), help="infer_dlrm of a release build")
    parser.add_argument("--bound", type=int, default=2, help="k of the second run (default: %(default)s)")
    parser.add_argument("--read", nargs="+", metavar="FILE", help="traces; nothing is run")
    parser.add_argument("--titles", nargs="+", help="of --read's")
    parser.add_argument("--svg", required=True, metavar="FILE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files, titles = args.read, args.titles or args.read
        if not files:
            files, titles = [], ["k = 0", f"k = {args.bound}"]
            for bound in (0, args.bound):
                files.append(os.path.join(folder, f"{bound}.json"))
                subprocess.run([args.program, *RUN, "--bound", str(bound), "--trace", files[-1]], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        traces = [read(path) for path in files]
    draw(traces, titles, args.svg)
    for title, lanes in zip(titles, traces):
        print(f"{title}: {max(end for lane in lanes.values() for _, end, _, _ in lane):.1f} ms; waiting {share(lanes, 'waits'):.1f} %, computing {share(lanes, 'computes'):.1f} %, late {share(lanes, 'late'):.1f} %")


if __name__ == "__main__":
    main()
