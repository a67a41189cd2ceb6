#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds README.md and docs/ to the code.

    pages.py snippets ROOT
        Every block of C++ stands, white space aside, in a source that is compiled: under include/, examples/ or
        tests/docs/.
    pages.py schemas ROOT
        Every block of JSON in docs/csv.md is a file of examples/schemas.
    pages.py links ROOT
        Every relative link leads to a file that is there, and to a heading of it where it names one.
    pages.py layers ROOT
        Headers include only from folders above their own in the list of docs/architecture.md, which has every folder.
    pages.py printed PAGE NAME [--update] -- PROGRAM ARGUMENT...
        The block behind the line <!-- printed by NAME --> is what the program prints. --update writes it there.
"""

import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def pages(root):
    return [root / "README.md"] + sorted((root / "docs").rglob("*.md"))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_space(text):
    return "".join(text.split())


def snippets(root):
    sources = []
    for folder in ("include", "examples", "tests/docs"):
        for pattern in ("*.hpp", "*.cpp", "*.cuh", "*.cu"):
            sources += (without_space(path.read_text()) for path in sorted((root / folder).rglob(pattern)))
    wrong = []
    for page in pages(root):
        text = page.read_text()
        for block in FENCE.finditer(text):
            if block[1] == "cpp" and not any(without_space(block[2]) in source for source in sources):
                wrong.append(f"{page}:{line_of(text, block.start())}: this C++ stands in no source that is compiled; "
                             "put it into one under tests/docs/")
    return wrong


def schemas(root):
    page = root / "docs" / "csv.md"
    text = page.read_text()
    kept = [path.read_text() for path in sorted((root / "examples" / "schemas").glob("*.json"))]
    blocks = [block for block in FENCE.finditer(text) if block[1] == "json"]
    return [f"{page}:{line_of(text, block.start())}: this schema is no file of examples/schemas" for block in blocks
            if block[2] not in kept] + ([] if blocks and kept else [f"{page}: shows no schema"])


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    text = FENCE.sub("", page.read_text())
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        names.add(name)
    return names


def links(root):
    wrong = []
    for page in pages(root):
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
        for link in LINK.finditer(text):
            target, _, heading = link[1].partition("#")
            if re.match(r"\w+:", target):
                continue
            path = (page.parent / target).resolve() if target else page
            where = f"{page}:{line_of(text, link.start())}: "
            if not path.exists():
                wrong.append(where + f"'{target}' is not there")
            elif heading and heading not in anchors(path):
                wrong.append(where + f"'{target}' has no heading '{heading}'")
    return wrong


def layers(root):
    text = (root / "docs" / "architecture.md").read_text()
    folders = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    include = root / "include" / "shardwise"
    wrong = [f"docs/architecture.md does not list {path.name}/"
             for path in sorted(include.iterdir()) if any(path.glob("*.hpp")) and path.name not in folders]
    for number, folder in enumerate(folders):
        for path in sorted((include / folder).rglob("*.*pp")) + sorted((include / folder).rglob("*.cu*")):
            for used in re.findall(r'^#include "shardwise/(\w+)/', path.read_text(), re.MULTILINE):
                if used not in folders[: number + 1]:
                    wrong.append(f"{path}: includes from {used}/, which docs/architecture.md does not list above {folder}/")
    return wrong


def printed(page, name, command, update):
    text = page.read_text()
    block = re.search(rf"<!-- printed by {re.escape(name)} -->\n\n?```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if block is None:
        return [f"{page}: no block behind a line '<!-- printed by {name} -->'"]
    result = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if result == block[1]:
        return []
    if update:
        page.write_text(text[: block.start(1)] + result + text[block.end(1) :])
        return []
    update_command = " ".join([sys.argv[0], "printed", str(page), f"'{name}'", "--update", "--"] + command)
    return [f"{page}:{line_of(text, block.start())}: the program prints\n\n{result}\nbut the page shows\n\n{block[1]}",
            f"To show what it prints: {update_command}"]


def main():
    command, where, rest = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    if command == "snippets":
        wrong = snippets(where)
    elif command == "schemas":
        wrong = schemas(where)
    elif command == "links":
        wrong = links(where)
    elif command == "layers":
        wrong = layers(where)
    else:
        dashes = rest.index("--")
        wrong = printed(where, rest[0], rest[dashes + 1 :], "--update" in rest[:dashes])
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
