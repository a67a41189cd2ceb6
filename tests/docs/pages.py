#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds README.md and docs/ to the code.

    pages.py snippets ROOT
        Every block of C++ stands, white space aside, in a source that is compiled: a header, or a .cpp of examples/ or
        tests/docs/ that a CMakeLists.txt names; and not in a comment there. Every block says what it is.
    pages.py schemas ROOT
        Every block of JSON in docs/csv.md is a file of examples/schemas.
    pages.py links ROOT
        Every relative link and picture leads to a file that is there, and to a heading of it where it names one.
    pages.py form ROOT
        Pages have fewer than 250 lines, README.md fewer than 200, of at most 140 characters each; every page is listed in
        docs/README.md, each decision in docs/decisions/README.md. docs/lab/ may be as long and as wide as it likes.
    pages.py layers ROOT
        Headers include only from folders above their own in the list of docs/architecture.md, which has every folder.
    pages.py printed PAGE NAME [--update] -- PROGRAM ARGUMENT...
        The block behind the line <!-- printed by NAME --> is what the program prints. --update writes it there.
"""

import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^[ ]*```([^\n]*)\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"cpp", "cmake", "sh", "python", "json", "text", "mermaid"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
MOST_LINES = 249
MOST_LINES_README = 199
WIDEST = 140


def pages(root):
    return [root / "README.md"] + sorted((root / "docs").rglob("*.md"))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_space(text):
    return "".join(text.split())


def is_built(source, root):
    """Whether a CMakeLists.txt beside a source or above it names it; headers are compiled by the tests of headers."""
    if source.suffix != ".cpp":
        return True
    folder = source.parent
    while folder != root:
        lists = folder / "CMakeLists.txt"
        if lists.exists() and re.search(rf"\b{re.escape(source.stem)}\b", lists.read_text()):
            return True
        folder = folder.parent
    return False


def snippets(root):
    sources = []  # as they are, and without their comments
    for folder in ("include", "examples", "tests/docs"):
        for pattern in ("*.hpp", "*.ipp", "*.cpp", "*.cuh"):
            for path in sorted((root / folder).rglob(pattern)):
                if is_built(path, root):
                    text = path.read_text()
                    sources.append((without_space(text), without_space(COMMENT.sub("", text))))
    wrong = []
    for page in pages(root):
        text = page.read_text()
        for block in FENCE.finditer(text):
            where = f"{page}:{line_of(text, block.start())}: "
            if block[1] not in LANGUAGES:
                wrong.append(where + f"a block of '{block[1]}'; say which of {', '.join(sorted(LANGUAGES))} it is")
            if block[1] != "cpp":
                continue
            shown, code = without_space(block[2]), without_space(COMMENT.sub("", block[2]))
            if not any(shown in whole and code in bare for whole, bare in sources):
                wrong.append(where + "this C++ stands in no source that is compiled; put it into one under tests/docs/")
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
        again = 0
        while name + (f"-{again}" if again else "") in names:
            again += 1
        names.add(name + (f"-{again}" if again else ""))
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


def form(root):
    wrong = []
    for page in pages(root):
        if root / "docs" / "lab" in page.parents:
            continue
        lines = page.read_text().splitlines()
        most = MOST_LINES_README if page == root / "README.md" else MOST_LINES
        if len(lines) > most:
            wrong.append(f"{page}:{most + 1}: {len(lines)} lines, of at most {most}; split the page along what readers look for")
        wrong += [f"{page}:{number}: {len(line)} characters, of at most {WIDEST}"
                  for number, line in enumerate(lines, 1) if len(line) > WIDEST]
    for index in (root / "docs" / "README.md", root / "docs" / "decisions" / "README.md"):
        listed = {(index.parent / link[1].partition("#")[0]).resolve() for link in LINK.finditer(index.read_text())}
        wrong += [f"{index}: does not list {page.name}" for page in sorted(index.parent.glob("*.md"))
                  if page != index and page.resolve() not in listed]
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
    elif command == "form":
        wrong = form(where)
    elif command == "layers":
        wrong = layers(where)
    else:
        dashes = rest.index("--")
        wrong = printed(where, rest[0], rest[dashes + 1 :], "--update" in rest[:dashes])
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
