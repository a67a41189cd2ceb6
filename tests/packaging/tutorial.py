#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tutorial.py PAGE FOLDER: writes into FOLDER the files that a reader of docs/tutorial.md has after step 3."""

import pathlib
import re
import sys

LATER = {3, 5, 6}  # parts that steps 4 and 5 insert

page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
blocks = re.findall(r"^<!-- ([\w.]+)(?:, part (\d))? -->\n\n?```\w+\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
folder.mkdir(exist_ok=True)
for name in {name for name, _, _ in blocks}:
    parts = sorted((int(part or 1), code) for of, part, code in blocks if of == name)
    (folder / name).write_text("".join(code for part, code in parts if part not in LATER))
