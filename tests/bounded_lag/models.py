#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the slot counts that ship in SPIN, with the models of this folder: that they suffice, and that less does not.

    models.py --counts PROGRAM --under FOLDER [--less COUNT] [--spin PROGRAM] [--cc PROGRAM] [--jobs N]

PROGRAM is that of slot_counts.cpp; files go into a temporary folder under FOLDER. Prints a row a case, and a line
"SURPRISE" for each that did not end as expected; the exit status is then 1. With --less, one is taken off that count,
and only few cases run, that should find no error: they must surprise.
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import time

NONE, OVERWRITE, DEADLOCK = "no error", "overwrite", "deadlock"
# what SPIN says, and what it means
ERRORS = {"assertion violated  !(overwritten)": OVERWRITE,
          "assertion violated  !(too_far)": "too far apart",
          "assertion violated  !(too_many)": "too many flights",
          "invalid end state": DEADLOCK}
# the count that gives a model's macro
SLOTS = {"one_exchange": {"SLOTS": "exchange_slots"},
         "two_exchanges": {"ID_SLOTS": "request_slots", "ROW_SLOTS": "answer_slots", "DONE_SLOTS": "drain_slots"}}
SECONDS = 60  # of a program, at most
MEGABYTES = 1000


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    what: str
    ranks: int
    k: int
    started: int  # exchanges or flights of a rank
    expected: str
    macros: dict = dataclasses.field(default_factory=dict)
    more: dict = dataclasses.field(default_factory=dict)  # count: how many more than ship

    @property
    def name(self):
        return f"{self.what}, P = {self.ranks}, k = {self.k}, N = {self.started}"


def one_exchange():
    def case(what, ranks, k, started, expected, **rest):
        return Case("one_exchange", f"one exchange, {what}", ranks, k, started, expected, **rest)

    for ranks, k, started in ((2, 0, 6), (2, 1, 9), (2, 2, 12), (3, 0, 6), (3, 1, 7)):
        yield case("as shipped", ranks, k, started, NONE)
        yield case("a slot less", ranks, k, started, OVERWRITE, more={"exchange_slots": -1})
    for k in (1, 2):
        yield case("k slots", 2, k, k + 1, OVERWRITE, more={"exchange_slots": -k - 2})
    # start(wait()): with three ranks, a slot is written from which start still copies, unless it copies first.
    yield case("copies late", 2, 1, 9, NONE, macros={"COPIES_LATE": 1})
    yield case("copies late", 3, 0, 4, OVERWRITE, macros={"COPIES_LATE": 1})


def two_exchanges():
    for policy, together in (("together", 1), ("each", 0)):
        def case(what, ranks, k, started, expected, more=None, **macros):
            return Case("two_exchanges", f"{policy}, {what}", ranks, k, started, expected,
                        {"TOGETHER": together, **macros}, more or {})

        for ranks, k, started in ((2, 0, 4), (2, 1, 5), (2, 2, 6), (3, 0, 2), (3, 1, 3 if together else 1)):
            yield case("as shipped", ranks, k, started, NONE)
        for ranks, k in ((2, 0), (2, 1)) + (((3, 0),) if together else ()):
            yield case("with a thread", ranks, k, k + 2, NONE, THREAD=1)
            yield case("two drains", ranks, k, 1, NONE, DRAINS=2)
            yield case("rank 0 fewer", ranks, k, k + 2, NONE, FEWER=k + 1)
        yield case("rank 0 fewer, two drains", 2, 1, 2, NONE, FEWER=1, DRAINS=2)
        yield case("rank 0 fewer, with a thread", 2, 1, 3, NONE, FEWER=2, THREAD=1)
        for ranks, k in ((2, 1), (2, 2), (3, 1)):
            yield case("an id slot less", ranks, k, k + 1, OVERWRITE, {"request_slots": -1})
            yield case("a row slot less", ranks, k, k + 1, OVERWRITE, {"answer_slots": -1})
        for k in (1, 2):
            yield case("k slots", 2, k, k + 1, OVERWRITE, {"request_slots": -1, "answer_slots": -1})
        yield case("two drains and no flight", 2, 0, 0, NONE, DRAINS=2)
        yield case("two drains and no flight, a slot less", 2, 0, 0, OVERWRITE, {"drain_slots": -1}, DRAINS=2)
        for k in (0, 1):
            yield case("ids read late", 2, k, k + 2, OVERWRITE, READS_LATE=1)
            yield case("ids read late, an id slot more", 2, k, k + 3, NONE, {"request_slots": 1}, READS_LATE=1)
            yield case("drains do not serve", 2, k, 1, DEADLOCK, DRAIN_SERVES=0)
            yield case("waits do not serve", 2, k, 1, DEADLOCK, WAITS_SERVE=0)
        if together:
            yield case("rank 0 fewer, drains leave early", 2, 0, 2, DEADLOCK, FEWER=1, DRAIN_OWN=0)


CASES = [*one_exchange(), *two_exchanges()]


def output_of(*command, cwd=None):
    run = subprocess.run([str(word) for word in command], cwd=cwd, text=True, timeout=SECONDS,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {run.returncode}: {run.stdout}")
    return run.stdout


def slot_counts(program, k):
    return {name: int(count) for name, count in (line.split() for line in output_of(program, k).splitlines())}


def outcome(output):
    """What a search found, and how many states it saw. It exits with 0 whatever that is."""
    errors = re.search(r"errors: (\d+)", output)
    states = re.search(r"(\d+) states, stored", output)
    if errors is None or states is None or "max search depth too small" in output:
        raise RuntimeError(f"not a whole search: {output}")
    if errors[1] == "0":
        if "not completed" in output or "hash-compact" in output:
            raise RuntimeError(f"not a whole search: {output}")
        return NONE, int(states[1])
    for text, meaning in ERRORS.items():
        if text in output:
            return meaning, int(states[1])
    raise RuntimeError(f"an unknown error: {output}")


def search(case, options, folder):
    """-> what was found, states, seconds"""
    begin = time.monotonic()
    try:
        folder.mkdir()
        counts = slot_counts(options.counts, case.k)
        for count, more in case.more.items():
            counts[count] += more
        if options.less:
            counts[options.less] -= 1
        macros = {"P": case.ranks, "K": case.k, "N": case.started, **case.macros,
                  **{macro: counts[count] for macro, count in SLOTS[case.model].items()}}
        model = pathlib.Path(__file__).resolve().parent / f"{case.model}.pml"
        said = output_of(options.spin, "-a", *(f"-D{name}={value}" for name, value in macros.items()), model,
                         cwd=folder)
        if "error" in said.lower():
            raise RuntimeError(said)
        # Compilers take the most time: no search has much to do.
        output_of(options.cc, "-O0", "-w", "-DSAFETY", f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c", cwd=folder)
        found, states = outcome(output_of("./pan", "-m100000", "-w20", cwd=folder))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        found, states = f"failed: {error}", 0
    return found, states, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--counts", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--under", required=True, type=pathlib.Path)
    parser.add_argument("--less", choices=[count for counts in SLOTS.values() for count in counts.values()])
    parser.add_argument("--spin", default="spin")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    cases = CASES
    if options.less:
        cases = [case for case in cases
                 if (case.ranks, case.k) == (2, 1) and case.what.endswith(("as shipped", "two drains"))
                 and options.less in SLOTS[case.model].values()]
    options.under.mkdir(parents=True, exist_ok=True)
    surprises = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.under) as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folders = [pathlib.Path(folder).resolve() / str(number) for number in range(len(cases))]
        results = pool.map(search, cases, [options] * len(cases), folders)
        print(f"{'case':62} {'states':>8} {'seconds':>7}  outcome")
        for case, (found, states, seconds) in zip(cases, results):
            expected = found == case.expected
            print(f"{case.name:62} {states:8} {seconds:7.2f}  {found}{', as expected' if expected else ''}", flush=True)
            if not expected:
                surprises.append(f"SURPRISE: {case.name}: {found}, expected: {case.expected}")
    print(f"{len(cases)} cases in {time.monotonic() - begin:.1f} s")
    print("\n".join(surprises), end="\n" if surprises else "")
    sys.exit(bool(surprises) or not cases)


if __name__ == "__main__":
    main()
