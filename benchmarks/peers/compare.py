#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures shardwise beside PyTorch, FBGEMM and TorchRec, on CPU, and prints a table of Markdown.

It makes a virtual environment of pinned versions, once (2 GB to fetch, 6 GB on disk: the wheels of PyTorch on the Python
package index are made for CUDA). Then it measures the release benchmarks (./quickstart --build-only) and the peers in
turns, shape by shape and round by round, so that whatever else the machine does meets all of them.

  lookup   ids of 8 tables, 8192 samples, to sums: bench_lookup's kernel; embedding_bag, table by table; FBGEMM's split
           table-batched embeddings without its check of ids
  forward  the same by a layer, ids checked, features side by side: bench_lookup; EmbeddingBags and a cat; FBGEMM as it
           comes; TorchRec's EmbeddingBagCollection
  update   the backward pass with row-wise Adagrad: bench_update; FBGEMM's backward, whose update is fused
  step     forward and update: the same two; and PyTorch's EmbeddingBag with sparse gradients and torch.optim.Adagrad, whose
           moments are one an element (it has no row-wise one)
  dlrm     a training step of a DLRM: train_dlrm; the same model in PyTorch, with its own tables and with FBGEMM's

The peers run in this process, with PyTorch's gradients and modes as a user would set them, on huge pages as shardwise does.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = ["PyTorch", "FBGEMM", "TorchRec"]

# FBGEMM 1.9 is built for PyTorch 2.14. TorchRec names the CUDA build of FBGEMM as what it needs, so its needs are ours to name.
PINS = [("PyTorch", ["torch==2.14.0", "numpy==2.4.6", "matplotlib==3.11.2"]),
        ("FBGEMM", ["--no-deps", "fbgemm-gpu-cpu==1.9.0"]),
        ("TorchRec", ["tensordict==0.15.3", "torchmetrics==1.0.3", "tqdm==4.70.1", "pyre-extensions==0.0.32"]),
        ("TorchRec", ["--no-deps", "torchrec==1.9.2"])]

# A turn that has a processor for less of the time was disturbed.
QUIET = 0.9

# Shardwise is to be faster so many times.
TARGETS = {("lookup", "PyTorch"): 2.5, ("forward", "PyTorch"): 2.5, ("lookup", "FBGEMM"): 1.3, ("forward", "FBGEMM"): 1.3,
           ("step", "PyTorch"): 10.0, ("dlrm", "PyTorch"): 2.0}

SHAPES = list(itertools.product(["shape"], (16, 64, 128), (1, 20, 100), (0, 1)))
QUICK = list(itertools.product(["shape"], (16, 64), (1, 20), (0, 1)))

SMALL = {"rows": 100_000, "dim": 64, "batch": 2048, "bottom": [64, 64], "top": [128, 64, 1]}  # as train_dlrm's defaults
LARGE = SMALL | {"bottom": [512, 256, 64], "top": [512, 256, 1]}  # as the reference DLRM's
BATCHES = 40
# model, threads (= ranks), rule, order: single precision as PyTorch's, or the default, whose sums of dense products are double
DLRMS = [("dlrm", model, threads, rule, order)
         for model in ("small", "large") for threads in (1, 2)
         for rule, order in (("adagrad", "tree"), ("adagrad", "wide_tree"), ("rowwise_adagrad", "tree"))]
MODELS = {"small": SMALL, "large": LARGE}


def install(venv):
    """Makes the virtual environment where it is not there. Returns, by peer, why it could not be installed."""
    stamp = os.path.join(venv, "pins.json")
    pins = json.loads(json.dumps(PINS))
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            done = json.load(file)
        if done["pins"] == pins:
            return done["missing"]
    print(f"{venv}: installing, some minutes", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    missing = {}
    for peer, packages in PINS:
        pip = subprocess.run([os.path.join(venv, "bin/pip"), "install", "-q", *packages], text=True,
                             stdout=sys.stderr, stderr=subprocess.PIPE, check=False)
        if pip.returncode:
            missing[peer] = "pip: " + ([line for line in pip.stderr.splitlines() if "ERROR" in line] or ["failed"])[0]
    if "PyTorch" in missing:
        sys.exit(f"PyTorch cannot be installed, and without it there is no peer. {missing['PyTorch']}")
    with open(stamp, "w", encoding="utf-8") as file:
        json.dump({"pins": PINS, "missing": missing}, file)
    return missing


def benchmark_commands(turn, rows):
    """The programs of a turn, and what of their counters is which measure."""
    _, dim, bag, zipf = turn
    flags = [f"--rows={rows}", "--ceiling=0", "--benchmark_format=json"]
    here = f"dim:{dim}/bag:{bag}/zipf:{zipf}/"
    return [(["benchmarks/bench_lookup", *flags, f"--benchmark_filter=^(lookup|forward)/{here}"],
             [("lookup", "lookup", "median_ms"), ("forward", "forward", "median_ms")]),
            (["benchmarks/bench_update", *flags, f"--benchmark_filter=^update/{here}"],
             [("update", "update", "median_ms"), ("step", "update", "step_ms")])]


def dlrm_command(turn, folder, report):
    _, name, ranks, rule, order = turn
    model = MODELS[name]
    files = [[f"{folder}/day_{day}_{kind}.npy" for kind in ("dense", "sparse", "labels")] for day in (0, 1)]
    return ["examples/train_dlrm", "--ranks", str(ranks), "--hosts", "1", "--batch", str(model["batch"] // ranks),
            "--rows", str(model["rows"]), "--dim", str(model["dim"]), "--bottom", "-".join(map(str, model["bottom"])),
            "--top", "-".join(map(str, model["top"])), "--sharding", "table", "--optimizer", rule, "--order", order,
            "--measure", "0", "--data", *files[0], "--test", *files[1], "--json", report]


def run(build, command):
    """Standard output of a program of the build. Its errors end this one."""
    made = subprocess.run([os.path.join(build, command[0]), *command[1:]], text=True, capture_output=True, check=False)
    if made.returncode:
        sys.exit(f"{' '.join(command)} failed with {made.returncode}:\n{made.stderr}")
    return made.stdout


def shardwise_turn(turn, arguments, folder):
    """Milliseconds by measure."""
    if turn[0] == "dlrm":
        report = os.path.join(folder, "report.json")
        run(arguments.build, dlrm_command(turn, folder, report))
        with open(report, encoding="utf-8") as file:
            return {"dlrm": 1e3 * json.load(file)["time"]["step"]["max"]}
    result = {}
    for command, counters in benchmark_commands(turn, arguments.rows):
        reported = {one["run_name"].split("/")[0]: one for one in json.loads(run(arguments.build, command))["benchmarks"]}
        result |= {measure: reported[name][counter] for measure, name, counter in counters}
    return result


def peers_turn(turn, arguments, folder, missing):
    """Milliseconds by peer and measure."""
    import peers

    if turn[0] == "dlrm":
        _, name, threads, rule, _ = turn
        there = [p for p in ("PyTorch", "FBGEMM") if p not in missing]
        return {p: {"dlrm": peers.dlrm_turn(folder, MODELS[name], "adagrad" if p == "PyTorch" else rule, threads, p)}
                for p in there}
    return peers.turn(turn, arguments.rows, missing, arguments.memory * 1e9)


def processor_seconds():
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def weight(turn):
    """About how long a turn takes, in any unit, until the turns before it tell."""
    return 5 if turn[0] == "dlrm" else turn[1] * (20 + turn[2]) / 500 + 2


def measure(turns, arguments, missing):
    """All rounds: yields each (turn, shardwise, peers, what part of the time had a processor)."""
    import peers

    begin, done, total = time.monotonic(), 0.0, arguments.rounds * sum(map(weight, turns))
    with tempfile.TemporaryDirectory() as folder:
        if any(turn[0] == "dlrm" for turn in turns):
            peers.write_clicks(folder, SMALL, BATCHES)
        for number, turn in itertools.product(range(arguments.rounds), turns):
            left = f"{(time.monotonic() - begin) / done * (total - done) / 60:.1f} min left" if done else ""
            print(f"round {number + 1} of {arguments.rounds}: {shape_text(turn):45} {left}", file=sys.stderr)
            used, clock = processor_seconds(), time.monotonic()
            ours = shardwise_turn(turn, arguments, folder)
            theirs = peers_turn(turn, arguments, folder, missing)
            yield turn, ours, theirs, (processor_seconds() - used) / (time.monotonic() - clock)
            done += weight(turn)


def summarize(measured):
    """A record a turn and measure: medians, and by peer the ratio of medians with the quartiles of the rounds' ratios."""
    records = []
    for turn in dict.fromkeys(one[0] for one in measured):
        rounds = [(ours, peers) for t, ours, peers, _ in measured if t == turn]
        busy = min(share for t, *_, share in measured if t == turn)
        for what in rounds[0][0]:
            own = [ours[what] for ours, _ in rounds]
            record = {"what": what, "turn": turn, "ms": statistics.median(own), "rounds": own, "busy": busy, "peers": {}}
            for peer in PEERS:
                theirs = [peers[peer][what] for _, peers in rounds if what in peers.get(peer, {})]
                if not theirs:  # not there, or it has no such thing
                    continue
                if isinstance(theirs[0], str):
                    record["peers"][peer] = {"left_out": theirs[0]}
                    continue
                ratios = [b / a for a, b in zip(own, theirs)]
                low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(own) > 1 else ratios * 3
                ratio = statistics.median(theirs) / record["ms"]
                target = TARGETS.get((what, peer))
                record["peers"][peer] = {"ms": statistics.median(theirs), "rounds": theirs, "ratio": ratio, "low": low,
                                         "high": high, "target": target, "met": ratio >= target if target else None}
            records.append(record)
    return sorted(records, key=lambda one: list(("lookup", "forward", "update", "step", "dlrm")).index(one["what"]))


def shape_text(turn):
    if turn[0] == "shape":
        return f"dim {turn[1]}, bag {turn[2]}, {'Zipf' if turn[3] else 'uniform'}"
    return f"{turn[1]}, {turn[2]} thread{'s'[:turn[2] > 1]}, {turn[3]}, {turn[4]}"


def table(records, missing):
    lines = [["", "", "shardwise ms"] + [text for peer in PEERS for text in (f"{peer} ms", "times", "quartiles", "target")]]
    lines.append(["---"] * len(lines[0]))
    for one in records:
        line = [one["what"], shape_text(one["turn"]), f"{one['ms']:.2f}"]
        for peer in PEERS:
            p = one["peers"].get(peer, {"left_out": ""})
            if "left_out" in p:
                line += [p["left_out"], "", "", ""]
                continue
            line += [f"{p['ms']:.2f}", f"{p['ratio']:.2f}", f"{p['low']:.2f} to {p['high']:.2f}",
                     f"{p['target']:g} {'met' if p['met'] else 'missed'}" if p["target"] else ""]
        lines.append(line)
    text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    waited = dict.fromkeys(shape_text(one["turn"]) for one in records if one["busy"] < QUIET)
    if waited:
        text += f"\nOther programs held the processor more than {1 - QUIET:.0%} of a turn, so do not trust: {'; '.join(waited)}\n"
    return text + "".join(f"\n{peer} is not there: {why}\n" for peer, why in missing.items())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="eight small shapes and one model, one round, half a million rows a table: does it work?")
    parser.add_argument("--rounds", type=int, help="turns of each shape (default: 3, with --quick 1)")
    parser.add_argument("--only", metavar="TEXT", default="", help="shapes whose name has this text, such as 'dim 64' or "
                        "'small': --dry shows the names")
    parser.add_argument("--memory", type=float, default=9.0, metavar="GB",
                        help="leave out PyTorch's Adagrad where it needs more, as it does at dim 128 (default: %(default)s); "
                        "all else needs up to 5 GB")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="FOLDER",
                        help="the release build (default: build/release)")
    parser.add_argument("--venv", default=os.path.join(ROOT, "build/peers-venv"), metavar="FOLDER",
                        help="the virtual environment (default: build/peers-venv)")
    parser.add_argument("--no-huge-pages", action="store_true", help="peers on small pages, PyTorch's default")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there, after every turn")
    parser.add_argument("--dry", action="store_true", help="show what would be measured, by which commands, and end")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.rows = 500_000 if arguments.quick else 1_000_000
    return arguments


def main():
    arguments = parse()
    turns = QUICK + DLRMS[:3] if arguments.quick else SHAPES + DLRMS
    turns = [turn for turn in turns if arguments.only in shape_text(turn)]
    if not turns:
        sys.exit(f"--only '{arguments.only}': no shape has this text; --dry shows their names")
    if arguments.dry:
        for turn in turns:
            print(shape_text(turn))
            commands = [dlrm_command(turn, "CLICKS", "REPORT")] if turn[0] == "dlrm" else [
                command for command, _ in benchmark_commands(turn, arguments.rows)]
            print("".join(f"  {' '.join(command)}\n" for command in commands), end="")
        return
    programs = [os.path.join(arguments.build, name)
                for name in ("benchmarks/bench_lookup", "benchmarks/bench_update", "examples/train_dlrm")]
    for program in programs:
        if not os.access(program, os.X_OK):
            sys.exit(f"{program} is not there: ./quickstart --build-only builds it")

    missing = install(arguments.venv)
    python = os.path.join(arguments.venv, "bin/python")
    if os.environ.get("SHARDWISE_PEERS") != "1":  # again, by the interpreter that has the peers
        pages = {} if arguments.no_huge_pages else {"THP_MEM_ALLOC_ENABLE": "1"}
        os.execve(python, [python, os.path.abspath(__file__), *sys.argv[1:]], os.environ | pages | {"SHARDWISE_PEERS": "1"})
    import peers

    missing = peers.load() | missing
    if "PyTorch" in missing:
        sys.exit(f"without PyTorch there is no peer: {missing['PyTorch']}")
    measured = []
    for one in measure(turns, arguments, missing):
        measured.append(one)
        if arguments.json:  # after every turn, so that a run that is ended early leaves what it has
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump({"pins": PINS, "missing": missing, "rows": arguments.rows, "rounds": arguments.rounds,
                           "huge_pages": not arguments.no_huge_pages, "records": summarize(measured)}, file, indent=1)
                file.write("\n")
    print(table(summarize(measured), missing), end="")


if __name__ == "__main__":
    main()
