#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coalescing, caches and hot batches on this machine: the experiments of SCARS, on hosts.

    ./quickstart --build-only
    benchmarks/caches/caches.py --json caches.json --svg docs/images/caches.svg --criteo day_0.tsv

parts      what is asked for (--only)
growth     distinct rows by formula, with five times the tables and the batch: both readings of the paper's sentence
quarters   the share of samples that touch each quarter of a cache (Figure 4)
ablation   time and bytes of a step: row, coalesced, cached, both, hot batches; threads and MPI (Table I)
doublings  the same with four doublings of the cache (Table II)
batches    time of hot and of other steps, and of an epoch, by batch size (Tables III to VI)
quality    AUC of test data at equal wall time, by batch size, with and without coalescing and hot batches (Table VII)

Two ranks, each a host of its own. Runs that are compared are run in turns; numbers are medians. Give --criteo a log in Criteo's format (and
--criteo-test another) to have them on real clicks, too.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PARTS = ["growth", "quarters", "ablation", "doublings", "batches", "quality"]
FEATURES, DIM = 26, 32
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,vader",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}
PHASES = ["forward", "backward", "optimizer", "exchange"]
BACKWARD = ("CutGradients", "Cut<", "GroupRows", "SumByUnique", "End<", "backward of", "Transpose", "RowNorms")


class Data:
    """A data set: options of the trainer, and what is known of it."""

    def __init__(self, name, options, rows, batch, samples):
        self.name, self.options, self.rows, self.batch, self.samples = name, [str(o) for o in options], rows, batch, samples


class Runs:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.done, self.total, self.begin = 0, 1, time.time()

    def command(self, command, mpi=False):
        command = [str(part) for part in command]
        if mpi:
            command = ["mpirun", "-np", "2", *command]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **MPI, "OPENBLAS_NUM_THREADS": "1"})
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)}: {ran.stderr}")
        return ran.stdout

    def program(self, name):
        return os.path.join(self.args.build, "examples", name)

    def file(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name, *options):
        """A program's report."""
        path = self.file("tool.json")
        self.command([self.program(name), *options, "--json", path])
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def train(self, data, *options, mpi=False, traced=0, test=False):
        """A training's report, with the phases of its steps where `traced` of them are."""
        path, trace = self.file("report.json"), self.file("trace.json")
        where = ["--hosts", 2] if mpi else ["--ranks", 2, "--hosts", 2]
        self.command([self.program("train_dlrm"), *where, "--dim", DIM, "--rows", data.rows, "--order", "tree", *data.options, *(data.test if test else data.no_test), "--measure", traced,
                      *(["--trace", trace] if traced else []), *options, "--json", path], mpi)
        self.done += 1
        rate = (time.time() - self.begin) / self.done
        print(f"\r{self.done} of {self.total} trainings, {rate:.1f} s each, {max(0, rate * (self.total - self.done)) / 60:.0f} min left ", end="", file=sys.stderr,
              flush=True)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if traced:
            report["phases"] = phases_of(trace)
        return report

    def profile(self, data):
        path = self.file(f"{data.name}.profile")
        if not os.path.exists(path):
            self.train(data, "--sharding", "tiered", "--steps", 1, "--profile-out", path)
        return path

    def plan(self, data, cached):
        """A row plan with so many cached rows."""
        path = self.file(f"{data.name}.{cached}.plan")
        if not os.path.exists(path):
            self.tool("plan_cache", "--profile", self.profile(data), "--dim", DIM, "--memory", 1e15, "--activation", 1, "--cached", cached, "--out", path)
        return path


def phase_of(name, kind):
    if kind != "compute" or name == "sum of dense gradients":
        return "exchange"
    if name.startswith("Update") or "optimizer" in name:
        return "optimizer"
    return "backward" if name.startswith(BACKWARD) else "forward"


def phases_of(path):
    """Milliseconds of each phase, mean of ranks, median of steps, by kind of step."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    events = content["traceEvents"] if isinstance(content, dict) else content
    steps, plain, ranks = {}, set(), set()
    for event in events:
        if event.get("ph") != "X":
            continue
        flight = event["args"]["flight"]
        ranks.add((event["pid"], event["tid"]))
        step = steps.setdefault(flight, dict.fromkeys(PHASES, 0.0))
        step[phase_of(event["name"], event["cat"])] += event["dur"] / 1e3
        if event["name"].startswith("Exchange<World, Ids"):
            plain.add(flight)
    out = {}
    for kind in ("hot", "other"):
        numbers = [step for flight, step in sorted(steps.items())[3:] if (flight in plain) == (kind == "other")]
        if numbers:
            out[kind] = {phase: statistics.median(n[phase] for n in numbers) / len(ranks) for phase in PHASES}
            out[kind]["total"] = statistics.median(sum(n.values()) for n in numbers) / len(ranks)
    return out


def payload(report):
    """Bytes a step of the embedding layer, of all ranks, without what messages need beside."""
    return report["bytes"]["embedding_payload"] / max(1, report["bytes"]["steps"])


def read_profile(path):
    """(table): samples that hold each row, the most first; and how many samples there are."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()

    def numbers(name):
        begin, end = header[name]["data_offsets"]
        return struct.unpack(f"<{(end - begin) // 8}q", data[begin:end])

    names = json.loads(header["__metadata__"]["tables"])
    tables = [list(zip(numbers(f"tables/{name}/lookups"), numbers(f"tables/{name}/row"))) for name in names]
    return tables, numbers("samples")[0]


def growth(runs):
    """U of five times the batch over U, with the law of each table fixed, and with five times the rows."""
    out = []
    for law, rows, scale, batch in (("zipf", 10000, None, 20000), ("exponential", 100000, 200, 3200), ("half_normal", 100000, 200, 3200), ("zipf", 100000, None, 4096)):
        def unique(times, of, law=law, rows=rows, scale=scale):
            text = f"{law}:{times * rows}" + (f":{scale}" if scale else "")
            return runs.tool("plan_cache", "--law", text, "--batch", of)["unique"]
        one = unique(1, batch)
        out.append({"law": law, "rows": rows, "scale": scale, "batch": batch, "unique": one, "tables_and_batch": unique(1, 5 * batch) / one,
                    "rows_and_batch": unique(5, 5 * batch) / one})
    return out


def quarters(runs, sets):
    out = []
    for data in sets:
        for cached in data.caches:
            if data.name == "clicks":  # whose features are independent
                tables, samples = read_profile(runs.profile(data))
                order = sorted(((count, t) for t, table in enumerate(tables) for count, _ in table), key=lambda one: (-one[0], one[1]))[:cached]
                shares = []
                for quarter in range(4):
                    part = order[quarter * cached // 4:(quarter + 1) * cached // 4]
                    none = 1.0
                    for t in range(len(tables)):
                        none *= 1 - sum(count for count, table in part if table == t) / samples
                    shares.append(1 - none)
                hot = 1.0
                for t in range(len(tables)):
                    hot *= sum(count for count, table in order if table == t) / samples
            else:
                found = runs.tool("profile_rows", "--data", *data.files, "--rows", data.rows, "--cache", cached)["cache"][0]
                shares, hot = found["quarters"], found["hot_share"]
            out.append({"data": data.name, "cached": cached, "quarters": shares, "hot_share": hot})
    return out


def variants(runs, data, cached):
    plan = ["--sharding", "tiered", "--plan", runs.plan(data, cached)]
    return {"row": ["--sharding", "row"], "coalesced": ["--sharding", "row", "--requests", "coalesced"], "cached": plan,
            "both": [*plan, "--requests", "coalesced"], "hot batches": [*plan, "--hot-batches", "--hot-order", "first"]}


def ablation(runs, sets):
    out = []
    for data in sets:
        for mpi in (False, True):
            found = {}
            for _ in range(runs.args.rounds):
                for name, options in variants(runs, data, data.caches[0]).items():
                    report = runs.train(data, *options, "--batch", data.batch, "--epochs", 20, "--steps", 24, mpi=mpi, traced=24)
                    for kind, phases in report["phases"].items():
                        if kind == "other" and name == "hot batches":
                            continue  # they come behind the hot ones
                        found.setdefault(name, []).append({**phases, "payload": payload(report)})
            for name, all_ in found.items():
                out.append({"data": data.name, "communicator": "mpi" if mpi else "threads", "variant": name,
                            **{key: statistics.median(one[key] for one in all_) for key in [*PHASES, "total", "payload"]}})
    return out


def doublings(runs, data):
    out = []
    found = {}
    sizes = [0] + [data.caches[0] // 2 * 2**i for i in range(5)]
    for _ in range(runs.args.rounds):
        for cached in sizes:
            options = ["--sharding", "row"] if cached == 0 else ["--sharding", "tiered", "--plan", runs.plan(data, cached)]
            report = runs.train(data, *options, "--batch", data.batch, "--epochs", 20, "--steps", 24, traced=24)
            coverage = 0 if cached == 0 else report["rows"]["dp"]["coverage"]
            found.setdefault(cached, []).append({**report["phases"]["other"], "payload": payload(report), "coverage": coverage})
    for cached, all_ in found.items():
        out.append({"data": data.name, "cached": cached, **{key: statistics.median(one[key] for one in all_) for key in [*PHASES, "total", "payload", "coverage"]}})
    return out


def batches(runs, sets):
    out = []
    for data in sets:
        plan = ["--sharding", "tiered", "--plan", runs.plan(data, data.caches[-1])]
        found = {}
        for _ in range(runs.args.rounds):
            for size in data.batches:
                for name, options in (("row", ["--sharding", "row"]), ("hot", [*plan, "--requests", "coalesced", "--hot-batches"])):
                    report = runs.train(data, *options, "--batch", size, "--epochs", data.epochs)
                    found.setdefault((size, name), []).append(report)
        for size in data.batches:
            def median(name, of, size=size):
                return statistics.median(of(report) for report in found[size, name])

            def step(kind):
                return lambda report: 1e3 * report["hot"][f"{kind}seconds"] / max(1, report["hot"][f"{kind}batches"])

            epoch = {name: median(name, lambda r: r["samples"] / r["samples_per_second"] / data.epochs) for name in ("row", "hot")}
            out.append({"data": data.name, "batch": size, "hot_share": found[size, "hot"][0]["hot"]["share"], "hot_step": median("hot", step("")),
                        "other_step": median("hot", step("other_")), "row_step": median("row", lambda r: 1e3 * r["samples"] / r["samples_per_second"] / r["steps"]),
                        "epoch": epoch["hot"], "row_epoch": epoch["row"]})
    return out


def quality(runs, sets):
    """AUC behind the last step. Steps are as many as the time holds, by the speed of runs of each setting."""
    out = []
    for data in sets:
        plan = ["--sharding", "tiered", "--plan", runs.plan(data, data.caches[-1])]
        settings = [(size, name, options) for size in data.batches[::2]
                    for name, options in (("row", ["--sharding", "row"]), ("coalesced", ["--sharding", "row", "--requests", "coalesced"]),
                                          ("hot batches", [*plan, "--hot-batches"]))]
        speeds = {}
        for _ in range(runs.args.rounds):
            for size, name, options in settings:
                report = runs.train(data, *options, "--batch", size, "--epochs", 50, "--steps", 40)
                speeds.setdefault((size, name), []).append(report["samples_per_second"] / report["samples"] * report["steps"])
        for seconds in runs.args.seconds:
            found = {}
            for seed in range(1, runs.args.seeds + 1):
                for size, name, options in settings:
                    steps = max(1, round(seconds * statistics.median(speeds[size, name])))
                    report = runs.train(data, *options, "--batch", size, "--epochs", 1000, "--steps", steps, "--seed", seed, test=True)
                    found.setdefault((size, name), []).append((report["epochs"][-1]["auc"], steps, report["samples"]))
            for (size, name), all_ in found.items():
                aucs = [auc for auc, _, _ in all_]
                out.append({"data": data.name, "seconds": seconds, "batch": size, "variant": name, "median": statistics.median(aucs), "least": min(aucs), "most": max(aucs),
                            "deviation": statistics.stdev(aucs), "steps": all_[0][1], "samples": all_[0][2]})
    return out


def table(head, lines):
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" if i == 0 else "---:" for i in range(len(head))) + " |")
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
    print()


def report(out):
    if "growth" in out:
        table(["law", "E", "b", "U(b)", "U(5b)/U(b)", "the same with 5E"],
              [(g["law"] + (f", scale {g['scale']}" if g["scale"] else ""), g["rows"], g["batch"], f"{g['unique']:.1f}", f"{g['tables_and_batch']:.3f}",
                f"{g['rows_and_batch']:.3f}") for g in out["growth"]])
    if "quarters" in out:
        table(["data", "cached rows", "hot samples", "first quarter", "second", "third", "fourth"],
              [(q["data"], q["cached"], f"{100 * q['hot_share']:.1f} %", *(f"{100 * share:.1f} %" for share in q["quarters"])) for q in out["quarters"]])

    def times(one):
        return [f"{one[phase]:.2f}" for phase in [*PHASES, "total"]] + [f"{one['payload'] / 1e6:.3f}"]
    if "ablation" in out:
        for data in dict.fromkeys(one["data"] for one in out["ablation"]):
            for communicator in ("threads", "mpi"):
                table([f"{data}, {communicator}", *PHASES, "total, ms", "MB"],
                      [(one["variant"], *times(one)) for one in out["ablation"] if (one["data"], one["communicator"]) == (data, communicator)])
    if "doublings" in out:
        table(["cached rows", "look-ups", *PHASES, "total, ms", "MB"], [(one["cached"], f"{one['coverage']:.1f} %", *times(one)) for one in out["doublings"]])
    if "batches" in out:
        table(["data", "batch", "hot samples", "hot step, ms", "other step, ms", "step of row, ms", "epoch, s", "epoch of row, s", "ratio"],
              [(b["data"], b["batch"], f"{100 * b['hot_share']:.1f} %", f"{b['hot_step']:.2f}", f"{b['other_step']:.2f}", f"{b['row_step']:.2f}", f"{b['epoch']:.2f}",
                f"{b['row_epoch']:.2f}", f"{b['row_epoch'] / b['epoch']:.2f}") for b in out["batches"]])
    if "quality" in out:
        table(["data", "seconds", "batch", "variant", "steps", "samples", "AUC, median", "from", "to", "deviation"],
              [(q["data"], q["seconds"], q["batch"], q["variant"], q["steps"], q["samples"], f"{q['median']:.4f}", f"{q['least']:.4f}", f"{q['most']:.4f}",
                f"{q['deviation']:.4f}") for q in out["quality"]])


def draw(out, path):
    """Stacked bars of a step's phases (threads), and the shares of each quarter."""
    colours = {"forward": "#1f5fa8", "backward": "#6c9fd8", "optimizer": "#b3541e", "exchange": "#c9c9c9"}
    svg = []

    def text(x, y, words, anchor="start", size=11):
        svg.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>')
    left, y = 130, 40
    for data in dict.fromkeys(one["data"] for one in out.get("ablation", [])):
        lines = [one for one in out["ablation"] if one["data"] == data and one["communicator"] == "threads"]
        most = max(sum(one[phase] for phase in PHASES) for one in lines)
        text(left, y - 12, f"{data}: milliseconds of a step, two ranks", size=14)
        for one in lines:
            text(left - 8, y + 14, one["variant"], "end")
            x = left
            for phase in PHASES:
                width = 560 * one[phase] / most
                svg.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{colours[phase]}"/>')
                x += width
            text(x + 6, y + 14, f"{sum(one[phase] for phase in PHASES):.1f} ms, {one['payload'] / 1e6:.2f} MB")
            y += 26
        y += 40
    x = left
    for phase in PHASES:
        svg.append(f'<rect x="{x}" y="{y - 30}" width="12" height="12" fill="{colours[phase]}"/>')
        text(x + 17, y - 20, phase)
        x += 100
    y += 30
    for q in out.get("quarters", []):
        text(left, y - 12, f"{q['data']}, {q['cached']} cached rows: share of samples with a row of each quarter; {100 * q['hot_share']:.1f} % have cached rows alone", size=13)
        for i, share in enumerate(q["quarters"]):
            text(left - 8, y + 13, ["first", "second", "third", "fourth"][i], "end")
            svg.append(f'<rect x="{left}" y="{y}" width="{500 * share:.1f}" height="16" fill="#a01c5c" fill-opacity="{1 - 0.2 * i:.1f}"/>')
            text(left + 500 * share + 6, y + 13, f"{100 * share:.1f} %")
            y += 21
        y += 36
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {y}" width="860" height="{y}" font-family="sans-serif">\n'
                   '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(svg) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="FOLDER")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given again. Unless given: all")
    parser.add_argument("--criteo", nargs="+", metavar="FILE", help="click logs in Criteo's format, plain or gzip")
    parser.add_argument("--criteo-test", nargs="+", metavar="FILE", help="others, to test on")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each setting, in turns")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 2.0], help="wall time of training, of quality")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error(f"--seeds {args.seeds}: give at least 2, a deviation needs them")
    wanted = args.only or PARTS
    clicks = Data("clicks", ["--samples", 262144, "--zipf", 1.6, "--data-seed", 1], 20000, 2048, 262144)
    clicks.caches, clicks.batches, clicks.epochs = [8192, 65536], [512, 1024, 2048, 4096, 8192], 1
    clicks.test, clicks.no_test = ["--test-samples", 16384], ["--test-samples", 0]
    sets = [clicks]
    if args.criteo:
        criteo = Data("criteo", ["--data", *args.criteo], 20000, 256, None)
        criteo.files, criteo.caches, criteo.batches, criteo.epochs = args.criteo, [5000, 10000], [64, 128, 256, 512, 1024], 5
        criteo.test, criteo.no_test = ["--test", *args.criteo_test] if args.criteo_test else [], []
        sets.append(criteo)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(args, folder)
        of = {"ablation": 2 * 5 * args.rounds * len(sets), "doublings": 6 * args.rounds, "batches": sum(2 * len(d.batches) for d in sets) * args.rounds,
              "quality": sum(len(d.batches[::2]) * 3 for d in sets) * (args.rounds + len(args.seconds) * args.seeds)}
        runs.total = sum(of.get(part, 0) for part in wanted)
        parts = {"growth": lambda: growth(runs), "quarters": lambda: quarters(runs, sets), "ablation": lambda: ablation(runs, sets), "doublings": lambda: doublings(runs, clicks),
                 "batches": lambda: batches(runs, sets), "quality": lambda: quality(runs, sets)}
        out = {part: parts[part]() for part in PARTS if part in wanted}
        print(file=sys.stderr)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
    if args.svg:
        draw(out, args.svg)
    report(out)


if __name__ == "__main__":
    main()
