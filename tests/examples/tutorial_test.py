# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does what docs/tutorial.md says, and holds the page to the files of examples/tutorial/."""

import json
import pathlib
import re

from programs import main, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"epoch (\d)   test loss ([\d.]+)   AUC ([\d.]+)\n")


def epochs(out):
    return {int(epoch): (float(loss), float(auc)) for epoch, loss, auc in LINE.findall(out)}


def data():
    run(program="tutorial_make_ratings")


def runs():
    data()
    out = run()
    seen = epochs(out)
    assert list(seen) == [0, 1, 2, 3], out
    assert abs(seen[0][1] - 0.5) < 0.05 and seen[3][1] > 0.85 and seen[3][0] < 0.7 * seen[0][0], out
    shown = epochs((ROOT / "docs" / "tutorial.md").read_text())
    assert list(shown) == [0, 1, 2, 3], shown
    for epoch, (loss, auc) in shown.items():  # another OpenBLAS may give another last digit
        assert abs(loss - seen[epoch][0]) < 0.01 and abs(auc - seen[epoch][1]) < 0.01, (shown, seen)
    with open("trace.json", encoding="utf-8") as file:
        names = {event["name"] for event in json.load(file)["traceEvents"]}
    assert {"Lookup<sum>", "Exchange<World, Vectors, fp32> pack", "Exchange<World, Vectors, fp32> wait"} <= names, names


def mpi():
    """Threads and processes print the same; a run that goes on ends as one that never stopped."""
    data()
    whole = run(3)
    pathlib.Path("checkpoints").rename("of_threads")
    assert run(3, ranks=2) == whole
    pathlib.Path("checkpoints").rename("of_processes")
    first, rest = run(1, ranks=2), run(3, ranks=2)
    assert first.splitlines()[-1] == rest.splitlines()[0], (first, rest)
    assert first + rest.split("\n", 1)[1] == whole, (first, rest, whole)


def loads_anywhere():
    """Another number of ranks, and another sharding, show the model that was saved, and train it on."""
    data()
    saved = run(1).splitlines(keepends=True)[-1]
    for ranks in (1, 3):
        assert run(1, ranks=ranks) == saved
        assert run(1, ranks=ranks, program="tutorial_other_sharding") == saved
    run(2, program="tutorial_other_sharding", says=["epoch 2"])


def without_data():
    run(status=2, says=["u.item or u.data is not there"])


def without_blank_lines(text):
    return re.sub(r"\n\n+", "\n", text).strip("\n")


def page():
    """The numbered parts of each file, put together, are that file: who copies them has the program."""
    folder = ROOT / "examples" / "tutorial"
    parts = {}
    for name, number, code in re.findall(r"^<!-- ([\w.]+)(?:, part (\d))? -->\n\n?```\w+\n(.*?)^```$",
                                         (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE | re.DOTALL):
        assert parts.setdefault(name, {}).setdefault(int(number or 1), code) is code, (name, number)
    for name, path in (("recommender.cpp", folder / "recommender.cpp"),
                       ("CMakeLists.txt", folder / "project" / "CMakeLists.txt")):
        shown = without_blank_lines("".join(code for _, code in sorted(parts.pop(name).items())))
        code = without_blank_lines(re.sub(r"\A(?://|#) Copyright.*\n(?://|#) SPDX.*\n", "", path.read_text()))
        assert shown == code, f"docs/tutorial.md shows another {name}:\n{shown}\nthan\n{code}"
    assert not parts, parts.keys()


main({"runs": runs, "mpi": mpi, "loads_anywhere": loads_anywhere, "without_data": without_data, "page": page})
