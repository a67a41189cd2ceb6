# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import collections
import gzip
import json
import os
import pathlib
import random
import re
import struct
import sys

from programs import main, run, shown_on_terminal

FILES = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"


def write(name, lines):
    with open(name, "w", encoding="ascii") as file:
        file.writelines(line + "\n" for line in lines)
    return name


def skewed(dice, rows):
    return int(rows * dice.random() ** 4)


def click(dice):
    """A line of a click log, and its categories."""
    values = [f"{skewed(dice, 40 + f):x}" if dice.random() < 0.9 else "" for f in range(26)]
    return "\t".join([str(dice.randrange(2))] + ["1"] * 13 + values), values


def report(*arguments):
    text = run(*arguments, "--json", "report.json")
    with open("report.json", encoding="utf-8") as file:
        return text, json.load(file)


def tensors(path):
    """A safetensors file of I64, read by hand as Python's package does."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    out = {}
    for name, tensor in header.items():
        assert tensor["dtype"] == "I64", tensor
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        out[name] = list(struct.unpack(f"<{(end - begin) // 8}q", data[begin:end]))
    return metadata, out


def hottest(counts, number):
    return [row for row, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:number]]


def percent(rows, counts):
    return 100 * sum(counts[row] for row in rows) / sum(counts.values())


def close(a, b):
    assert abs(a - b) < 1e-9, (a, b)


def help_():
    text = run("--help")
    for part in ("--data", "--trace", "--sequences", "--rows", "--hottest", "--split", "--counters", "--ranks", "--out", "--svg", "--json"):
        assert part in text, part


def clicks():
    """Of tables so large that no two values meet, the profile is that of the values; of small ones, ids are rows."""
    dice = random.Random(1)
    lines = [click(dice) for _ in range(5000)]
    name = write("a.tsv", [line for line, _ in lines])
    counts = [collections.Counter(values[f] for _, values in lines) for f in range(26)]
    every = collections.Counter()
    for f in range(26):
        every.update({(f, value): n for value, n in counts[f].items()})
    text, r = report("--data", name, "--rows", 10**12, "--hottest", "3,200", "--out", "p.safetensors")
    assert "5000 samples; counts are exact\n" in text, text
    assert r["rows"] == 26 * 10**12 and r["rows_seen"] == len(every), r
    assert r["samples"] == 5000 and r["lookups"] == 130000 and r["lookups_per_sample"] == 26 and r["error"] == 0
    for i, n in enumerate((3, 200)):
        close(r["coverage"][i], 100 * sum(sorted(every.values())[-n:]) / 130000)
        for f, table in enumerate(r["tables"]):
            close(table["coverage"][i], 100 * sum(sorted(counts[f].values())[-n:]) / 5000)
    assert [table["name"] for table in r["tables"]] == [f"C{f + 1}" for f in range(26)]
    assert "coverage_after" not in r and r["samples_after"] is None, r
    metadata, profile = tensors("p.safetensors")
    assert metadata["format"] == "shardwise access profile 1"
    assert json.loads(metadata["tables"]) == [f"C{f + 1}" for f in range(26)]
    assert profile["samples"] == [5000]
    for f in range(26):
        where = f"tables/C{f + 1}/"
        assert profile[where + "total"] == [10**12, 5000, 0]
        assert sorted(profile[where + "lookups"]) == sorted(counts[f].values()) == sorted(profile[where + "samples"])
        assert profile[where + "row"] == sorted(set(profile[where + "row"]))
    _, r = report("--data", name, "--hottest", 5)
    assert all(table["rows"] == 5000 for table in r["tables"]), r
    _, r = report("--data", name, "--rows", ",".join(str(3 + f) for f in range(26)), "--hottest", 100)
    assert [table["rows"] for table in r["tables"]] == [3 + f for f in range(26)]
    assert all(0 < table["rows_seen"] <= table["rows"] and table["coverage"] == [100] for table in r["tables"]), r


def trace():
    """Ties go by row number; the table is as large as the trace takes, or as --rows says."""
    dice = random.Random(2)
    rows = [skewed(dice, 300) for _ in range(9000)]
    counts = collections.Counter(rows)
    write("trace.txt", map(str, rows))
    text, r = report("--trace", "trace.txt", "--hottest", "1,50,1000", "--out", "p.safetensors")
    assert r["rows"] == max(rows) + 1 and r["rows_seen"] == len(counts) and r["lookups_per_sample"] == 1, r
    for i, n in enumerate((1, 50, 1000)):
        close(r["coverage"][i], percent(hottest(counts, n), counts))
    assert r["coverage"][2] == 100 and f"{r['coverage'][1]:.2f} %" in text, text
    _, profile = tensors("p.safetensors")
    assert profile["tables/trace/row"] == sorted(counts)
    assert profile["tables/trace/lookups"] == [counts[row] for row in sorted(counts)] == profile["tables/trace/samples"]
    with gzip.open("trace.gz", "wt") as file:
        file.writelines(f"{row}\n" for row in rows)
    _, again = report("--trace", "trace.gz", "--rows", 12345, "--hottest", "1,50,1000")
    assert again["rows"] == 12345 and again["coverage"] == r["coverage"], again


def sequences():
    dice = random.Random(3)
    items = [skewed(dice, 80) for _ in range(3000)]
    write("s.txt", [f"{dice.randrange(50)} {item}" + dice.choice(["", " 1", "\t3 x"]) for item in items])
    _, r = report("--sequences", "s.txt", "--hottest", 10)
    counts = collections.Counter(items)
    close(r["coverage"][0], percent(hottest(counts, 10), counts))
    assert r["tables"][0]["name"] == "item" and r["samples"] == 3000 and r["rows"] == max(items) + 1, r


def split():
    """What the lines before say of the lines behind, wherever the cut falls."""
    dice = random.Random(4)
    rows = [skewed(dice, 500) for _ in range(10000)]
    rows[5000:] = [499 - row if dice.random() < 0.3 else row for row in rows[5000:]]  # it drifts
    write("t.txt", map(str, rows))
    for cut in (1, 4095, 4096, 4097, 9999):
        before, after = collections.Counter(rows[:cut]), collections.Counter(rows[cut:])
        _, r = report("--trace", "t.txt", "--split", cut, "--hottest", "7,60", "--out", "p.safetensors")
        assert r["samples"] == cut and r["samples_after"] == 10000 - cut, r
        for i, n in enumerate((7, 60)):
            chosen = hottest(before, n)
            close(r["coverage"][i], percent(chosen, before))
            close(r["coverage_after"][i], percent(chosen, after))
        assert r["rows"] == max(rows) + 1
        _, profile = tensors("p.safetensors")  # of the lines before
        assert profile["samples"] == [cut] and profile["tables/trace/row"] == sorted(before)
    lines = [click(dice)[0] for _ in range(100)]
    write("a.tsv", lines)
    write("first.tsv", lines[:30])
    _, r = report("--data", "a.tsv", "--split", 30, "--hottest", 20)
    _, first = report("--data", "first.tsv", "--hottest", 20)
    assert r["coverage"] == first["coverage"] and r["tables"][5]["coverage"] == first["tables"][5]["coverage"], (r, first)


def cache():
    """What caches are to samples: which are hot, and which quarters they touch; of the lines behind a split, where there is one."""
    dice = random.Random(4)
    clicks = [click(dice) for _ in range(300)]
    write("a.tsv", [line for line, _ in clicks])
    write("t.txt", [str(skewed(dice, 300)) for _ in range(2000)])
    rows = [int(line) for line in pathlib.Path("t.txt").read_text(encoding="utf-8").split()]
    for split in (None, 700):
        text, r = report("--trace", "t.txt", "--cache", "8,60", *(["--split", split] if split else []), "--ranks", 2)
        order = sorted(collections.Counter(rows[:split]).items(), key=lambda pair: (-pair[1], pair[0]))
        for use, size in zip(r["cache"], (8, 60)):
            hot = {row: 4 * i // size for i, (row, _) in enumerate(order[:size])}
            looked = rows[split or 0:]
            assert use["rows"] == size and use["samples"] == len(looked)
            close(use["hot_share"], sum(row in hot for row in looked) / len(looked))
            for quarter in range(4):
                close(use["quarters"][quarter], sum(hot.get(row) == quarter for row in looked) / len(looked))
        assert "hot samples" in text and r["config"]["cache"] == [8, 60], text
    _, r = report("--data", "a.tsv", "--rows", 60, "--cache", 400)
    profiled = r["cache"][0]
    assert 0 <= profiled["hot_share"] <= 1 and profiled["quarters"] == sorted(profiled["quarters"], reverse=True), profiled
    assert report("--trace", "t.txt")[1]["cache"] == []
    for arguments, text in ((["--cache", 3], "--cache 3: give at least 4 rows"), (["--cache", 100000], "a cache of 100000 rows: the profile saw")):
        run("--trace", "t.txt", *arguments, status=2, says=[text])


def ranks():
    """Threads share the files, and the profile is the same to the last count."""
    dice = random.Random(5)
    write("t.txt", [str(skewed(dice, 5000)) for _ in range(30000)])
    write("a.tsv", [click(dice)[0] for _ in range(6000)])
    for form, name in (("--trace", "t.txt"), ("--data", "a.tsv")):
        reports = []
        for n in (1, 3):
            _, r = report(form, name, "--split", 5001, "--ranks", n, "--out", f"p{n}")
            del r["config"], r["samples_per_second"]
            reports.append(r)
        assert reports[0] == reports[1]
        assert pathlib.Path("p1").read_bytes() == pathlib.Path("p3").read_bytes()


def counters():
    """Bounded memory: the file and the report state an error, and every count keeps to it."""
    dice = random.Random(6)
    rows = [skewed(dice, 3000) for _ in range(40000)]
    counts = collections.Counter(rows)
    write("t.txt", map(str, rows))
    for n in (1, 2):
        text, r = report("--trace", "t.txt", "--counters", 1200, "--ranks", n, "--hottest", 100, "--out", "p.safetensors")
        assert 0 < r["error"] <= 4 / 3 * 40000 / 1200, r
        assert f"too low: a row's look-ups by at most {r['error']}\n" in text, text
        assert r["rows"] == max(rows) + 1 and r["rows_seen"] <= 1200 * n, r
        assert r["coverage"][0] <= percent(hottest(counts, 100), counts)
        assert r["coverage"][0] > 0.95 * percent(hottest(counts, 100), counts), r
        _, profile = tensors("p.safetensors")
        found = dict(zip(profile["tables/trace/row"], profile["tables/trace/lookups"]))
        assert profile["tables/trace/total"] == [max(rows) + 1, 40000, r["error"]]
        assert all(found.get(row, 0) <= exact <= found.get(row, 0) + r["error"] for row, exact in counts.items())
    _, r = report("--trace", "t.txt", "--counters", len(counts), "--hottest", 100)
    assert r["error"] == 0 and r["coverage"][0] == percent(hottest(counts, 100), counts), r


def picture():
    """A curve a table, down to the right, inside of the picture."""
    dice = random.Random(7)
    write("a.tsv", [click(dice)[0] for _ in range(500)])
    run("--data", "a.tsv", "--rows", 1000, "--svg", "p.svg")
    svg = pathlib.Path("p.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg") and svg.endswith("</svg>\n")
    curves = re.findall(r'<polyline points="([^"]*)"', svg)
    assert len(curves) == 26 and all(f">C{f + 1}<" in svg for f in range(26)), len(curves)
    for curve in curves:
        points = [tuple(map(float, point.split(","))) for point in curve.split()]
        assert points == sorted(points) and all(a[1] <= b[1] for a, b in zip(points, points[1:])), points
        assert all(80 <= x <= 650 and 50 <= y <= 460 for x, y in points), points
    write("one.txt", ["7"])
    run("--trace", "one.txt", "--svg", "one.svg")
    assert "<polyline" in pathlib.Path("one.svg").read_text(encoding="utf-8")


def npy(name, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{'f' if kind == '<f4' else 'i'}", *values)
    pathlib.Path(name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return name


def numpy():
    """Numpy files, whose ids are rows as they are where tables are large enough."""
    dice = random.Random(8)
    ids = [[skewed(dice, 90) for _ in range(26)] for _ in range(300)]
    files = [npy("d_dense.npy", "<f4", (300, 13), [0.0] * 3900), npy("d_sparse.npy", "<i4", (300, 26), sum(ids, [])),
             npy("d_labels.npy", "<i4", (300, 1), [0] * 300)]
    _, r = report("--data", *files, "--rows", 100, "--hottest", 4, "--out", "p")
    _, profile = tensors("p")
    for f in range(26):
        counts = collections.Counter(line[f] for line in ids)
        assert profile[f"tables/C{f + 1}/row"] == sorted(counts)
        close(r["tables"][f]["coverage"][0], percent(hottest(counts, 4), counts))


def progress():
    """A long file shows on a terminal how fast it goes and how long it will take."""
    for samples in (16_000_000, 64_000_000, 256_000_000):  # until it is long for this machine
        with open("big.txt", "wb") as file:
            for _ in range(16):
                file.write(b"7\n" * (samples // 16))
        shown, out = shown_on_terminal(sys.argv[1], "--trace", "big.txt")
        assert f"{samples} samples; counts are exact" in out, out
        if shown:
            break
    assert re.search(rb"\d+ samples of about \d+ \(\d+ %\)   \d+ samples/s   \d+:\d\d left", shown), shown
    assert shown.endswith(b"\r\x1b[2K"), shown[-40:]


def bad_data():
    write("t.txt", ["1", "2", "x3"])
    for n in (1, 2):
        error = run("--trace", "t.txt", "--ranks", n, status=2, says=["t.txt, line 3, column 1 (row): 'x3', expected a whole number"])
        assert error.startswith("profile_rows: t.txt") and len(error.strip().splitlines()) == 1, error
    write("big.txt", ["1"] * 5000 + ["-1"])  # on the second rank
    error = run("--trace", "big.txt", "--ranks", 2, status=2, says=["big.txt, line 5001, column 1 (row): '-1', expected"])
    assert len(error.strip().splitlines()) == 1, error
    write("s.txt", ["1 2", "3"])
    run("--sequences", "s.txt", status=2, says=["s.txt, line 2: 1 column, expected 2 columns: user item and whatever follows"])
    write("empty", [])
    run("--trace", "empty", status=2, says=["empty: no look-ups: every file is empty"])
    run("--data", "t.txt", status=2, says=["t.txt, line 1: 1 column, expected 40 separated by tabs"])
    os.mkfifo("pipe")
    run("--trace", "pipe", "--ranks", 2, status=2, says=["pipe is no regular file, and is read once: leave --ranks 2 out"])


def bad_usage():
    write("t.txt", ["1", "2", "3"])
    before = sorted(os.listdir())
    for arguments, text in [([], "none of --data, --trace and --sequences is given: give one of them"),
                            (["--trace", "t.txt", "--data", "t.txt"], "several of --data, --trace and --sequences are given"),
                            (["--trace", "t.txt", "--hottest", 0], "--hottest 0: give at least 1"),
                            (["--trace", "t.txt", "--hottest", "3,x"], "--hottest"),
                            (["--trace", "t.txt", "--split", 0], "--split 0: give at least 1 line"),
                            (["--trace", "t.txt", "--split", 3], "--split 3: there are 3 lines, and none behind the split; give less"),
                            (["--trace", "t.txt", "--rows", 0], "--rows 0: give at least 1"),
                            (["--trace", "t.txt", "--rows", 3], "t.txt, line 3, column 1 (row): 3 is no row of the table: its rows are 0 to 2"),
                            (["--sequences", "t.txt", "--rows", "3,4"], "--rows: 2 numbers for the one table of --sequences; give one"),
                            (["--data", "t.txt", "--rows", "3,4"], "--rows: 2 numbers; give one for all features, or 26"),
                            (["--trace", "t.txt", "--counters", 0], "--counters 0: give at least 1, or leave it out to count every row"),
                            (["--trace", "t.txt", "--counters", 10**12], "1000000000000 counters of rows: give 1 to 2147483648"),
                            (["--trace", "t.txt", "--ranks", 0], "--ranks 0: give at least 1"),
                            (["--trace", "nowhere"], "nowhere: cannot be read"),
                            (["--trace", "t.txt", "--out", "/no/such/folder/p"], "/no/such/folder/p: cannot be written"),
                            (["--trace", "t.txt", "--svg", "/no/such/folder/p"], "/no/such/folder/p: cannot be written"),
                            (["--nonsense"], "profile_rows --help")]:
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("profile_rows: ") and len(error.strip().splitlines()) == 1, error
    assert sorted(os.listdir()) == before, os.listdir()


def real_files():
    """Figures known of real files, where these lie beside the project."""
    if not FILES.is_dir():
        print("no real files")
        return
    _, r = report("--sequences", FILES / "movielens_1m_tail.txt", "--split", 99683, "--hottest", 340)
    assert (round(r["coverage"][0], 1), round(r["coverage_after"][0], 1)) == (37.3, 32.8), r
    _, r = report("--trace", FILES / "row_trace_500k.txt", "--hottest", 5000)
    assert r["rows_seen"] == 102524 and round(r["coverage"][0], 1) == 24.9, r
    _, r = report("--trace", FILES / "row_trace_500k.txt", "--hottest", 5000, "--split", 429951 // 2)
    assert round(r["coverage_after"][0], 1) == 6.6, r
    _, r = report("--data", FILES / "criteo_kaggle_train.tsv", "--rows", 10**9, "--hottest", "5000,10000")
    assert r["rows_seen"] == 34443 and [round(c) for c in r["coverage"]] == [81, 87], r


main({"help": help_, "clicks": clicks, "trace": trace, "sequences": sequences, "split": split, "cache": cache, "ranks": ranks, "counters": counters,
      "picture": picture, "numpy": numpy, "progress": progress, "bad_data": bad_data, "bad_usage": bad_usage, "real_files": real_files})
