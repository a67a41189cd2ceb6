#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what benchmarks reported as tables of Markdown.

    bench_lookup --benchmark_format=json >lookup.json
    bench_update --benchmark_format=json >update.json
    table.py lookup.json update.json

    bench_lookup --tables=26 --rows=100000 --samples=2048 --benchmark_format=json >lookup.json
    table.py lookup.json

    bench_exchange --benchmark_filter=exchange/ --benchmark_format=json >threads.json
    mpirun -n 2 bench_exchange_mpi --benchmark_format=json >mpi2.json
    mpirun -n 4 bench_exchange_mpi --benchmark_format=json >mpi4.json
    table.py threads.json mpi2.json mpi4.json

    mpirun -n 2 bench_all_to_all --benchmark_format=json >all_to_all.json
    table.py all_to_all.json

    bench_step --benchmark_format=json >step.json
    table.py step.json

    mpirun -n 2 bench_sharded_step --benchmark_format=json >sharded2.json
    mpirun -n 4 bench_sharded_step --benchmark_format=json >sharded4.json
    table.py sharded2.json sharded4.json

    bench_rows --benchmark_format=json >rows.json
    table.py rows.json
"""

import json
import sys

SIZES = ("tables", "rows", "samples")


def fail(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def runs(paths):
    """Name, arguments and counters of each run; the sizes of all runs are counters of each."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
                report = content["benchmarks"]
        except OSError as error:
            fail(f"{path}: cannot be read: {error.strerror}")
        except (ValueError, KeyError, TypeError):
            fail(f"{path}: not what a benchmark prints with --benchmark_format=json; did it end?")
        else:
            for one in report:
                name, *arguments = one["run_name"].split("/")
                values = dict(argument.split(":") for argument in arguments if ":" in argument)
                sizes = {key: int(content["context"][key]) for key in SIZES if key in content.get("context", {})}
                yield name, {key: int(value) for key, value in values.items()}, sizes | one


def quartiles(one):
    return f'{one["of_ceiling_low"]:.2f} to {one["of_ceiling_high"]:.2f}'


def kernels(found):
    sized = len({tuple(one.get(key) for key in SIZES) for name, _, one in found if name in ("lookup", "forward", "update")}) > 1
    yield ["", *(["tables x rows, samples"] if sized else []), "dim", "bag", "ids", "median ms", "of the ceiling", "quartiles", "bare GB/s"]
    for name, values, one in found:
        if name not in ("lookup", "forward", "update"):
            continue
        rate = one.get("bare_GB_per_s")
        size_of = [f'{one["tables"]} x {one["rows"]:,}, {one["samples"]}' if "tables" in one else ""] if sized else []
        yield [name, *size_of, str(values["dim"]), str(values["bag"]), "Zipf" if values["zipf"] else "uniform",
               f'{one["median_ms"]:.2f}', f'{one["of_ceiling"]:.2f}', quartiles(one),
               f"{rate:.1f}" if rate else ""]


def size(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"


def exchanges(found):
    """Threads, MPI and raw MPI side by side, joined by ranks and size."""
    yield ["ranks", "bytes a pair", "MPI_Alltoallv us", "MPI us", "raw over MPI", "quartiles", "threads us",
           "raw over threads", "copies over threads"]
    joined = {}
    for name, values, one in found:
        if name in ("exchange", "exchange_mpi"):
            joined.setdefault((values["ranks"], values["bytes"]), {})[name] = one
    for (ranks, count), both in sorted(joined.items()):
        mpi, threads = both.get("exchange_mpi"), both.get("exchange")
        row = [str(ranks), size(count)] + [""] * 7
        if mpi:
            row[2:6] = [f'{mpi["raw_ms"] * 1e3:.1f}', f'{mpi["median_ms"] * 1e3:.1f}', f'{mpi["of_ceiling"]:.2f}',
                        quartiles(mpi)]
        if threads:
            row[6], row[8] = f'{threads["median_ms"] * 1e3:.1f}', f'{threads["of_ceiling"]:.2f}'
        if mpi and threads:
            row[7] = f'{mpi["raw_ms"] / threads["median_ms"]:.2f}'
        yield row


def all_to_all(found):
    """A row a size or count, a column a way: microseconds a call, and of those of MPI_Alltoallv."""
    cuts = {}
    for name, values, one in found:
        if name in ("sizes", "counts") and "us" in one:
            way = one["run_name"].split("/")[1] + (f" k={values['k']}" if values["k"] else "")
            key = values["bytes"] if name == "sizes" else values["count"]
            cuts.setdefault((name, values["ranks"]), {}).setdefault(key, {})[way] = one
    head = None
    for (name, ranks), rows in sorted(cuts.items()):
        ways = list(dict.fromkeys(way for row in rows.values() for way in row))
        if head is None:
            head = ["ranks", "bytes a block" if name == "sizes" else "calls", "MPI_Alltoallv us", *ways]
            yield head
        for key, row in sorted(rows.items()):
            first = next(iter(row.values()))
            yield [str(ranks), size(key) if name == "sizes" else f"{key:,}", f'{first["raw_us"]:.1f}',
                   *(f'{row[way]["us"]:.1f} ({1 / row[way]["of_ceiling"]:.2f})' if way in row else "" for way in ways)]


def steps(found):
    yield ["ranks", "dim", "sums in", "step ms", "quartiles", "compute", "exchange", "exposed", "dense reduction",
           "samples/s"]
    for name, values, one in found:
        if name == "step":
            yield [str(values["ranks"]), str(values["dim"]), ("float", "blocks", "double")[values["sums"]],
                   f'{one["median_ms"]:.1f}', f'{one["low_ms"]:.1f} to {one["high_ms"]:.1f}',
                   f'{one["compute_ms"]:.1f}', f'{one["exchange_ms"]:.1f}', f'{one["exposed_exchange_ms"]:.1f}',
                   f'{one["dense_reduction_ms"]:.1f}',
                   f'{one["items_per_second"]:,.0f}']


def sharded_steps(found):
    yield ["ranks", "sharding", "bag", "ids", "step ms", "quartiles", "samples/s"]
    for name, values, one in found:
        if name == "sharded_step":
            yield [str(values["ranks"]), one["run_name"].split("/")[1], str(values["bag"]), "Zipf" if values["zipf"] else "uniform",
                   f'{one["median_ms"]:.1f}', f'{one["low_ms"]:.1f} to {one["high_ms"]:.1f}',
                   f'{1e3 * one["samples"] * values["ranks"] / one["median_ms"]:,.0f}']


def rows_by_frequency(found):
    yield ["", "rows in", "step ms", "of row's", "forward ms", "of row's", "coverage of replicas", "MB in hosts", "MB across hosts",
           "of these the last tier", "peak MB a rank"]
    for name, _, one in found:
        if name not in ("sequences", "sums"):
            continue
        yield [name, one["run_name"].split("/")[1], f'{one["median_ms"]:.1f}', f'{one["of_row"]:.2f}', f'{one["forward_ms"]:.1f}',
               f'{one["forward_of_row"]:.2f}', f'{100 * one["coverage"]:.1f} %', f'{one["host_MB"]:.1f}', f'{one["cross_host_MB"]:.1f}',
               f'{one["last_tier_MB"]:.1f}', f'{one["peak_MB"]:.1f}']


def main():
    if len(sys.argv) < 2:
        fail(__doc__)
    if sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return
    found = list(runs(sys.argv[1:]))
    sizes = {tuple(one[key] for key in SIZES) for _, _, one in found if "tables" in one}
    if len(sizes) == 1:
        print("%d tables of %d rows, %d samples.\n" % sizes.pop())
    for table in (kernels, exchanges, lambda found: all_to_all([f for f in found if f[0] != "counts"]), lambda found: all_to_all([f for f in found if f[0] != "sizes"]), steps, sharded_steps, rows_by_frequency):
        head, *rows = [*table(found)] or [[]]
        if not rows:
            continue
        for row in [head, ["---"] * len(head)] + rows:
            print("| " + " | ".join(row) + " |")
        print()


main()
