# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an example program and looks at what it says."""

import json
import os
import pty
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*arguments, status=0, says=(), never=(), ranks=None, program=None):
    """Runs the program, under mpirun when `ranks` is given, or another one beside it; returns its standard output."""
    path = PROGRAM if program is None else os.path.join(os.path.dirname(PROGRAM), program)
    command = [path, *map(str, arguments)]
    if ranks is not None:
        command = [os.environ["MPIEXEC"], "-np", str(ranks), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    what = f"{' '.join(command)}\nstatus {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, what
    for text in says:
        assert text in done.stdout + done.stderr, f"'{text}' is missing in\n{what}"
    for text in never:
        assert text not in done.stdout + done.stderr, f"'{text}' is in\n{what}"
    return done.stdout if status == 0 else done.stderr


def write_safetensors(path, metadata, tensors):
    """tensors: whole numbers by name, lists or one."""
    header, data = {"__metadata__": metadata}, b""
    for name, numbers in tensors.items():
        shape = [len(numbers)] if isinstance(numbers, list) else []
        numbers = numbers if shape else [numbers]
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}q", *numbers) if shape != [0] else b""
        header[name] = {"dtype": "I64", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_profile(path, samples, tables):
    """tables: name to (rows, look-ups, error, {row: look-ups})."""
    tensors = {"samples": samples}
    for name, (rows, lookups, error, seen) in tables.items():
        tensors |= {f"tables/{name}/total": [rows, lookups, error], f"tables/{name}/row": sorted(seen),
                    f"tables/{name}/lookups": [seen[row] for row in sorted(seen)],
                    f"tables/{name}/samples": [min(samples, seen[row]) for row in sorted(seen)]}
    write_safetensors(path, {"format": "shardwise access profile 1", "tables": json.dumps(list(tables))}, tensors)


def write_runs(path, runs):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{rows} {p!r}\n" for rows, p in runs)


def read_safetensors(path):
    """The metadata, and the whole numbers of each tensor."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    return metadata, {name: list(struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 8}q", data[slice(*t["data_offsets"])]))
                      for name, t in header.items()}


def shown_on_terminal(*command):
    """Runs a program whose stderr is a terminal. Returns what it shows there, and its stdout."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, text=True) as done:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        out = done.stdout.read()
    assert done.returncode == 0, (command, done.returncode)
    return shown, out


def write_row_plan(path, tiers, tables, dense=False):
    """Writes the file of a row plan. tables: (name, rows of each tier, replicated rows, unseen rows), each a table."""
    tensors = {}
    for name, rows, replicated, unseen in tables:
        words = [0] * ((sum(rows) + 63) // 64 if unseen else 0)
        for row in unseen:
            words[row // 64] |= 1 << row % 64
        words = [word - (1 << 64) if word >= 1 << 63 else word for word in words]
        tensors |= {f"tables/{name}/tiers": rows, f"tables/{name}/replicated": replicated, f"tables/{name}/unseen": words}
        if dense: tensors[f"tables/{name}/reduction"] = [1]
    write_safetensors(path, {"format": "shardwise row plan 1", "tiers": json.dumps(tiers),
                             "tables": json.dumps([table[0] for table in tables])}, tensors)


def main(tests):
    """Runs the test that the command line names, in a folder of its own."""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # what is saved is awaited
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        os.chdir(folder)
        tests[sys.argv[2]]()
