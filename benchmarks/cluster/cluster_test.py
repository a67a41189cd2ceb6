# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exchange_schedule writes what the paper's formulas say, and replay sends it over MPI; both say what is wrong with their input."""

import json
import os
import subprocess
import sys
import tempfile

SCHEDULE, REPLAY, MPIEXEC = sys.argv[1:4]


def schedule(*arguments, status=0):
    ran = subprocess.run([SCHEDULE, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == status, (arguments, ran)
    return json.loads(ran.stdout) if status == 0 else ran.stderr


def replay(*arguments, ranks=4, status=0):
    ran = subprocess.run([MPIEXEC, "-n", str(ranks), REPLAY, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (ran.returncode == 0) == (status == 0), (arguments, ran)
    return ran.stdout if status == 0 else ran.stderr


def payload(report, kind, tier):
    return sum(f[tier]["payload"] for f in report["rounds"] if f["kind"] == kind)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    hosts, ranks, batch, features, dim = 4, 2, 1024, 8, 32
    shape = ["--hosts", hosts, "--ranks-per-host", ranks, "--batch", batch, "--features", features, "--dim", dim]
    vectors = batch * features * dim * 4 * hosts * ranks  # of all ranks: V a rank
    flat = schedule(*shape, "--collective", "flat", "--sharding", "col")
    sptt = schedule(*shape, "--collective", "hierarchical", "--sharding", "col")
    for report in (flat, sptt):  # V (1 - 1/T) crosses hosts, each way
        for kind in ("vectors", "gradients"):
            assert payload(report, kind, "cross_host") == vectors * (hosts - 1) // hosts, report
    for compression in (2, 4, 8):
        modules = schedule(*shape, "--collective", "modules", "--sharding", "col", "--compression", compression)
        assert payload(modules, "vectors", "cross_host") * compression == payload(sptt, "vectors", "cross_host")
        assert payload(modules, "ids", "cross_host") == payload(sptt, "ids", "cross_host")
    # the model that the paper measures, and with D = 64
    assert abs(schedule("--hosts", 2, "--batch", 64)["mflops"] - 14.738) < 0.02
    assert abs(schedule("--hosts", 2, "--batch", 64, "--collective", "modules", "--sharding", "col", "--compression", 2)["mflops"]
               - 8.953) < 0.02

    # replica groups: exchanges inside them, and behind them syncs of copies, of all rows to the byte
    for groups, placement, link in ((2, "across", "cross_host"), (4, "across", "cross_host"), (2, "inside", "host")):
        grouped = schedule(*shape, "--sharding", "row", "--rows", 4096, "--groups", groups, "--group-placement", placement, "--sync", "all")
        kinds = [r["kind"] for r in grouped["rounds"]]
        assert kinds == ["ids", "vectors", "gradients", "sync_copies", "sync_means"], kinds
        table_bytes = features * 4096 * dim * 4
        for kind in ("sync_copies", "sync_means"):
            assert payload(grouped, kind, link) == table_bytes * (groups - 1), (grouped, groups)
            assert payload(grouped, kind, "host" if link == "cross_host" else "cross_host") == 0
        touched = schedule(*shape, "--sharding", "row", "--rows", 4096, "--groups", groups, "--group-placement", placement)
        assert [r["kind"] for r in touched["rounds"]][3:] == ["sync_rows", "sync_copies", "sync_means"], touched
        assert 0 < payload(touched, "sync_means", link) < table_bytes * (groups - 1)
        if placement == "across" and groups == hosts:  # a group is a host
            assert payload(grouped, "vectors", "cross_host") == 0
    law = schedule("--hosts", 2, "--ranks-per-host", 2, "--batch", 64, "--law", "zipf:1000:1:4", "--sharding", "row", "--groups", 2, "--sync-every", 4)
    assert [r["kind"] for r in law["rounds"]][3:] == ["sync_rows", "sync_copies", "sync_means"], law

    whole, blocks = (schedule("--hosts", 2, "--ranks-per-host", 2, "--batch", 64, "--law", "zipf:1000:1:4", "--law", "zipf:1000:1:1", "--sharding", sharding)
                     for sharding in ("col1", "col4"))
    ids, vectors = ([sum(payload(r, kind, link) for link in ("host", "cross_host")) for r in (whole, blocks)] for kind in ("ids", "vectors"))
    assert 3 * ids[0] < ids[1] <= 4 * ids[0] * 1.4 and vectors[0] <= vectors[1] * 1.4, (ids, vectors)

    report = schedule("--hosts", 2, "--ranks-per-host", 2, "--batch", 64, "--collective", "hierarchical", "--sharding", "table",
                      "--out", "schedule")
    for order in ("pair", "post"):
        lines = replay("schedule", order, 2, 1000).splitlines()
        assert [line.split()[0] for line in lines] == [f["kind"] for f in report["rounds"]] + ["reduction"], lines
        assert all(float(line.split()[1]) > 0 for line in lines), lines

    assert "give one of flat/col" in schedule("--collective", "flat", "--sharding", "rows", status=2)
    assert "--compression 3: give a divisor of --dim 128" in schedule("--collective", "modules", "--sharding", "col",
                                                                    "--compression", 3, status=2)
    assert "--batch 100: give a multiple of 64" in schedule("--batch", 100, status=2)
    assert "has no effect" in schedule("--compression", 2, status=2)
    assert "--sync without --groups has no effect" in schedule("--sync", "all", status=2)
    assert "--sync 'some': give touched or all" in schedule("--groups", 2, "--sync", "some", status=2)
    assert "give one of 1, 2, 4" in schedule("--hosts", 2, "--ranks-per-host", 2, "--batch", 64, "--groups", 3, status=2)
    assert "cannot be written" in schedule("--out", "/no/such/folder/x", status=2)
    assert "is for 4 ranks, and there are 2" in replay("schedule", "pair", ranks=2, status=1)
    assert "usage: replay" in replay("schedule", "ring", status=1)
    assert "cannot be read" in replay("nowhere", "pair", status=1)
