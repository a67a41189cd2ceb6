# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an example program and looks at what it says."""

import os
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*arguments, status=0, says=(), ranks=None):
    """Runs the program, under mpirun when `ranks` is given; returns its standard output."""
    command = [PROGRAM, *map(str, arguments)]
    if ranks is not None:
        command = [os.environ["MPIEXEC"], "-np", str(ranks), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    what = f"{' '.join(command)}\nstatus {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, what
    for text in says:
        assert text in done.stdout + done.stderr, f"'{text}' is missing in\n{what}"
    return done.stdout if status == 0 else done.stderr


def main(tests):
    """Runs the test that the command line names, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tests[sys.argv[2]]()
