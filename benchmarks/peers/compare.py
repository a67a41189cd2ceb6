#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures shardwise beside PyTorch, FBGEMM and TorchRec, on CPU, and prints a table of Markdown.

Each peer is measured in several releases, and the fastest one of a measure and shape counts, by the median; the table says
which it was, --json has them all. Each release has a virtual environment of pinned versions, made once (2 GB to fetch and 6 GB
on disk each: the wheels of PyTorch on the Python package index are made for CUDA); one that cannot be installed or imported is
said, and the others are measured. The release benchmarks (./quickstart --build-only) and all releases are measured in turns,
shape by shape and round by round, so that whatever else the machine does meets all of them.

  lookup   ids of all tables to sums: bench_lookup's kernel; embedding_bag, table by table; FBGEMM's split table-batched
           embeddings without its check of ids
  forward  the same by a layer, ids checked, features side by side: bench_lookup; EmbeddingBags and a cat; FBGEMM as it
           comes; TorchRec's EmbeddingBagCollection
  update   the backward pass with row-wise Adagrad: bench_update; FBGEMM's backward, whose update is fused
  step     forward and update: the same two; and PyTorch's EmbeddingBag with sparse gradients and torch.optim.Adagrad, whose
           moments are one an element (it has no row-wise one)
  dlrm     a training step of a DLRM: train_dlrm; the same model in PyTorch, with its own tables and with FBGEMM's
  sharded  forward and backward with fused row-wise Adagrad of tables that are sharded by rows or as wholes, the slowest rank:
           bench_sharded_step under mpirun; TorchRec's ShardedEmbeddingBagCollection on as many processes over gloo

The first four are of 8 tables of a million rows and 8192 samples, and of 26 tables of 100,000 rows and 2048 samples, on one
thread. A peer runs with PyTorch's gradients and modes as a user would set them, on huge pages as shardwise does; a process a
release lives through all turns, and forks for each, so that its tables are gone behind it.
"""

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import releases
import summary
from releases import Failed
from turns import Dlrm, Sharded, all_turns, programs, to_json

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import mpi_launch


def mpi_environment():
    """As tests start Open MPI, but long messages are copied once, from process to process, which it does by default. Tests
    do without, since some containers forbid it; there set OMPI_MCA_btl_vader_single_copy_mechanism=none."""
    copies = "OMPI_MCA_btl_vader_single_copy_mechanism"
    return mpi_launch.environment(**{copies: os.environ.get(copies, "cma")})


def full_command(arguments, ranks, command):
    return ([arguments.mpiexec, "-np", str(ranks)] if ranks else []) + [os.path.join(arguments.build, command[0]), *command[1:]]


def run(arguments, ranks, command):
    """Standard output of a program of the build. Its errors end this one."""
    command = full_command(arguments, ranks, command)
    made = subprocess.run(command, text=True, capture_output=True, check=False, env=mpi_environment() if ranks else None)
    if made.returncode:
        sys.exit(f"{' '.join(command)} failed with {made.returncode}:\n{made.stderr}")
    return made.stdout


def shardwise_turn(turn, arguments, folder):
    """Milliseconds by measure."""
    report = os.path.join(folder, "report.json")
    result = {}
    for ranks, command, counters in programs(turn, folder, report):
        said = run(arguments, ranks, command)
        if isinstance(turn, Dlrm):
            with open(report, encoding="utf-8") as file:
                return {"dlrm": 1e3 * json.load(file)["time"]["step"]["max"]}
        reported = {one["run_name"].split("/")[0]: one for one in json.loads(said)["benchmarks"]}
        result |= {measure: reported[name][counter] for measure, name, counter in counters}
    return result


def processor_seconds(processes):
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in own) + sum(process.seconds for process in processes.values())


def ask(processes, release, failed, text, **request):
    """A release's answer; None where it failed, which `failed` says then. One whose process has ended is left out from there on."""
    process = processes[release]
    try:
        return process.ask(**request)
    except Failed as error:
        failed.append(f"{release.text()}: {text}: {error}")
        if process.process.poll() is not None:
            failed.append(f"{release.text()}: all from {text} on")
            processes.pop(release).close()
        return None


def peers_turn(turn, arguments, folder, processes, release, failed):
    """Milliseconds by peer and measure, of one release."""
    made = ask(processes, release, failed, turn.text(), turn=to_json(turn), folder=folder, memory=arguments.memory * 1e9,
               quick=arguments.quick)
    if made is None:
        return {}
    failed += [f"{peer} {release.version(peer)}: {turn.text()}: {why}" for peer, why in made["failed"].items()]
    return made["times"]


def measure(turns, arguments, processes, failed):
    """All rounds: yields each turn's summary.Measured. Who comes first in a turn changes from round to round."""
    begin, done, total = time.monotonic(), 0.0, arguments.rounds * sum(turn.weight() for turn in turns)
    with tempfile.TemporaryDirectory() as folder:
        if any(isinstance(turn, Dlrm) for turn in turns):
            if not any(ask(processes, release, failed, "files of clicks", clicks=folder) for release in list(processes)):
                sys.exit(f"the files that the DLRM reads cannot be written: {failed[-1]}")
        for number, turn in itertools.product(range(arguments.rounds), turns):
            if not processes:
                return  # as `failed` says
            passed = time.monotonic() - begin
            left = f"{60 * done / passed / total:.1%} of all a minute, {passed / done * (total - done) / 60:.1f} min left" if done else ""
            print(f"round {number + 1} of {arguments.rounds}: {turn.text():65} {left}".rstrip(), file=sys.stderr)
            used, clock = processor_seconds(processes), time.monotonic()
            ours, theirs = {}, {}
            order = [None, *processes]
            for who in order[number % len(order):] + order[: number % len(order)]:
                if who is None:
                    ours = shardwise_turn(turn, arguments, folder)
                elif who in processes:
                    theirs[who.fbgemm] = peers_turn(turn, arguments, folder, processes, who, failed)
            busy = (processor_seconds(processes) - used) / (time.monotonic() - clock)
            yield summary.Measured(turn, ours, theirs, busy)
            done += turn.weight()


def start(arguments, chosen):
    """Installs and starts the releases. Returns their processes, and by release and peer why one is not there."""
    processes, missing = {}, {}
    pages = {} if arguments.no_huge_pages else {"THP_MEM_ALLOC_ENABLE": "1"}
    for release in chosen:
        not_there = releases.install(release, arguments.environments)
        if "PyTorch" not in not_there:
            try:
                process = releases.Process([releases.python_of(release, arguments.environments)],
                                           os.environ | pages | {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")})
            except Failed as error:
                not_there = {peer: str(error) for peer in releases.PEERS}
            else:
                not_there = process.missing | not_there
                if "PyTorch" in not_there:
                    process.close()
                else:
                    processes[release] = process
        if not_there:
            missing[release] = not_there
            print(*summary.not_there({release: not_there}), sep="\n", file=sys.stderr)
    return processes, missing


def processor():
    """What /proc/cpuinfo calls it; elsewhere nothing."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return ""


def write(arguments, chosen, missing, failed, records):
    content = {"releases": [release._asdict() | {"missing": missing.get(release, {})} for release in chosen],
               "rounds": arguments.rounds, "quick": arguments.quick, "huge_pages": not arguments.no_huge_pages,
               "processor": processor(), "failed": failed, "records": records}
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


def at_least(least, kind):
    """A type of argparse: numbers from `least` on."""
    def number(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f"'{text}': give a {'whole ' if kind is int else ''}number, at least {least}")
        return value
    return number


def new_file(path):
    """A type of argparse: a file that can be written."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{path}': no file can be written there: give one in a folder that there is, and that is yours")
    return path


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="a few small shapes and one model, one round, half a million rows a table: does it work?")
    parser.add_argument("--rounds", type=at_least(1, int), metavar="N", help="turns of each shape (default: 3, with --quick 1)")
    parser.add_argument("--only", metavar="TEXT", default="", help="shapes whose name has this text, such as 'dim 64', "
                        "'26 x', 'small' (a DLRM) or 'row-wise' (over processes): --dry shows the names")
    parser.add_argument("--releases", nargs="+", metavar="VERSION", default=[], help="releases of FBGEMM, each with the PyTorch and "
                        f"TorchRec that fit it (default: {' '.join(release.fbgemm for release in releases.RELEASES)}); others are to be "
                        "added to RELEASES in releases.py, beside this file")
    parser.add_argument("--environments", default=os.path.join(ROOT, "build/peers"), metavar="FOLDER",
                        help="where the releases' virtual environments are, or are made (default: build/peers)")
    parser.add_argument("--memory", type=at_least(0, float), default=9.0, metavar="GB",
                        help="leave out PyTorch's Adagrad where it needs more, as it does at dim 128 (default: %(default)s); "
                        "all else needs up to 5 GB")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="FOLDER",
                        help="the release build (default: build/release)")
    parser.add_argument("--mpiexec", default="mpirun", metavar="PROGRAM",
                        help="starts shardwise's ranks (default: %(default)s); without it nothing sharded is measured")
    parser.add_argument("--no-huge-pages", action="store_true", help="peers on small pages, PyTorch's default")
    parser.add_argument("--json", metavar="FILE", type=new_file, help="write all numbers there, after every turn")
    parser.add_argument("--dry", action="store_true", help="show what would be measured, by which commands, and end")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    return arguments


def main():
    arguments = parse()
    chosen = releases.choose(arguments.releases)
    turns = [turn for turn in all_turns(arguments.quick) if arguments.only in turn.text()]
    if not turns:
        sys.exit(f"--only '{arguments.only}': no shape has this text; --dry shows their names")
    if arguments.dry:
        for turn in turns:
            print(turn.text())
            print("".join(f"  {' '.join(full_command(arguments, ranks, command))}\n" for ranks, command, _ in programs(turn)), end="")
        print("\nbeside " + ";\nbeside ".join(f"{release.text()} ({'there' if releases.stamped(release, arguments.environments) else 'to be installed, 2 GB to fetch'})"
                                            for release in chosen))
        return
    failed = []
    sharded = os.path.join(arguments.build, "benchmarks/bench_sharded_step")
    lacking = ([] if shutil.which(arguments.mpiexec) else [f"--mpiexec {arguments.mpiexec}: no such program"])
    lacking += [] if os.access(sharded, os.X_OK) else [f"{sharded} is not there, as where the library was built without MPI"]
    if lacking and any(isinstance(turn, Sharded) for turn in turns):
        failed.append(f"steps over processes: {'; '.join(lacking)}")
        turns = [turn for turn in turns if not isinstance(turn, Sharded)]
        if not turns:
            sys.exit(f"Not measured: {failed[0]}; --only '{arguments.only}' chose nothing else")
    for program in dict.fromkeys(command[0] for turn in turns for _, command, _ in programs(turn)):
        if not os.access(os.path.join(arguments.build, program), os.X_OK):
            sys.exit(f"{os.path.join(arguments.build, program)} is not there: ./quickstart --build-only builds it in build/release, where "
                     "--build points unless told otherwise")
    processes, missing = start(arguments, chosen)
    try:
        if not processes:
            sys.exit(f"No release of the peers is there, so nothing is measured.\n{summary.remarks([], missing, failed)}".rstrip())
        measured = []
        for one in measure(turns, arguments, processes, failed):
            measured.append(one)
            if arguments.json:  # after every turn, so that a run that is ended early leaves what it has
                write(arguments, chosen, missing, failed, summary.summarize(measured, chosen))
    finally:
        for process in processes.values():
            process.close()
    records = summary.summarize(measured, chosen)
    print(f"\n{processor()}; medians of {arguments.rounds} round{'s'[:arguments.rounds > 1]}. times: how many times as long as shardwise the "
          "peer takes; above 1 shardwise is faster.\n")
    print(summary.table(records), summary.fastest(records), summary.remarks(records, missing, failed), sep="\n", end="")


if __name__ == "__main__":
    main()
