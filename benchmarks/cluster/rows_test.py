# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rounds that laws expect have the sizes of FlexShard's formulas, and over the simulated network the times of its links."""

import os
import subprocess
import sys
import tempfile

import rows
import sweep

BUILD = sys.argv[1]
LAW = "zipf_mandelbrot:50000:1:150:7"  # no shard has much more than others
SETTING = {"hosts": 2, "batch": 256, "dim": 1024}
RANKS = SETTING["hosts"] * sweep.RANKS_A_HOST


def near(found, expected, share):
    assert abs(found - expected) <= share * abs(expected), (found, expected)


def refused(sentence, *arguments):
    ran = subprocess.run([os.path.join(BUILD, "benchmarks/exchange_schedule"), *arguments], capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 2 and sentence in ran.stderr and ran.stderr.count("\n") == 1, (arguments, ran)


def sent(schedule, tier, kind, link):
    return sum(r[link]["payload"] for r in schedule["rounds"] if r.get("tier") == tier and r["kind"] == kind)


whole = 256 * sum(7 / (i + 150) for i in range(1, 50001)) * 1024  # B L D
for order in ("pair", "post"):
    ports = rows.links(SETTING["hosts"], order)
    records = {way: rows.measure(BUILD, SETTING, "law", LAW, way, order) for way in rows.WAYS}
    row, two, three = records["row"], records["2-tier"], records["3-tier"]
    near(row["elements"], whole * (RANKS - 1) / RANKS, 0.01)
    for tiered in (two, three):
        covered = tiered["tiers"]["row"]["coverage"] / 100
        assert 0.05 < covered < 0.8, tiered
        near(tiered["elements"] / row["elements"], covered, 0.01)
    near(sum(t["coverage"] for t in three["tiers"].values()), 100, 1e-9)
    assert sum(t["rows"] for t in three["tiers"].values()) == 50000, three
    # as fast as the all-to-alls that the links are fitted to, but for a message's latency (5 and 2 us, each way)
    latency = 2e-3 * ((RANKS - 8) * 5 + 7 * 2 if order == "pair" else 5)
    for r in (row, two, three):
        near(r["ms"]["global_all_to_all"], 8e-6 * r["elements"] / rows.ALL_TO_ALL["global"] + latency, 0.03)
    for r in (records["flex"], three):
        inside = 2 * 4 * whole * r["tiers"]["flex"]["coverage"] / 100 * 7 / 8
        near(r["ms"]["intra_all_to_all"], 1e-6 * inside / rows.ALL_TO_ALL["intra"] + 2e-3 * (7 * 2 if order == "pair" else 2), 0.03)
    assert records["flex"]["elements"] == records["flex"]["ms"]["global_all_to_all"] == 0 < records["flex"]["ms"]["cross_all_reduce"]
    # across, no step is faster than what its bytes take
    assert three["step_ms"] > 1e3 * three["megabytes"]["cross_host"] * 1e-3 / ports["cross_host"], three
    assert [g["overlapped"] > 1.1 for g in rows.gains([row, two, three])] == [True, True], records
    assert len(rows.markdown([row, two, three]).splitlines()) == 2 + 3 + 1 + 2 + 2

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "schedule")
    schedule = rows.schedule_of(BUILD, SETTING, LAW, "3-tier", path)
    for link in ("host", "cross_host"):  # the tiers' parts are all that there is, each rounded to whole bytes
        near(sum(r[link]["payload"] for r in schedule["rounds"] if "tier" in r),
             sum(r[link]["payload"] for r in schedule["rounds"] if "tier" not in r), 1e-6)
    assert sent(schedule, "flex", "vectors", "cross_host") == 0 < sent(schedule, "flex", "sums", "cross_host")
    assert sent(schedule, "dp", "vectors", "host") == 0 < sent(schedule, "dp", "sums", "host")
    assert sent(schedule, "row", "vectors", "cross_host") == sent(schedule, "row", "gradients", "cross_host") > 0
    ways, sums = list(rows.WAYS["3-tier"]), {}
    for reduction in ("auto", "touched", "dense"):
        rows.WAYS["3-tier"] = [*ways, "--reduction", reduction]
        schedule = rows.schedule_of(BUILD, SETTING, LAW, "3-tier", path)
        sums[reduction] = sum(sent(schedule, tier, "sums", link) for tier in ("dp", "flex") for link in ("host", "cross_host"))
    assert sums["touched"] != sums["dense"] and sums["auto"] <= min(sums["touched"], sums["dense"]), sums

law = ["--law", LAW, "--hosts", "2", "--batch", "256"]
refused("--rows has no effect with --law", *law, "--sharding", "row", "--rows", "5")
refused("--cut has no effect with --tiers dp,row", *law, "--sharding", "tiered", "--tiers", "dp,row", "--cut", "row")
refused("--tiers has no effect with --sharding row", *law, "--sharding", "row", "--tiers", "dp,row")
refused("--pooling has no effect without --law", "--pooling", "none")
refused("--sharding flex needs --law", "--sharding", "flex")
refused("--tiers row: give one of", *law, "--sharding", "tiered", "--tiers", "row")
refused("modules", *law, "--sharding", "row", "--collective", "modules")
