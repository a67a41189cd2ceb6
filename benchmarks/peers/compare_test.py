#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compare.py does without any peer: the fastest release is chosen, what is not there is said, and turns name benchmarks
that there are.

    compare_test.py BUILD
"""

import os
import subprocess
import sys
import tempfile

import releases
import summary
import turns

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv[1]
OLD, MIDDLE, NEW = releases.RELEASES
SHAPE = turns.Shape(8, 1_000_000, 8192, 64, 20, 1)
OTHER = SHAPE._replace(dim=16)
SHARDED = turns.Sharded(26, 100_000, 2048, 64, 1, 0, "row", 2)


def near(found, expected):
    assert abs(found - expected) < 1e-12, (found, expected)


def measured(turn, ours, busy=1.0, **theirs):
    """`theirs`: by place of the release, FBGEMM's milliseconds by measure."""
    return summary.Measured(turn, ours, {release.fbgemm: {"FBGEMM": theirs[place]}
                                         for place, release in zip(("old", "middle", "new"), releases.RELEASES) if place in theirs}, busy)


def check_fastest():
    """By the median of all rounds, for each measure and shape anew."""
    rounds = [
        measured(SHAPE, {"lookup": 10.0, "update": 50.0}, old={"lookup": 18.0, "update": 100.0}, middle={"lookup": 1.0, "update": 300.0},
                 new={"lookup": 14.0, "update": 400.0}),
        measured(SHAPE, {"lookup": 20.0, "update": 40.0}, old={"lookup": 16.0, "update": 120.0}, middle={"lookup": 30.0, "update": 300.0},
                 new={"lookup": 15.0, "update": 400.0}),
        measured(SHAPE, {"lookup": 10.0, "update": 60.0}, old={"lookup": 17.0, "update": 90.0}, middle={"lookup": 30.0, "update": 30.0},
                 new={"lookup": 16.0, "update": 400.0}),
        measured(OTHER, {"lookup": 2.0}, busy=0.5, middle={"lookup": 5.0}, new={"lookup": 6.0})]
    records = summary.summarize(rounds, releases.RELEASES)
    assert [(one["what"], one["turn"]["dim"]) for one in records] == [("lookup", 64), ("lookup", 16), ("update", 64)], records
    lookup, other, update = (one["peers"]["FBGEMM"] for one in records)
    assert (lookup["release"], other["release"], update["release"]) == (NEW.fbgemm, MIDDLE.fbgemm, OLD.fbgemm), records
    near(records[0]["ms"], 10.0)
    near(lookup["ms"], 15.0)
    near(lookup["ratio"], 1.5)  # of medians; quartiles are of the rounds' 1.4, 0.75 and 1.6
    near(lookup["low"], (1.4 + 0.75) / 2)
    near(lookup["high"], 1.5)
    near(update["ratio"], 2.0)
    assert {version: one["ms"] for version, one in lookup["releases"].items()} == {OLD.fbgemm: 17.0, MIDDLE.fbgemm: 30.0, NEW.fbgemm: 15.0}
    assert list(other["releases"]) == [MIDDLE.fbgemm, NEW.fbgemm], other
    assert f"| 15.00 | {NEW.fbgemm} | 1.50 | 1.07 to 1.50 |" in summary.table(records), summary.table(records)
    assert f"lookup: FBGEMM was fastest as {NEW.fbgemm} (1), {MIDDLE.fbgemm} (1)\n" in summary.fastest(records)
    said = summary.remarks(records, {}, [])
    assert OTHER.text() in said and SHAPE.text() not in said, said  # half a processor


def check_left_out():
    """A text in the place of a time counts only where no release has a time; versions are the peer's own."""
    def torch(turn, what, old, new):
        theirs = {OLD.fbgemm: {"PyTorch": {what: old}}, NEW.fbgemm: {"PyTorch": {what: new}}}
        return summary.Measured(turn, {what: 5.0}, theirs, 1.0)

    one, other = summary.summarize([torch(SHAPE, "step", "needs 10.3 GB", "needs 10.3 GB"), torch(OTHER, "step", "needs 10.3 GB", 20.0)],
                                   releases.RELEASES)
    assert one["peers"]["PyTorch"]["left_out"] == "needs 10.3 GB" and "needs 10.3 GB" in summary.table([one]), one
    assert (other["peers"]["PyTorch"]["release"], other["peers"]["PyTorch"]["ratio"]) == (NEW.torch, 4.0), other
    assert summary.summarize([summary.Measured(SHARDED, {"sharded": 5.0}, {}, 0.1)], releases.RELEASES)[0]["busy"] is None


def check_said():
    missing = {OLD: dict.fromkeys(releases.PEERS, "pip: no matching distribution"), NEW: {"TorchRec": "torchrec cannot be imported"}}
    said = summary.remarks([], missing, ["FBGEMM 1.4.0: too little memory"])
    assert f"PyTorch {OLD.torch}, FBGEMM {OLD.fbgemm}, TorchRec {OLD.torchrec} are not there: pip: no matching distribution\n" in said, said
    assert f"TorchRec {NEW.torchrec} is not there: torchrec cannot be imported\n" in said, said
    assert "Not measured: FBGEMM 1.4.0: too little memory\n" in said, said


def check_turns():
    for quick in (False, True):
        for turn in turns.all_turns(quick):
            assert turns.of_json(turns.to_json(turn)) == turn, turn
            if isinstance(turn, turns.Shape):
                for _, command, counters in turns.programs(turn):
                    listed = subprocess.run([os.path.join(BUILD, command[0]), *command[1:], "--benchmark_list_tests=true"], text=True,
                                            capture_output=True, check=True).stdout
                    assert {name.split("/")[0] for name in listed.splitlines()} == {name for _, name, _ in counters}, (command, listed)
    shapes = [turn for turn in turns.all_turns(False) if isinstance(turn, turns.Shape)]
    assert [sum(turn.tables == tables for turn in shapes) for tables in (8, 26)] == [18, 12], shapes


def failure(process, **request):
    try:
        process.ask(**request)
    except releases.Failed as error:
        return str(error)
    raise AssertionError("no peer is there, and it has answered")


def check_process():
    """An interpreter without packages says so, and answers; one that ends is noticed."""
    process = releases.Process([sys.executable, "-S"], os.environ)
    try:
        assert set(process.missing) == set(releases.PEERS) and "'torch'" in process.missing["PyTorch"], process.missing
        for _ in range(2):
            said = failure(process, turn=turns.to_json(SHAPE), folder="", memory=1e9, quick=True)
            assert said.startswith("ModuleNotFoundError: No module named"), said
        assert process.seconds > 0
        process.process.kill()
        process.process.wait()  # so that nobody reads the request
        assert failure(process, turn=turns.to_json(SHAPE)) == "its process ended by signal 9"
    finally:
        process.close()


def compare(*arguments, status=1):
    ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, "compare.py"), "--quick", "--only", "dim 16, bag 1,", "--build", BUILD,
                          *arguments], text=True, capture_output=True, check=False, env=os.environ | {"PIP_NO_INDEX": "1"})
    assert ran.returncode == status and "Traceback" not in ran.stderr, ran
    return ran.stderr


def check_not_installed():
    """From no package index, nothing can be."""
    with tempfile.TemporaryDirectory() as folder:
        said = compare("--environments", folder, "--releases", OLD.fbgemm)
        assert not os.listdir(folder), os.listdir(folder)  # nothing is left of what failed
    assert f"\nPyTorch {OLD.torch}, FBGEMM {OLD.fbgemm}, TorchRec {OLD.torchrec} are not there: pip cannot install torch==" in said, said


def check_refused():
    """Before anything is installed or measured."""
    assert "--releases 1.2: no such release" in compare("--releases", "1.2")
    for wrong, said in ((["--rounds", "0"], "--rounds: '0': give a whole number, at least 1"), (["--rounds", "two"], "'two'"),
                        (["--memory", "-3"], "--memory: '-3': give a number, at least 0"),
                        (["--json", os.path.join(HERE, "nowhere", "x.json")], "no file can be written there"), (["--json", HERE], "no file")):
        assert said in compare(*wrong, status=2), wrong
    assert "--mpiexec nope: no such program" in compare("--only", "row-wise", "--mpiexec", "nope")
    assert "--build points" in compare("--build", os.path.join(HERE, "nowhere"))


check_fastest()
check_left_out()
check_said()
check_turns()
check_process()
check_not_installed()
check_refused()
