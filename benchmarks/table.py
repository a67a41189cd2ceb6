#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what benchmarks reported as a table of Markdown.

    bench_lookup --benchmark_format=json >lookup.json
    bench_update --benchmark_format=json >update.json
    table.py lookup.json update.json
"""

import json
import sys


def rows(path):
    with open(path) as file:
        for one in json.load(file)["benchmarks"]:
            name, *arguments = one["run_name"].split("/")
            values = dict(argument.split(":") for argument in arguments if ":" in argument and "iterations" not in argument)
            rate = one.get("read_rate") or one.get("rmw_rate")
            yield [name, values["dim"], values["bag"], "Zipf" if values["zipf"] == "1" else "uniform",
                   f'{one["median_ms"]:.2f}', f'{one["ceiling_ratio"]:.2f}',
                   f'{one["ratio_low"]:.2f} to {one["ratio_high"]:.2f}', f"{rate / 1e9:.1f}" if rate else ""]


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    head = ["", "dim", "bag", "ids", "median ms", "of the ceiling", "quartiles", "bare GB/s"]
    table = [head, ["---"] * len(head)] + [row for path in sys.argv[1:] for row in rows(path)]
    for row in table:
        print("| " + " | ".join(row) + " |")


main()
