#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program in which something goes wrong, and checks how it ends.

    ends.py mpi|threads SCENARIO PROGRAM [--mpiexec PATH]

Every rank has ended within ten seconds, with the right exit status and the reason in the output, and no process is
left behind. The scenarios are those of failing.hpp.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mpi_launch  # noqa: E402

RANKS = 4
BAD_INPUT = "file 'clicks': 7 columns instead of 40"
DISK = "the disk is full"
HERE = "failing.hpp:"

# scenario: (exit status, texts that stand in the output, how often each of them at most, longest duration in seconds)
MPI = {
    "nothing": (0, []),
    "killed": (137, ["signal 9"]),
    "exits": (None, ["exiting improperly"]),
    "throws": (3, ["rank 2: " + DISK]),
    "throws_int": (3, ["rank 2: an exception that is no std::exception"]),
    "throws_in_flight": (3, ["rank 2: " + DISK]),
    "fails": (3, ["rank 2: " + DISK]),
    "returns": (3, ["rank 0 waits at step 'round' of flight 3", "for 100000 bytes from rank 2"]),
    "late": (3, ["rank 0 waits at step 'round' of flight 3", "for 100000 bytes from rank 2", "deadline of 2000 ms"]),
    "never": (3, [f"rank {r} waits at step 'round' of flight 3 (" for r in (0, 1, 3)] + ["from rank 2", HERE]),
    "unfinished": (3, ["rank 2: done, but 1 rounds were never waited for"]),
    "wrong_size": (3, ["expects 100000 bytes from rank 2 at step 'round' of flight 3", "but 2000 bytes came", HERE]),
    "wrong_size_checked": (3, ["rank 2 at step 'round' of flight 3", "sends 2000 bytes to rank 0",
                               "rank 0 at step 'round' of flight 3", "expects 100000 bytes from rank 2", HERE]),
    "other_flight": (3, [" is at step 'round' of flight 3 (", "and rank 2 sent 100000 bytes of another step",
                         "all ranks make the same calls in one order", HERE]),
    "other_flight_checked": (3, ["rank 0 at step 'round' of flight 3", "rank 2 at step 'round' of flight 33", HERE]),
    "bad_input_all": (2, [BAD_INPUT], 1),
    "bad_input_all_in_flight": (2, [BAD_INPUT], 1),
    "bad_input_one": (2, ["rank 2: " + BAD_INPUT], 1),
    "bad_input_one_in_flight": (2, ["rank 2: " + BAD_INPUT], 1),
    "bad_input_at_the_end": (2, [BAD_INPUT], 1),
    "hosts_that_do_not_divide": (2, ["3 hosts do not divide 4 ranks"], 1),
    "options_differ": (2, ["ranks disagree", "100 to 200"], 1),
}
THREADS = {
    "nothing": (0, []),
    "throws": (3, [DISK]),
    "throws_int": (3, ["an exception that is no std::exception"]),
    "throws_in_flight": (3, [DISK]),
    "fails": (3, [DISK]),
    "returns": (3, ["rank 2 failed: it has ended", "step 'round' of flight 3"]),
    "late": (3, ["waits for rank 2 in step 'round' of flight 3", "rank 2 is in no exchange", HERE]),
    # a stuck thread cannot be ended: after the world's grace time the process is
    "never": (3, ["waits for rank 2 in step 'round' of flight 3", "rank 2 is in no exchange"]),
    "wrong_size": (3, ["100000 bytes expected from rank 2", "2000", "step 'round' of flight 3"]),
    "wrong_size_checked": (3, ["rank 2 at step 'round' of flight 3", "sends 2000 bytes to rank 0",
                               "rank 0 at step 'round' of flight 3", "expects 100000 bytes from rank 2", HERE]),
    "other_flight": (3, ["step 'round' of flight 3 (", "step 'round' of flight 33 (",
                         "all ranks make the same calls in one order", HERE]),
    "other_flight_checked": (3, ["rank 0 at step 'round' of flight 3", "rank 2 at step 'round' of flight 33", HERE]),
    "bad_input_all": (2, [BAD_INPUT], 1),
    "bad_input_all_in_flight": (2, [BAD_INPUT], 1),
    "bad_input_one": (2, [BAD_INPUT], 1),
    "bad_input_one_in_flight": (2, [BAD_INPUT], 1),
    "bad_input_at_the_end": (2, [BAD_INPUT], 1),
}


def processes_with(token):
    """Ids of the processes that have this token among their arguments."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass  # it has just ended
    return [process for process in found if process != os.getpid()]


def main():
    parser = argparse.ArgumentParser(description="Check how a failing program ends.")
    parser.add_argument("backend", choices=["mpi", "threads"])
    parser.add_argument("scenario")
    parser.add_argument("program")
    parser.add_argument("--mpiexec", default="mpirun")
    arguments = parser.parse_args()
    table = MPI if arguments.backend == "mpi" else THREADS
    status, texts, most, longest = (*table[arguments.scenario], None, None)[:4]
    longest = longest or 10

    token = f"token-{uuid.uuid4()}"
    command = [arguments.program, arguments.scenario, token]
    if arguments.backend == "mpi":
        command = [arguments.mpiexec, "-np", str(RANKS)] + command
    begin = time.monotonic()
    child = subprocess.Popen(command, env=mpi_launch.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace")
    wrong = []
    try:
        output, _ = child.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        wrong.append("it never ended")
        child.terminate()
        output, _ = child.communicate()
    seconds = time.monotonic() - begin

    if seconds > longest:
        wrong.append(f"it took {seconds:.1f} s, more than {longest}")
    if child.returncode != status and (status is not None or child.returncode == 0):
        wrong.append(f"exit status {child.returncode} instead of {'one that is not 0' if status is None else status}")
    for text in texts:
        count = output.count(text)
        if count == 0:
            wrong.append(f"the output lacks: {text}")
        elif most is not None and count > most:
            wrong.append(f"the output has {count} times: {text}")
    for _ in range(20):
        left = processes_with(token)
        if not left:
            break
        time.sleep(0.1)
    if left:
        wrong.append(f"processes are left: {left}")
        for process in left:
            os.kill(process, signal.SIGKILL)

    print(f"{arguments.backend} {arguments.scenario}: {seconds:.1f} s, exit status {child.returncode}")
    if wrong:
        print("\n".join(["output:", output, "wrong:"] + wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
