# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import collections
import json
import math
import pathlib
import random

from programs import main, read_safetensors, run, write_profile, write_runs

FILES = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"


def plan(*arguments):
    text = run(*arguments, "--json", "cache.json")
    with open("cache.json", encoding="utf-8") as file:
        return json.load(file), text


def near(found, expected, relative=1e-9):
    assert abs(found - expected) <= relative * abs(expected), (found, expected)


def help_():
    text = run("--help")
    for part in ("--distribution", "--law", "--profile", "--names", "--dim", "--batch", "--memory", "--activation", "--runs", "--samples", "--least-batch",
                 "--cached", "--out", "--ranks", "--hosts", "--replay", "--sizes", "--seed", "--svg", "--json", "Exit status"):
        assert part in text, part


def distinct():
    """U(b) of laws, of a file and of a profile; and what a batch moves, by the paper and by the library."""
    for law, batch, unique in (("zipf:1000", 256, 130.064071702), ("zipf:100000", 4096, 2070.226243863), ("exponential:100000:1000", 4096, 1990.703404458),
                               ("half_normal:100000:1000", 4096, 1380.490434319)):
        found, text = plan("--law", law, "--batch", batch)
        near(found["unique"], unique)
        assert f"U = {unique:.6f} distinct rows" in text and found["tables"][0]["cached"] is None, text
    write_runs("runs", [(40, 0.0125), (5, 0.1)])
    unique = 40 * (1 - (1 - 0.0125) ** 64) + 5 * (1 - 0.9 ** 64)
    found, _ = plan("--distribution", "runs", "--batch", 64, "--dim", 16)
    near(found["unique"], unique)
    near(found["batch_elements"]["uncoalesced"], 64 * 16)
    near(found["batch_elements"]["coalesced"], 64 + 16 * unique)
    near(found["batch_bytes"]["ids"], 4 * unique)
    near(found["batch_bytes"]["rows"], 64 * unique)
    # a profile: by samples that hold a row, and not by look-ups; rows of both tables
    write_profile("profile", 100, {"a": (50, 90, 0, {3: 60, 9: 30}), "b": (10, 40, 0, {0: 40})})
    found, _ = plan("--profile", "profile", "--batch", 8)
    near(found["unique"], sum(1 - (1 - q) ** 8 for q in (0.6, 0.3, 0.4)))
    near(found["lookups_per_sample"], 1.3)


def sizes():
    """Published optima; the curve holds them, and the plan too."""
    for law, activation, least, cached, cost, uncached in (("zipf:3000", 200, 1, 1559, 5.879258805, 33.557549), ("zipf:3000", 200, 64, 1362, 6.875179576, 33.557549),
                                                           ("exponential:3000:600", 4, 1, 1562, 5.334647, 7.220535)):
        common = ["--law", law, "--dim", 64, "--memory", 100000, "--activation", activation, *(["--least-batch", least] if least > 1 else [])]
        found, text = plan(*common, "--out", "rows.plan", "--svg", "cache.svg", "--names", "t")
        assert found["cached"] == cached == found["most_cached"], found
        near(found["cost"], cost, 1e-7)
        near(found["cost_uncached"], uncached, 1e-7)
        near(found["batch"], (100000 - 64 * cached) / activation)
        assert found["evaluations"] <= math.ceil(math.log2(3000)) + 3
        assert min(point["cost"] for point in found["curve"]) == found["cost"] and [point["cached"] for point in found["curve"]][::200] == [0, cached]
        assert found["last_row"]["pays"] and found["last_row"]["lost"] <= found["last_row"]["sufficient"] and found["next_row"] is None, found
        assert ("give --least-batch" in text) == (least == 1 and found["batch"] <= 8), text
        metadata, tensors = read_safetensors("rows.plan")
        assert json.loads(metadata["tiers"]) == ["dp", "row"] and tensors["tables/t/tiers"] == [cached, 3000 - cached], tensors
        svg = pathlib.Path("cache.svg").read_text(encoding="utf-8")
        assert svg.startswith("<svg") and svg.endswith("</svg>\n") and svg.count("<polyline") == 2 and f"{cached} rows: " in svg, svg
        # of another size
        other, text = plan(*common, "--cached", 100)
        p = [1 / i if law[0] == "z" else math.exp(-i / 600) for i in range(1, 3001)]
        batch = (100000 - 6400) / activation
        near(other["cost"], 1 + 64 / batch * sum(1 - (1 - x / sum(p)) ** batch for x in p[100:]))
        assert other["cached"] == 100 and other["best"]["cached"] == cached and other["batch"] == batch and "--cached" in text, other


def tables():
    """Rows of several tables in one order, by look-ups an element; only rows that a profile lists."""
    write_profile("profile", 1000, {"small": (50, 950, 0, {7: 500, 3: 300, 11: 150}), "large": (9, 1000, 0, {5: 900, 2: 100})})
    found, text = plan("--profile", "profile", "--dim", "2,8", "--memory", 16, "--activation", 1, "--cached", 3, "--out", "rows.plan")
    assert [table["cached"] for table in found["tables"]] == [2, 1], found["tables"]  # 0.25, 0.15, then 0.9 / 8 and 0.15 / 2
    assert found["batch"] == 4 and found["most_cached"] == 4, found
    near(found["cost"], 1.95 + (2 * (1 - 0.85 ** 4) + 8 * (1 - 0.9 ** 4)) / 4)
    tensors = read_safetensors("rows.plan")[1]
    assert tensors["tables/small/replicated"] == [7, 3] and tensors["tables/large/replicated"] == [5], tensors
    assert "large" in text and "small" in text
    assert "tables/small/touches" not in tensors
    # what a step is expected to touch, of batches of that size
    for source, names in ((["--profile", "profile"], ("small", "large")), (["--law", "zipf:50", "--law", "zipf:9", "--names", "x,y"], ("x", "y"))):
        plan(*source, "--dim", "2,8", "--memory", 16, "--activation", 1, "--cached", 3 if names[0] == "small" else 4, "--out", "rows.plan", "--ranks", 6, "--hosts", 2)
        tensors = read_safetensors("rows.plan")[1]
        assert len(tensors[f"tables/{names[0]}/touches"]) == 6, tensors
        if names[0] == "small":  # four samples a rank
            for at, samples in enumerate((4, 12, 24)):
                assert tensors["tables/small/touches"][at] == round(sum(1 - (1 - q) ** samples for q in (0.5, 0.3))), tensors
    run("--profile", "profile", "--dim", "2,8", "--memory", 100, "--activation", 1, "--cached", 6, status=2,
        says=["6 cached rows: there are 5 that may be cached"])


def trained():
    """The memory of a sample is what two runs of a trainer measured, and the plan trains."""
    reports = []
    common = ["--dim", 8, "--rows", 3000, "--ranks", 2, "--steps", 2]
    for batch in (64, 256):
        run(*common, "--batch", batch, "--json", f"{batch}.json", program="train_dlrm")
        with open(f"{batch}.json", encoding="utf-8") as file:
            reports.append(json.load(file)["memory"])
    taken = [max(a + b for a, b in zip(of["measured"]["dynamic"]["by_rank"], of["dense"]["dynamic"]["by_rank"])) for of in reports]
    laws = sum((["--law", "zipf:3000:1.05"] for _ in range(26)), [])
    names = ",".join(f"C{i}" for i in range(1, 27))
    found, text = plan(*laws, "--names", names, "--dim", 8, "--memory", 5e5, "--runs", "64.json,256.json", "--least-batch", 64, "--out", "rows.plan")
    near(found["config"]["activation"], (taken[1] - taken[0]) / 192 / 4)
    assert f"a sample takes {found['config']['activation']:.6g} elements, by both runs" in text, text
    assert 0 < found["cached"] < 26 * 3000 and found["batch"] >= 64, (found["cached"], found["batch"])
    run(*common, "--sharding", "tiered", "--plan", "rows.plan", program="train_dlrm")
    for files, text in (("64.json", "1 files; give two"), ("64.json,64.json", "both had batches of 64 samples"), ("64.json,cache.json", "cache.json is no report of a trainer"),
                        ("64.json,none", "none cannot be read")):
        run("--law", "zipf:10", "--dim", 8, "--memory", 1e6, "--runs", files, status=2, says=[text])


def replay():
    """Hit rates and windows, against caches that are played through."""
    dice = random.Random(1)
    trace = [int(40 * dice.random() ** 3) + (20 if i > 2000 else 0) for i in range(4001)]
    pathlib.Path("trace").write_text("".join(f"{row}\n" for row in trace), encoding="utf-8")
    found, text = plan("--replay", "trace", "--sizes", "3,10,60", "--batch", 50)

    def hottest(part, size):
        counts = collections.Counter(part)
        return set(sorted(counts, key=lambda row: (-counts[row], row))[:size])

    assert (found["lookups"], found["rows"]) == (4001, len(set(trace)))
    for of, size in zip(found["replay"], (3, 10, 60)):
        assert of["size"] == size
        near(of["in_sample"], sum(row in hottest(trace, size) for row in trace) / 4001)
        near(of["second_half"], sum(row in hottest(trace[:2000], size) for row in trace[2000:]) / 2001)
        cache, hits = collections.OrderedDict(), 0
        for row in trace:
            hits += row in cache
            cache[row] = True
            cache.move_to_end(row)
            if len(cache) > size:
                cache.popitem(last=False)
        near(of["lru"], hits / 4001)
    assert [of["predicts"] for of in found["replay"]][0] is False and not found["static_cache_fits"], found
    assert "A static cache does not fit this data." in text, text
    windows = [len(set(trace[i:i + 50])) for i in range(0, 4000, 50)]
    near(found["windows"]["in_order"], sum(windows) / 80)
    near(found["windows"]["expected"], sum(1 - (1 - n / 4001) ** 50 for n in collections.Counter(trace).values()))
    assert found["windows"]["count"] == 80 and abs(found["windows"]["shuffled"] / found["windows"]["expected"] - 1) < 0.05, found
    assert plan("--replay", "trace", "--sizes", 3, "--batch", 50, "--seed", 1)[0]["windows"] != found["windows"]
    # the same rows all along
    pathlib.Path("stays").write_text("".join(f"{int(40 * dice.random() ** 3)}\n" for _ in range(4000)), encoding="utf-8")
    found, text = plan("--replay", "stays", "--sizes", "3,10")
    assert found["static_cache_fits"] and "does not fit" not in text and found["windows"] is None, found


def real_trace():
    """A trace of one table of 500,000 rows, where there is one."""
    if not FILES.is_dir():
        print("no real files")
        return
    found, text = plan("--replay", FILES / "row_trace_500k.txt", "--sizes", "1000,5000,10000,25000,50000", "--batch", 4096)
    for of, in_sample, second, lru in zip(found["replay"], (9.55, 24.94, 37.50, 61.21, 82.77), (2.86, 6.59, 9.88, 18.09, 28.89), (None, 67.5, None, 71.3, 74.2)):
        assert abs(100 * of["in_sample"] - in_sample) < 0.005 + 1e-9 and abs(100 * of["second_half"] - second) < 0.005 + 1e-9, of
        assert lru is None or abs(100 * of["lru"] - lru) < 0.05 + 1e-9, of
    windows = found["windows"]
    assert all(abs(windows[key] - value) < margin for key, value, margin in (("expected", 3878.3, 0.05), ("in_order", 1928.6, 0.05), ("shuffled", 3896, 10))), windows
    assert "A static cache does not fit this data." in text


def bad_usage():
    write_runs("less", [(10, 0.05), (4, 0.1)])
    write_runs("above", [(1, 1.5)])
    write_runs("negative", [(1, 1.5), (1, -0.5)])
    pathlib.Path("words").write_text("1\nx\n", encoding="utf-8")
    pathlib.Path("one").write_text("1\n", encoding="utf-8")
    sized = ["--law", "zipf:10", "--dim", 4, "--memory", 1000]
    for arguments, text in (
        ([], "no table to plan for"),
        (["--law", "zipf:10"], "--batch is not given: give it for the distinct rows of a batch, or --memory M to size a cache"),
        (["--law", "zipf:10", "--batch", 0], "--batch 0: give at least 1"),
        (["--law", "zipf:10", "--batch", 4, "--least-batch", 3], "--least-batch has no effect without --memory M"),
        (["--law", "zipf:10", "--batch", 4, "--out", "p"], "--out has no effect without --memory M"),
        (["--law", "zipf:10", "--memory", 1000, "--activation", 20], "--dim is not given: say how many elements a row has"),
        (sized, "--activation is not given: say what a sample takes"),
        ([*sized, "--activation", 0], "the memory that a sample takes is 0: give a number above 0"),
        ([*sized, "--activation", 2000], "memory of 1000 is too little: one sample takes 2000; give at least that"),
        ([*sized, "--activation", 20, "--least-batch", 64], "memory of 1000 is too little: a batch of 64 samples takes 1280; give at least that"),
        ([*sized, "--activation", 20, "--least-batch", 0.5], "a least batch of 0.5 samples: give at least 1"),
        ([*sized, "--activation", 20, "--cached", 11], "11 cached rows: there are 10 that may be cached; give 0 to 10"),
        ([*sized, "--activation", 20, "--cached", 9, "--least-batch", 49], "9 cached rows: give 0 to 5, which leaves memory for a batch of 49 samples"),
        ([*sized, "--activation", 20, "--samples", -1], "the number of samples of an epoch is -1: give a number above 0"),
        (["--distribution", "less", "--batch", 4], "less: the probabilities of its rows sum to 0.9; give some that sum to 1"),
        (["--distribution", "above", "--batch", 4], "above: a row has a probability of 1.5; give 0 to 1"),
        (["--distribution", "negative", "--batch", 4], "-0.5"),
        ([*sized, "--activation", 20, "--ranks", 4], "--ranks has no effect without --out FILE"),
        ([*sized, "--activation", 20, "--out", "p", "--hosts", 4], "--hosts has no effect without --ranks"),
        ([*sized, "--activation", 20, "--out", "p", "--ranks", 4, "--hosts", 3], "3"),
        (["--law", "zipf:10", "--sizes", 3], "--sizes has no effect without --replay FILE"),
        (["--replay", "one"], "--sizes is not given: say how many rows the caches have"),
        (["--replay", "one", "--sizes", 3, "--dim", 4], "--dim has no effect with --replay: the trace is the table"),
        (["--replay", "one", "--sizes", 3, "--svg", "x.svg"], "--svg has no effect with --replay"),
        (["--replay", "one", "--sizes", 3], "a trace of 1 look-ups: give at least 2"),
        (["--replay", "words", "--sizes", 3], "words, line 2, column 1 (row): 'x', expected a whole number"),
        (["--replay", "none", "--sizes", 3], "none: cannot be read"),
        ([*sized, "--activation", 20, "--json", "no/x.json"], "no/x.json"),
    ):
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("plan_cache: ") and len(error.strip().splitlines()) == 1, error


main({"help": help_, "distinct": distinct, "sizes": sizes, "tables": tables, "trained": trained, "replay": replay, "real_trace": real_trace,
      "bad_usage": bad_usage})
