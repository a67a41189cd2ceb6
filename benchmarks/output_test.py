#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark prints: a row has one time, GB/s and of_ceiling, and says the same as its JSON and table.py. It lists its
options, and refuses what is no number and a filter that nothing matches.

    output_test.py bench_lookup
"""

import json
import os
import re
import subprocess
import sys
import tempfile

RUN = [sys.argv[1], "--rows=1000", "--quick=1", "--benchmark_filter=dim:16/bag:1/"]


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def refused(*arguments, command=(sys.argv[1],)):
    """What it says when it ends with status 2."""
    run = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2, run
    return run.stderr


def main():
    text = output(sys.argv[1], "--help")
    assert all(option in text for option in ("--tables=N", "--samples=N", "--ceiling=0", "--benchmark_filter")), text
    for wrong in ("--tables=x", "--rows=3.7", "--samples=2x", "--ceiling=maybe", "--quick="):
        assert f"{wrong}: give a whole number" in refused(wrong), wrong
    assert "give at least 1" in refused("--tables=0")
    refused("--rows=1000", "--benchmark_filter=nothing")

    text = output(*RUN)
    assert "time: the median run" in text and "of_ceiling: the time of a bare loop" in text, text
    head = re.search(r"^ +time +GB/s +of_ceiling +more$", text, re.M)
    rows = re.findall(r"^(lookup|forward)/\S+ +([0-9.]+ (?:ns|us|ms|s)) +([0-9.]+)  ([0-9.]+) \(([0-9.]+) to ([0-9.]+)\)(.*)$", text, re.M)
    assert head and len(rows) == 4, text
    for _, _, rate, of_ceiling, low, high, more in rows:
        assert float(rate) > 0 and 0 < float(low) <= float(high) and float(of_ceiling) > 0, text
        assert "iterations" not in more and "_ms" not in more, more  # one time
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lookup.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(output(*RUN, "--benchmark_format=json"))
        with open(path, encoding="utf-8") as file:
            runs = json.load(file)["benchmarks"]
        to_table = (sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.py"))
        table = output(*to_table, path)
        assert table.startswith("8 tables of 1000 rows, 8192 samples.\n"), table
        assert refused(os.path.join(folder, "nope.json"), command=to_table).endswith("nope.json: cannot be read: No such file or directory\n")
        assert "table.py lookup.json" in output(*to_table, "--help")
    for one in runs:
        assert one["GB_per_s"] > 0 and one["of_ceiling_low"] <= one["of_ceiling_high"], one
        assert f'| {one["median_ms"]:.2f} | {one["of_ceiling"]:.2f} |' in table, table


main()
