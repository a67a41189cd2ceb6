#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program under mpirun with Open MPI's own meter on, and compares what it meters with what the program counts.

    mpi_meter.py --ranks N [--mpiexec PATH] [--bytes-only] [--timeout S] -- PROGRAM [ARGUMENT...]

The meter (pml monitoring) counts bytes and messages of point-to-point calls for each ordered pair of ranks, below the
library and independently of it; the library's few internal collectives of MPI are kept apart by the meter itself.

The program says what it counted in JSON objects, each on a line of standard output of its own:
    {"rank": r, "sent_bytes": [...], "sent_messages": [...]}    from each rank, one number a destination; or
    {"sent_bytes": [[...], ...], "sent_messages": [[...], ...]} from one rank, (from, to)
Other keys are ignored; of two objects with the same rank the later one counts. `sent_messages` may be missing; with
--bytes-only (messages that travel in chunks are more than were counted) it is not compared.

Exit status 0: equal, and something was sent. 1: different; the status of the program when that failed.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mpi_launch  # noqa: E402

EXTERNAL = re.compile(r"^E\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent")


def run(arguments, folder):
    """Starts the program; returns mpirun's exit status. Output of each rank and of the meter goes into `folder`."""
    command = [arguments.mpiexec, "-np", str(arguments.ranks), "--output-filename", str(folder / "output")]
    for name, value in {
        "pml_monitoring_enable": 2,  # keeps MPI's internal messages apart from the program's
        "pml_monitoring_enable_output": 3,  # a file a rank
        "pml_monitoring_filename": folder / "meter",
    }.items():
        command += ["--mca", name, str(value)]
    pml = os.environ.get("OMPI_MCA_pml", "ob1")
    environment = mpi_launch.environment(OMPI_MCA_pml=pml + ",monitoring")
    return subprocess.run(command + arguments.program, env=environment, timeout=arguments.timeout).returncode


def read_metered(folder, ranks):
    """What the meter saw: (from, to) bytes and messages."""
    size = [[0] * ranks for _ in range(ranks)]
    messages = [[0] * ranks for _ in range(ranks)]
    for rank in range(ranks):
        for line in (folder / f"meter.{rank}.prof").read_text().splitlines():
            if match := EXTERNAL.match(line):
                source, target, count, number = map(int, match.groups())
                size[source][target] += count
                messages[source][target] += number
    return size, messages


def read_counted(folder, ranks):
    """What the program printed: (from, to) bytes, and messages or None."""
    size, messages = [None] * ranks, [None] * ranks
    for path in sorted(folder.glob("output/**/stdout")):
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if not isinstance(record, dict) or "sent_bytes" not in record:
                continue
            if "rank" in record:
                size[record["rank"]] = record["sent_bytes"]
                messages[record["rank"]] = record.get("sent_messages")
            else:
                size = record["sent_bytes"]
                messages = record.get("sent_messages", [None] * ranks)
    silent = [rank for rank in range(ranks) if size[rank] is None]
    if silent:
        sys.exit(f"mpi_meter: no counted bytes of ranks {silent} in the output of the program")
    return size, None if None in messages else messages


def differences(what, counted, metered):
    lines = []
    for source, row in enumerate(metered):
        for target, seen in enumerate(row):
            if source != target and counted[source][target] != seen:
                lines.append(f"{what} from rank {source} to {target}: counted {counted[source][target]}, metered {seen}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Compare counted traffic with Open MPI's own meter.")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--bytes-only", action="store_true")
    parser.add_argument("--timeout", type=float, default=300, help="seconds")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        status = run(arguments, folder)
        if status != 0:
            print(f"mpi_meter: the program failed with status {status}", file=sys.stderr)
            return status
        metered_bytes, metered_messages = read_metered(folder, arguments.ranks)
        counted_bytes, counted_messages = read_counted(folder, arguments.ranks)

    found = differences("bytes", counted_bytes, metered_bytes)
    if counted_messages is not None and not arguments.bytes_only:
        found += differences("messages", counted_messages, metered_messages)
    total = sum(map(sum, metered_bytes))
    if total == 0 and arguments.ranks > 1:
        found.append("nothing was sent: the comparison says nothing")
    for line in found:
        print("mpi_meter: " + line, file=sys.stderr)
    print(f"mpi_meter: {total} bytes in {sum(map(sum, metered_messages))} messages metered on {arguments.ranks} ranks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
