# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import pathlib
import re

from programs import main, run, write_profile

LAWS = [word for t in range(8) for word in ("--law", f"zipf:{2000 * (t + 1)}:1.05:{1 + 5 * (t % 4)}")]
SMALL = [*LAWS, "--hosts", 2, "--ranks-per-host", 4, "--batch", 256, "--dim", 16]


def plan(*arguments):
    text = run(*arguments, "--json", "groups.json")
    with open("groups.json", encoding="utf-8") as file:
        return json.load(file), text


def help_():
    text = run("--help")
    for part in ("--law", "--profile", "--distribution", "--dim", "--hosts", "--ranks-per-host", "--host-bandwidth", "--cross-bandwidth", "--host-latency",
                 "--cross-latency", "--memory", "--batch", "--compute", "--lookup-rate", "--other-memory", "--prefetch", "--sharding", "--collective", "--optimizer",
                 "--pooling", "--requests", "--groups", "--group-placement", "--sync-every", "--sync", "--svg", "--json", "Exit status"):
        assert part in text, part


def choices():
    """Every number of groups that there is: fewer ranks share more evenly, tables and syncs grow, and the best is the fastest that fits."""
    r, text = plan(*SMALL, "--sharding", "col1", "--compute", 1, "--lookup-rate", 1)
    found = {(c["groups"], c["group_placement"]): c for c in r["choices"]}
    assert list(found) == [(1, None), (2, "across"), (2, "inside"), (4, "across"), (4, "inside"), (8, "across")], list(found)
    across = [found[1, None]] + [found[m, "across"] for m in (2, 4, 8)]
    for fewer, more in zip(across, across[1:]):
        assert more["imbalance"] <= fewer["imbalance"] + 1e-9 and more["memory"]["mean"] > fewer["memory"]["mean"]
        assert more["memory"]["overhead"] > fewer["memory"]["overhead"]
    assert across[0]["imbalance"] > 1.5 and abs(across[3]["imbalance"] - 1) < 1e-9
    assert across[0]["seconds"]["sync"] == 0 and across[0]["memory"]["syncs"] == 0 and across[3]["seconds"]["exchange"] < across[0]["seconds"]["exchange"]
    for m in (2, 4):  # copies on one host are synced over its faster links
        assert found[m, "inside"]["seconds"]["sync"] < 0.5 * found[m, "across"]["seconds"]["sync"]
    for c in r["choices"]:
        assert c["refused"] is None and c["fits"]
        s, m = c["seconds"], c["memory"]
        assert abs(s["compute"] + s["lookup"] + s["exchange"] + s["sync"] - s["step"]) < 1e-12 and s["compute"] == 1e-3
        assert m["tables"] + m["moments"] + m["flights"] + m["syncs"] + m["other"] == m["peak"] >= m["mean"]
        assert abs(c["samples_per_second"] * s["step"] - 256 * 8) < 1e-6
    fastest = min(range(6), key=lambda i: r["choices"][i]["seconds"]["step"])
    assert r["best"] == fastest and text.count("<- best") == 1
    assert [b["groups"] for b in r["balance"]] == [1, 2, 4, 8] and all(b["best"] <= b["greedy"] + 1e-12 for b in r["balance"])
    assert "Placement by load" in text and "a gap of" in text
    row, text = plan(*SMALL, "--sharding", "row")
    assert row["balance"] == [] and "Placement by load" not in text


def memory():
    """What does not fit is said and not chosen."""
    r, _ = plan(*SMALL)
    peaks = [c["memory"]["peak"] for c in r["choices"]]
    room = sorted(peaks)[3]
    some, text = plan(*SMALL, "--memory", room / 1e9)
    assert [c["fits"] for c in some["choices"]] == [peak <= room for peak in peaks] and text.count("does not fit") == sum(peak > room for peak in peaks) > 0
    assert some["choices"][some["best"]]["fits"]
    none, text = plan(*SMALL, "--memory", 1e-6)
    assert none["best"] is None and "No number of groups fits into 1 kB a rank." in text
    other, _ = plan(*SMALL, "--other-memory", 1)
    assert all(abs(c["memory"]["peak"] - peak - 1e9) < 1 for c, peak in zip(other["choices"], peaks))
    twice, _ = plan(*SMALL, "--prefetch")
    for c, before in zip(twice["choices"], r["choices"]):
        assert c["memory"]["flights"] >= 1.9 * before["memory"]["flights"] and c["memory"]["tables"] == before["memory"]["tables"]


def syncs():
    """Rarer syncs cost less a step; syncs of all rows cost most."""
    r, _ = plan(*SMALL, "--groups", "1,2", "--group-placement", "across", "--sync-every", "1,8")
    assert [(c["groups"], c["sync_every"]) for c in r["choices"]] == [(1, None), (2, 1), (2, 8)]
    one, eight = (c["seconds"]["sync"] for c in r["choices"][1:])
    assert one / 8 < eight < one
    every, _ = plan(*SMALL, "--groups", 2, "--group-placement", "across", "--sync", "all")
    assert every["choices"][0]["seconds"]["sync"] > one and every["choices"][0]["memory"]["syncs"] > 0


def profile():
    """From a profile, with names."""
    write_profile("p", 100, {"a": (50, 200, 0, {3: 120, 4: 80}), "b": (9, 100, 0, {i: 10 + (i == 0) * 10 for i in range(9)})})
    r, text = plan("--profile", "p", "--batch", 8, "--hosts", 1, "--ranks-per-host", 2, "--dim", 4)
    assert [(c["groups"], c["group_placement"]) for c in r["choices"]] == [(1, None), (2, "across"), (2, "inside")] and "2 tables of 59 rows" in text


def picture():
    run(*SMALL, "--memory", 0.002, "--svg", "p.svg")
    svg = pathlib.Path("p.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg") and svg.endswith("</svg>\n")
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="#[0-9a-f]+"', svg)
    assert len(bars) == 6 * (5 + 4), len(bars)
    for x, y, width, height in (tuple(map(float, bar)) for bar in bars):
        assert 80 <= x and x + width <= 1000 and 56 <= y <= 376.1 and y + height <= 376.2, (x, y, width, height)
    assert "2 inside" in svg and "A step by its parts" in svg


def bad_usage():
    for arguments, text in (
            ([], "no table to plan for"),
            (LAWS, "--batch is not given: say how many samples a rank has in a step"),
            ([*LAWS, "--collective", "bounded_lag"], "--collective bounded_lag is for inference"),
            ([*SMALL, "--batch", 0], "--batch 0: give at least 1"),
            ([*SMALL, "--groups", 0], "--groups 0: give at least 1"),
            ([*SMALL, "--sync-every", 0], "--sync-every 0: give at least 1"),
            ([*SMALL, "--group-placement", "some"], "--group-placement some: give across, inside or both"),
            ([*SMALL, "--sync", "some"], "--sync some: give touched or all"),
            ([*SMALL, "--memory", 0], "--memory 0: give a number above 0"),
            ([*SMALL, "--lookup-rate", 0], "--lookup-rate 0: give a number above 0"),
            ([*SMALL, "--compute", -1], "--compute -1: give 0 or more"),
            ([*SMALL, "--hosts", 0], "0 hosts"),
            ([*SMALL, "--sharding", "cols"], "sharding 'cols': there is no such policy; give one of row, col, table, dp, flex, col1"),
            ([*SMALL, "--batch", 9223372036854775807], "--batch 9223372036854775807: give at most 2147483647"),
            ([*SMALL, "--compute", "inf"], "--compute inf: give 0 or more"),
            ([*SMALL, "--groups", 1, "--sync", "all"], "--sync with one group alone has no effect: leave it out"),
            ([*SMALL, "--groups", 3], "3 groups across hosts"),
            ([*SMALL, "--nothing"], "plan_groups --help shows all options")):
        error = run(*arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error
    _, text = plan(*SMALL, "--groups", "2,3")
    assert "3 across" in text and "not possible: 3 groups across hosts" in text and "give one of 1, 2, 4, 8" in text


main({"help": help_, "choices": choices, "memory": memory, "syncs": syncs, "profile": profile, "picture": picture, "bad_usage": bad_usage})
