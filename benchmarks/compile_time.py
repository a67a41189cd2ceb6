#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each public header costs to include: seconds and peak memory of the compiler's front end, one header at a time.

It takes the commands from the header verification targets of a configured build tree (`cmake --preset test`), drops the
compiler launcher, and adds -fsyntax-only. A report, not a test: budgets are shown beside the numbers and never fail.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

MARKER = "_verify_interface_header_sets/"
UMBRELLA = "shardwise/shardwise.hpp"
BUDGET_SECONDS = {UMBRELLA: 2.0}


def front_end_commands(build):
    """Header -> (command, folder), from the compile commands of the header verification targets."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    commands = {}
    for entry in entries:
        if MARKER not in entry["file"]:
            continue
        header = entry["file"].split(MARKER)[-1].removesuffix(".cxx")
        command = shlex.split(entry["command"])
        if os.path.basename(command[0]) == "ccache":
            command = command[1:]
        output = command.index("-o")
        commands[header] = (command[:output] + ["-fsyntax-only"] + command[output + 2 :], entry["directory"])
    return commands


def measure(command, folder):
    """Wall seconds and peak MiB of the compiler, or None where it fails."""
    # wait4 reports the largest process of those below: the front end under the driver.
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else (time.monotonic() - start, usage.ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headers", nargs="*", help="only headers whose path contains one of these")
    parser.add_argument("--build", default="build/test", help="the configured build tree (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=1, help="the fastest of so many runs (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    arguments = parser.parse_args()

    rows = []
    for header, (command, folder) in sorted(front_end_commands(arguments.build).items()):
        if arguments.headers and not any(part in header for part in arguments.headers):
            continue
        runs = [measure(command, folder) for _ in range(arguments.repetitions)]
        if None in runs:
            print(f"does not compile: {header}", file=sys.stderr)
            continue
        seconds, mebibytes = min(runs)
        rows.append({"header": header, "seconds": seconds, "peak_mib": mebibytes, "budget": BUDGET_SECONDS.get(header)})

    rows.sort(key=lambda row: -row["seconds"])
    print(f"{'seconds':>8} {'peak MiB':>9}  header")
    for row in rows:
        note = f"  (budget {row['budget']} s)" if row["budget"] else ""
        print(f"{row['seconds']:8.2f} {row['peak_mib']:9.0f}  {row['header']}{note}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
