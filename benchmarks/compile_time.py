#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler takes: for each public header its front end alone, for translation units the whole compilation.

    compile_time.py                              every public header
    compile_time.py core/ shardwise.hpp          those whose path contains one of these
    compile_time.py --units                      every translation unit of the examples, and of the laws' tests
    compile_time.py --units benchmarks/ tests/   those whose path contains one of these
    compile_time.py --all --markdown             headers and units, as tables of Markdown

Seconds are those of one processor, in the compiler and all that it starts: other programs do not count. The commands are
those of a configured build tree (`cmake --preset test`), without the compiler launcher. A report, not a test: what is
over its budget is marked, and nothing fails.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

MARKER = "_verify_interface_header_sets/"
UNITS = ["examples/", "tests/laws/"]
UMBRELLA = "shardwise/shardwise.hpp"
BUDGET_MIB = 2048
WITH_ARGUMENT = {"-o", "-MT", "-MF", "-MQ"}
ALONE = {"-MD", "-MMD"}


def budget_seconds(name):
    """The budget of the umbrella header, of a translation unit, or None: any other header has none of its own."""
    if name == UMBRELLA:
        return 2.0
    return None if name.endswith((".hpp", ".cuh")) else 45.0


def commands(build, units):
    """Name -> (command, folder) of headers, or of translation units; no command writes anything yet."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = {}
    for entry in entries:
        path = entry["file"]
        if (MARKER in path) == units:
            continue
        name = path.split(MARKER)[-1].removesuffix(".cxx")
        for folder in (os.path.abspath(build), root):
            name = name.removeprefix(folder + "/")
        command, given = [], shlex.split(entry["command"])
        if os.path.basename(given[0]) == "ccache":
            given = given[1:]
        words = iter(given)
        for word in words:
            if word in WITH_ARGUMENT:
                next(words)
            elif word not in ALONE:
                command.append(word)
        found[name] = (command, entry["directory"])
    return found


def measure(command, folder):
    """Seconds of one processor and peak MiB of the compiler, or None where it fails."""
    # wait4 reports the times of all processes below, and the largest of them: the compiler proper under the driver.
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure_all(build, units, parts, repetitions):
    """A row a header or translation unit, the slowest first."""
    rows = []
    for name, (command, folder) in sorted(commands(build, units).items()):
        if parts and not any(part in name for part in parts):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            goal = ["-o", os.path.join(temporary, "unit.o")] if units else ["-fsyntax-only"]
            runs = [measure(command + goal, folder) for _ in range(repetitions)]
        if None in runs:
            print(f"does not compile: {name}", file=sys.stderr)
            continue
        seconds, mebibytes = min(runs)
        budget = budget_seconds(name)
        over = (budget is not None and seconds > budget) or mebibytes > BUDGET_MIB
        rows.append({"name": name, "seconds": seconds, "peak_mib": mebibytes, "budget": budget, "over": over})
    return sorted(rows, key=lambda row: -row["seconds"])


def text_table(rows):
    print(f"{'seconds':>8} {'peak MiB':>9}")
    for row in rows:
        note = f"  (budget {row['budget']:.0f} s)" if row["name"] == UMBRELLA else ""
        print(f"{row['seconds']:8.2f} {row['peak_mib']:9.0f}  {row['name']}{note}{'  OVER BUDGET' if row['over'] else ''}")


def markdown_table(rows, title):
    print(f"| {title} | seconds | peak MiB | budget |\n| --- | ---: | ---: | --- |")
    for row in rows:
        budget = f"{row['budget']:.0f} s" if row["budget"] else ""
        print(f"| `{row['name']}` | {row['seconds']:.2f} | {row['peak_mib']:.0f} | "
              f"{'**over** ' if row['over'] else ''}{budget} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="only paths that contain one of these")
    parser.add_argument("--units", action="store_true", help="translation units, compiled, instead of headers")
    parser.add_argument("--all", action="store_true", help="headers, then translation units")
    parser.add_argument("--build", default="build/test", help="the configured build tree (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=1, help="the fastest of so many runs (default: %(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print tables of Markdown")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    arguments = parser.parse_args()

    everything = []
    for units in (False, True):
        if units != arguments.units and not arguments.all:
            continue
        parts = arguments.parts or (UNITS if units else [])
        rows = measure_all(arguments.build, units, parts, arguments.repetitions)
        everything += rows
        if arguments.markdown:
            markdown_table(rows, "translation unit" if units else "header")
        else:
            text_table(rows)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
