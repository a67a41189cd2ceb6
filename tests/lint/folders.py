#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds docs/architecture.md against include/shardwise: every folder stands in its tables, an #include leads to a folder
above in them or stays within its own, and no file has more than 400 lines.

    folders.py <root of the repository>
"""

import pathlib
import re
import sys

MOST_LINES = 400


def table_after(text, heading):
    """The folders in the first column of the table behind `heading`, top down."""
    rows = text.split(heading, 1)[1].lstrip().split("\n\n")[1].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([a-z]+)/`", row.split("|")[1])]


def main():
    root = pathlib.Path(sys.argv[1])
    include = root / "include/shardwise"
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    folders = table_after(page, "## Folders")
    rooms = table_after(page, "\nThe rooms of ")
    wrong = []
    for order, place in ((folders, include), (rooms, include / "embedding")):
        there = {path.name for path in place.iterdir() if path.is_dir()}
        wrong += [f"docs/architecture.md and {place.name}/ do not have the same folders: {name}"
                  for name in there.symmetric_difference(order)]

    def rank(order, parts, depth):
        """Where a file stands among the folders of its level; files beside them stand below all."""
        return order.index(parts[depth]) if len(parts) > depth + 1 and parts[depth] in order else len(order)

    files = [path for path in include.rglob("*") if path.suffix in (".hpp", ".ipp", ".cuh")]
    for path in files:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > MOST_LINES:
            wrong.append(f"{path}: {text.count(chr(10))} lines, of at most {MOST_LINES}")
        own = path.relative_to(include).parts
        for line in re.findall(r'#include "shardwise/([^"]+)"', text):
            other = pathlib.PurePosixPath(line).parts
            up = rank(folders, other, 0) > rank(folders, own, 0)
            up |= own[0] == other[0] == "embedding" and rank(rooms, other, 1) > rank(rooms, own, 1)
            if up:
                wrong.append(f"{path}: includes shardwise/{line}, which stands below it in docs/architecture.md")
    print("\n".join(wrong) or f"{len(files)} files in {len(folders)} folders and {len(rooms)} rooms")
    sys.exit(bool(wrong) or not (files and folders and rooms))


if __name__ == "__main__":
    main()
