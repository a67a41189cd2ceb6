#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulates the exchanges of a training step on a sequence table whose rows are in one, two or three tiers, and prints FlexShard's Table 6
and Figure 7 beside what the paper published.

    cmake --preset simgrid && cmake --build --preset simgrid --target exchange_schedule replay_smpi
    benchmarks/cluster/rows.py --json rows.json

exchange_schedule writes the rounds of a step as the library's expectation reader says them for a law of look-ups (no id is drawn),
and replay sends them over SimGrid's SMPI: once as the library does, all tiers together in each round, and once each tier by itself,
since the paper times each collective by itself. The laws are those that reproduce the paper's Table 5: of RM-1 and RM-3. RM-2 and RM-4 have
the same table sizes, but no law of theirs is known.

Links follow from the paper's times, as bytes that leave a GPU over time less a constant: 25.8 GB/s in the all-to-all of all GPUs and
75.5 inside hosts. A GPU's port inside a host has the latter; its port across hosts has what makes the former of an all-to-all whose
parts are equal. The all-reduces get no links of their own.

pair: one partner after the other, as collectives work that go pair by pair; post: everything at once, an ideal network.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import sweep

# Of the paper's tables, row i of 1 to E: a power law in four pieces, DP ending where Flex takes less memory.
LAWS = {"RM-1": "slopes:30000000:100064:346144:1284608:0.00128173828125:0.643688:1.087021:1.081441:1.025404",
        "RM-3": "slopes:10000000:36704:115296:355264:0.00128173828125:0.573397:0.849764:0.915061:0.890823"}
SETTING = {"hosts": 4, "batch": 4096, "dim": 256}
WAYS = {"row": ["--sharding", "row"],
        "flex": ["--sharding", "flex"],
        "2-tier": ["--sharding", "tiered", "--tiers", "dp,row", "--apart"],
        "3-tier": ["--sharding", "tiered", "--tiers", "dp,flex,row", "--cut", "flex", "--apart"]}
# Table 6: elements in each direction, then ms of the all-to-all of all GPUs, of that inside hosts, and of the all-reduces of
# all GPUs and across hosts.
PAPER = {("RM-1", "row"): (972_424_960, 307, None, None, None), ("RM-1", "2-tier"): (450_510_848, 149, None, 3, None),
         ("RM-1", "3-tier"): (297_697_024, 99, 30, 3, 14), ("RM-3", "row"): (466_826_496, 156, None, None, None),
         ("RM-3", "2-tier"): (311_369_728, 101, None, 4, None), ("RM-3", "3-tier"): (246_077_440, 85, 13, 2, 5)}
TIMES = ["global_all_to_all", "intra_all_to_all", "global_all_reduce", "cross_all_reduce"]
# GB/s of bytes that leave a GPU, fitted to all times of Table 6 with a constant each (8.3 and 1.4 ms).
ALL_TO_ALL = {"global": 25.8, "intra": 75.5}


def links(hosts, order):
    """GB/s a GPU inside a host and across: with these, all-to-alls of equal parts have the paper's rates."""
    others = hosts * sweep.RANKS_A_HOST - 1
    inside = (sweep.RANKS_A_HOST - 1) / others
    left = 1 / ALL_TO_ALL["global"] - (inside / ALL_TO_ALL["intra"] if order == "pair" else 0)  # ns a byte across
    return {"host": ALL_TO_ALL["intra"], "cross_host": (1 - inside) / left}


def paper_of(setting, model, way):
    """{what: its number}, None where the paper has none."""
    same = all(setting[name] == value for name, value in SETTING.items())
    elements, *times = PAPER[model, way] if same and (model, way) in PAPER else (None,) * 5
    return {"elements": elements, **dict(zip(TIMES, times))}


def schedule_of(build, setting, law, way, path):
    command = [os.path.join(build, "benchmarks/exchange_schedule"), "--hosts", setting["hosts"], "--ranks-per-host",
               sweep.RANKS_A_HOST, "--batch", setting["batch"], "--dim", setting["dim"], "--law", law, "--pooling", "none",
               "--collective", "flat", *WAYS[way], "--out", path]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(ran.stderr.strip())
    return json.loads(ran.stdout)


def measure(build, setting, model, law, way, order):
    """One record a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "schedule")
        schedule = schedule_of(build, setting, law, way, path)
        us = sweep.simulate(build, folder, links(setting["hosts"], order), setting["hosts"], path, order, 0.0, 0)
    of = {tier: "" if len(schedule["tiers"]) == 1 else tier + "/" for tier in schedule["tiers"]}  # alone: all rounds
    times, elements, ranks = {}, 0, setting["hosts"] * sweep.RANKS_A_HOST
    if "row" in of:
        times["global_all_to_all"] = us[of["row"] + "vectors"] + us[of["row"] + "gradients"]
        home = next(r for r in schedule["rounds"] if r["kind"] == "vectors" and r.get("tier") == ("row" if of["row"] else None))
        elements = (home["host"]["payload"] + home["cross_host"]["payload"]) / ranks / 4
    if "flex" in of:
        times["intra_all_to_all"] = us[of["flex"] + "vectors"] + us[of["flex"] + "gradients"]
        times["cross_all_reduce"] = us[of["flex"] + "sums"]
    if "dp" in of:
        times["global_all_reduce"] = us[of["dp"] + "sums"]
    return {"model": model, "law": law, "way": way, "order": order, **setting, "links": links(setting["hosts"], order),
            "tiers": schedule["tiers"], "elements": elements, "ms": {name: 1e-3 * times.get(name, 0) for name in TIMES},
            "ids_ms": 1e-3 * us["ids"], "step_ms": 1e-3 * sum(t for kind, t in us.items() if "/" not in kind),
            "megabytes": {tier: sum(r[tier]["payload"] + r[tier]["control"] for r in schedule["rounds"]
                                    if "tier" not in r) / ranks / 1e6 for tier in ("host", "cross_host")},
            "paper": paper_of(setting, model, way)}


def total(ms, overlapped):
    """Of a step's vectors, gradients and sums. Overlapped: what stays inside hosts, and Flex's sums, cost nothing; no time is None."""
    names = ["global_all_to_all", "global_all_reduce"] if overlapped else TIMES
    return sum(ms[name] or 0 for name in names) or None


def ratio(base, own):
    return None if base is None or own is None else base / own


def gains(records):
    """Figure 7: one entry a model and tiers, how many times as fast as row."""
    row = {r["model"]: r for r in records if r["way"] == "row"}
    found = []
    for r in records:
        base = row.get(r["model"])
        if r["way"] == "row" or base is None:
            continue
        found.append({"model": r["model"], "way": r["way"], "step": base["step_ms"] / r["step_ms"],
                      **{name: ratio(total(base["ms"], over), total(r["ms"], over))
                         for name, over in (("overlapped", True), ("not", False))},
                      **{"paper_" + name: ratio(total(base["paper"], over), total(r["paper"], over))
                         for name, over in (("overlapped", True), ("not", False))}})
    return found


def text(number, digits=1):
    return "-" if number is None else f"{number:.{digits}f}"


def markdown(records):
    lines = ["| model | tiers | rows in dp, flex | million elements each direction | reduction % | global all-to-all ms "
             "| all-to-all inside hosts ms | all-reduce of dp ms | all-reduce of flex ms | ids ms | the library's step ms |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    row = {r["model"]: r for r in records if r["way"] == "row"}
    for r in records:
        base, paper, ms = row[r["model"]], r["paper"], r["ms"]

        def saved(now, before):
            return None if r["way"] == "row" or now is None or before is None else 100 * (1 - now / before)
        tiers = {name: tier["rows"] for name, tier in r["tiers"].items()}
        cells = [r["model"], r["way"], ", ".join(f"{tiers[t]:,}" for t in ("dp", "flex") if t in tiers) or "-"]
        million = None if paper["elements"] is None else paper["elements"] / 1e6
        cells.append(f"{text(million)}, {r['elements'] / 1e6:.1f}")
        cells.append(f"{text(saved(paper['elements'], base['paper']['elements']))}, {text(saved(r['elements'], base['elements']))}")
        cells += [f"{text(paper[name], 0)}, {text(ms[name] or None)}" for name in TIMES]
        cells += [text(r["ids_ms"]), text(r["step_ms"])]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| model | tiers | times as fast as row, overlapped | not overlapped | the library's step |",
              "| --- | --- | ---: | ---: | ---: |"]
    lines += [f"| {g['model']} | {g['way']} | {text(g['paper_overlapped'], 2)}, {text(g['overlapped'], 2)} "
              f"| {text(g['paper_not'], 2)}, {text(g['not'], 2)} | {text(g['step'], 2)} |" for g in gains(records)]
    return "\n".join(lines)


def draw(records, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    bars = [g for g in gains(records) if g["overlapped"] is not None]  # as in the paper: of tiers
    looks = [("paper_overlapped", "paper, overlapped", "#9fb8d6"), ("overlapped", "simulated, overlapped", "#1f5fa8"),
             ("paper_not", "paper, not overlapped", "#e8c4a6"), ("not", "simulated, not overlapped", "#b3541e"),
             ("step", "simulated, the library's rounds with ids", "#555555")]
    looks = [look for look in looks if any(g[look[0]] is not None for g in bars)]
    figure, axis = plt.subplots(figsize=(8.4, 4.2))
    width = 0.8 / len(looks)
    for i, (name, label, color) in enumerate(looks):
        at = [b + (i - (len(looks) - 1) / 2) * width for b in range(len(bars))]
        drawn = axis.bar(at, [g[name] or 0 for g in bars], width, color=color, label=label)
        axis.bar_label(drawn, ["" if g[name] is None else f"{g[name]:.2f}" for g in bars], fontsize=7, padding=1)
    axis.axhline(1, color="#444444", linewidth=0.8, linestyle="--")
    axis.set_xticks(range(len(bars)), [f"{g['model']}, {g['way']}" for g in bars])
    axis.set_ylabel("times as fast as all rows in row")
    axis.set_ylim(0, 1.3 * max(g[name] or 0 for g in bars for name, _, _ in looks))
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.legend(fontsize=8, ncols=2, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(LAWS), help="whose laws to take (default: all)")
    parser.add_argument("--law", metavar="LAW", help="a law as plan_rows takes it, in place of models")
    for name, of in (("hosts", "hosts of 8 GPUs"), ("batch", "samples a GPU"), ("dim", "columns")):
        parser.add_argument("--" + name, type=int, default=SETTING[name],
                            help=f"{of} (default {SETTING[name]}; the paper's figures are of all three defaults)")
    parser.add_argument("--order", choices=["pair", "post"], default="pair")
    parser.add_argument("--build", default=os.path.join(sweep.ROOT, "build/simgrid"), metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    parser.add_argument("--svg", metavar="FILE", help="draw Figure 7 (needs matplotlib)")
    parser.add_argument("--read", metavar="FILE", help="simulate nothing: print or draw what --json wrote")
    args = parser.parse_args()
    if args.hosts < 2:
        parser.error(f"--hosts {args.hosts}: give at least 2, since the paper's all-to-all crosses hosts")
    if args.law and args.models:
        parser.error("--models has no effect with --law: leave one of them out")
    if args.read and (args.law or args.models or args.order != "pair" or any(getattr(args, n) != v for n, v in SETTING.items())):
        parser.error("--read simulates nothing: leave out what says what to simulate")
    if args.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("--svg needs matplotlib: pip install matplotlib, or leave it out")
    if args.read:
        with open(args.read, encoding="utf-8") as file:
            records = json.load(file)
    else:
        setting = {name: getattr(args, name) for name in SETTING}
        laws = {"law": args.law} if args.law else {model: LAWS[model] for model in args.models or LAWS}
        turns = [(model, way) for model in laws for way in WAYS]
        records, begin = [], time.time()
        for i, (model, way) in enumerate(turns):
            print(f"{model}, {way} ({i} of {len(turns)} done, {time.time() - begin:.0f} s)", file=sys.stderr, flush=True)
            records.append(measure(args.build, setting, model, laws[model], way, args.order))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)
    print(markdown(records))
    if args.svg:
        draw(records, args.svg)


if __name__ == "__main__":
    main()
