# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import os
import time

from programs import main, read_safetensors, run, write_profile, write_runs

# Laws that have the published rows of RM-1 and RM-3 (FlexShard, Table 5), by the cut between DP and Flex.
RM1_FLEX = "slopes:30000000:100064:346144:1284608:0.00128173828125:0.643688:1.087021:1.081441:1.025404"
RM3_FLEX = "slopes:10000000:36704:115296:355264:0.00128173828125:0.573397:0.849764:0.915061:0.890823"
RM1_ROW = "slopes:30000000:100064:346144:1284608:0.00145721435546875:0.590928:1.302464:0.870457:1.116122"
RM3_ROW = "slopes:10000000:36704:115296:355264:0.00145721435546875:0.512908:1.072303:0.698254:0.958448"
RM1_TABLE5 = (346144, 52.5, 100064, 36.8, 1184544, 30.6)
RM3_TABLE5 = (115296, 34.9, 36704, 22.7, 318560, 25.9)


def plan(*arguments):
    run(*arguments, "--json", "plan.json")
    with open("plan.json", encoding="utf-8") as file:
        return json.load(file)


def near(found, expected, relative):
    assert abs(found - expected) <= relative * abs(expected), (found, expected)


def hundredth(law):
    """Means of p of a hundred neighbouring rows each, of a law `slopes:...`."""
    rows, *n, p1, s0, s1, s2, s3 = (float(x) for x in law.split(":")[1:])
    p2 = p1 * (n[1] / n[0]) ** -s1
    p3 = p2 * (n[2] / n[1]) ** -s2

    def p(i):
        if i <= n[0]:
            return min(1, p1 * (i / n[0]) ** -s0)
        if i <= n[1]:
            return p1 * (i / n[0]) ** -s1
        return p2 * (i / n[1]) ** -s2 if i <= n[2] else p3 * (i / n[2]) ** -s3

    def tail(x):  # the integral of the last piece
        return p3 * n[2] ** s3 * x ** (1 - s3) / (1 - s3)

    for first in range(1, int(rows), 100):
        exact = first <= n[2]
        yield (sum(map(p, range(first, first + 100))) if exact else tail(first + 99.5) - tail(first - 0.5)) / 100


def write_hundredth(path, law):
    """In an order that is none."""
    runs = [(1, p) for p in hundredth(law)]
    write_runs(path, runs[1::2] + runs[::2][::-1])


def help_():
    text = run("--help")
    for part in ("--distribution", "--law", "--names", "--dim", "--hosts", "--ranks", "--batch", "--tiers", "--cut", "--chunk", "--multiplier", "--model", "--goal",
                 "--budget", "--a2a-global", "--a2a-intra", "--ar-global", "--ar-cross", "--svg", "--json", "Exit status"):
        assert part in text, part


def accounting():
    """Costs, ratios and neutral points, to 1e-12, with no two parameters alike."""
    rows, p, dim, hosts, ranks, batch, x = 1000, 0.375, 48, 3, 15, 256, 7
    a2a, intra, ar, cross = 20e9, 70e9, 50e9, 190e9
    write_runs("runs", [(rows, p)])
    found = plan("--distribution", "runs", "--dim", dim, "--hosts", hosts, "--ranks", ranks, "--batch", batch, "--multiplier", x,
                 "--a2a-global", 20, "--a2a-intra", 70, "--ar-global", 50, "--ar-cross", 190)
    row, vectors, host = dim * 4, batch * rows * p * dim * 4, ranks // hosts
    static = {"row": rows / ranks * row, "col": rows / ranks * row, "dp": x * rows * row, "flex": x * rows / host * row}
    dynamic = {"row": 2 * vectors, "col": 2 * vectors, "dp": vectors, "flex": 2 * vectors}
    ids = {"row": batch * rows * p, "col": ranks * batch * rows * p, "dp": 0, "flex": batch * rows * p}
    there = {"row": vectors / a2a, "col": vectors / a2a, "dp": 0, "flex": vectors / intra}
    back = {"row": 0, "col": 0, "dp": rows * row / ar, "flex": rows * row / cross}
    assert list(found["cost"]) == ["row", "col", "dp", "flex"]
    for name, cost in found["cost"].items():
        for key, expected in (("static_bytes", static), ("dynamic_bytes", dynamic), ("ids", ids), ("dynamic_seconds", there),
                              ("static_seconds", back)):
            near(cost[key], expected[name], 1e-12)
        near(cost["elements_accessed"], batch * rows * p * dim, 1e-12)
    neutral = found["neutral"]
    near(neutral["memory_dp_row"], (x - 1 / ranks) / batch, 1e-12)
    near(neutral["memory_dp_flex"], (x - x / host) / batch, 1e-12)
    assert neutral["memory_flex_row"] is None
    near(neutral["communication_dp_row"], a2a / (2 * batch * ar), 1e-12)
    near(neutral["communication_flex_row"], 1 / cross / (2 * batch * (1 / a2a - 1 / intra)), 1e-12)
    near(neutral["communication_dp_flex"], (1 / ar - 1 / cross) / (2 * batch / intra), 1e-12)
    for ratio in found["dp_over_row"]:
        near(ratio["memory"], (x + batch * ratio["alpha"]) / (1 / ranks + 2 * batch * ratio["alpha"]), 1e-12)
        near(ratio["communication"], a2a / ar / (2 * batch * ratio["alpha"]), 1e-12)
    # Without bandwidths there is no time, and with the paper's setting its Figure 3.
    found = plan("--distribution", "runs")
    assert found["neutral"]["communication_dp_row"] is None and found["cost"]["row"]["dynamic_seconds"] is None, found
    assert found["speedup"] == {"cross_hidden": None, "cross_exposed": None} and found["points"]["C"] is None, found
    near(found["neutral"]["memory_dp_row"], 1.457214e-3, 1e-6)
    near(found["neutral"]["memory_dp_flex"], 1.281738e-3, 1e-6)
    figure3 = {round(ratio["alpha"], 9): ratio["memory"] for ratio in found["dp_over_row"]}
    near(figure3[1e-5], 53.3795, 1e-6)
    near(figure3[1e-4], 7.5367, 1e-5)
    near(figure3[1], 0.5007, 1e-4)


def library():
    """The library's own memory: of rows that are never looked up to the byte, and plans that keep to it."""
    write_runs("cold", [(1000, 0.5), (1000000, 1e-12)])
    found = plan("--distribution", "cold", "--dim", 16, "--model", "library")
    assert found["config"]["model"] == "library", found["config"]
    neutral = found["neutral"]
    assert 1e-6 < neutral["memory_dp_row"] < 1e-2 and neutral["memory_flex_row"] is not None, neutral
    assert found["points"]["A"]["rows"] == 1024, found["points"]  # the last chunk of 32 rows has 8 hot ones
    replica, shard = 16 * 4 + 4 + 8, (16 * 4 + 4) / 32  # weights, a moment, its place
    at_a, at_d = found["points"]["A"], found["points"]["D"]
    near(at_d["net_bytes"] - at_a["net_bytes"], 999976 * (replica - shard), 0.01)
    least = plan("--distribution", "cold", "--dim", 16, "--model", "library", "--goal", "memory")["net_bytes"]
    assert least <= at_a["net_bytes"] < 0 and found["net_bytes"] <= 0, (least, at_a, found["net_bytes"])
    within = plan("--distribution", "cold", "--dim", 16, "--model", "library", "--tiers", "dp,row", "--budget", -400e6)
    assert -400.1e6 < within["net_bytes"] <= -400e6 and within["tiers"]["row"]["rows"] > 0, within


def algebra():
    """Table 5 of four models, from nothing but rows and coverage of DP."""
    for two, coverage, dp, dp_coverage, flex in ((346144, 0.525, 100064, 0.368, 1183921), (507072, 0.770, 128736, 0.639, 2425433),
                                                 (115296, 0.349, 36704, 0.227, 317956), (184864, 0.570, 55040, 0.390, 593312)):
        lookups = 5.96875 * two / (4096 * coverage)
        write_runs("runs", [(9000000, (1 - dp_coverage) * lookups / 9000000), (dp, dp_coverage * lookups / dp)])
        tiers = plan("--distribution", "runs", "--chunk", 1)["tiers"]
        assert tiers["dp"]["rows"] == dp and abs(tiers["flex"]["rows"] - flex) <= 1, tiers
        near(tiers["dp"]["coverage"], 100 * dp_coverage, 1e-9)


def full_size():
    """Table 5 from distributions of 30 M and 10 M rows, each plan in under 20 seconds."""
    for law, cut, published in ((RM1_FLEX, "flex", RM1_TABLE5), (RM3_FLEX, "flex", RM3_TABLE5), (RM1_ROW, "row", RM1_TABLE5),
                                (RM3_ROW, "row", RM3_TABLE5)):
        two, two_coverage, dp, dp_coverage, flex, flex_coverage = published
        begin = time.monotonic()
        found = plan("--law", law, "--tiers", "dp,row")
        assert set(found["tiers"]) == {"dp", "row"}, found["tiers"]
        for tiers, tier, rows, coverage in ((found["tiers"], "dp", two, two_coverage),
                                            *((plan("--law", law, "--cut", cut)["tiers"], *t)
                                              for t in (("dp", dp, dp_coverage), ("flex", flex, flex_coverage)))):
            near(tiers[tier]["rows"], rows, 0.0015)
            assert abs(tiers[tier]["coverage"] - coverage) <= 0.1 and tiers[tier]["rows"] % 32 == 0, (tier, tiers)
        assert time.monotonic() - begin < 20 * 3


def one_in_a_hundred():
    """A hundredth of the rows has a hundredth of the counts; points, a budget, two tables of two dimensions."""
    write_hundredth("rm1", RM1_FLEX)
    write_hundredth("rm3", RM3_FLEX)

    def counts(*arguments):
        found = plan("--chunk", 1, *arguments)
        return [[table["tiers"][tier]["rows"] for tier in ("dp", "flex") if tier in table["tiers"]] for table in found["tables"]]

    assert counts("--distribution", "rm1", "--tiers", "dp,row") == [[3462]]
    assert counts("--distribution", "rm3", "--tiers", "dp,row") == [[1153]]
    assert counts("--distribution", "rm1", "--cut", "flex") == [[1001, 11843]]
    assert counts("--distribution", "rm3", "--cut", "flex") == [[367, 3182]]
    assert counts("--distribution", "rm1", "--cut", "row") == counts("--distribution", "rm1") == [[820, 11939]]
    both = ["--distribution", "rm1", "rm3", "--dim", "64,256"]
    assert counts(*both, "--tiers", "dp,row") == [[2776], [1338]]
    assert counts(*both, "--cut", "flex") == [[1001, 7044], [367, 4382]]

    found = plan("--distribution", "rm1", "--chunk", 1, "--a2a-global", 25, "--ar-global", 75)
    for name, rows, coverage in (("A", 820, 34.2), ("B", 3462, 52.5), ("C", 25001, 74.5), ("D", 300000, 100)):
        point = found["points"][name]
        assert point["rows"] == rows and abs(point["coverage"] - coverage) <= 0.05, (name, point)
    assert found["points"]["B"]["net_bytes"] <= 0 < found["points"]["D"]["net_bytes"] and found["net_bytes"] <= 0
    # the goals are the points
    for goal, name, bandwidths in (("memory", "A", []), ("neutral", "B", []), ("communication", "C", ["--a2a-global", 25, "--ar-global", 75])):
        planned = plan("--distribution", "rm1", "--chunk", 1, "--tiers", "dp,row", "--goal", goal, *bandwidths)
        assert planned["tiers"]["dp"]["rows"] == found["points"][name]["rows"], (goal, planned["tiers"])
        near(planned["net_bytes"], found["points"][name]["net_bytes"], 1e-9)
    half = found["cost"]["row"]["static_bytes"] / 2
    for goal in ("neutral", "communication"):
        tiers = plan("--distribution", "rm1", "--chunk", 1, "--tiers", "dp,row", "--goal", goal, "--budget", half)["tiers"]
        assert tiers["dp"]["rows"] == 4442 and abs(tiers["dp"]["coverage"] - 55.5) <= 0.05, tiers
    # under point A's: the sentence says the least, which there is a plan for
    error = run("--distribution", "rm1", "--chunk", 1, "--budget", -1e8, status=2, says=["the least is -", "with 820 DP rows"])
    least = error.split("the least is ")[1].split(",")[0]
    near(int(least), found["points"]["A"]["net_bytes"], 1e-6)
    assert plan("--distribution", "rm1", "--chunk", 1, "--budget", least)["tiers"]["dp"]["rows"] == 820


def speedup():
    """Table 6's times of RM-2 as bandwidths: nearly six times as fast, and 3.9 with the all-reduce across hosts not hidden."""
    lookups, dp, flex = 959.6, 128736, 2397216
    write_runs("runs", [(dp, 0.639 * lookups / dp), (flex, 0.217 * lookups / flex), (27474048, 0.144 * lookups / 27474048)])
    volume = 2 * 4096 * lookups * 1024
    found = plan("--distribution", "runs", "--chunk", 1, "--a2a-global", volume / 308e6, "--ar-global", dp * 1024 / 3e6,
                 "--a2a-intra", volume * 0.217 / 21e6, "--ar-cross", flex * 1024 / 27e6)
    assert found["tiers"]["dp"]["rows"] == dp and found["tiers"]["flex"]["rows"] == flex, found["tiers"]
    near(found["seconds"]["row_only"], 308e-3, 1e-9)
    near(found["seconds"]["all_to_all_global"], 0.144 * 308e-3, 1e-6)
    near(found["seconds"]["all_reduce_cross"], 27e-3, 1e-9)
    near(found["speedup"]["cross_hidden"], 308 / (0.144 * 308 + 3), 1e-6)
    near(found["speedup"]["cross_exposed"], 308 / (0.144 * 308 + 3 + 27), 1e-6)


def tables():
    """Several tables, of files and laws; what is printed, and the picture."""
    write_runs("runs", [(50, 0.01), (1000, 1e-5), (10, 0.5)])
    arguments = ["--distribution", "runs", "--law", "zipf:5000:1:3", "--law", "exponential:100:20:1", "--dim", "16,8,4", "--chunk", 2,
                 "--a2a-global", 25, "--ar-global", 75]
    text = run(*arguments, "--svg", "rows.svg", "--json", "plan.json")
    with open("plan.json", encoding="utf-8") as file:
        found = json.load(file)
    assert [table["name"] for table in found["tables"]] == ["runs", "zipf:5000:1:3", "exponential:100:20:1"]
    assert [table["dim"] for table in found["tables"]] == [16, 8, 4]
    for tier, of in found["tiers"].items():
        assert of["rows"] == sum(table["tiers"][tier]["rows"] for table in found["tables"])
        assert f"  {tier} " in text and str(of["rows"]) in text, text
    assert found["rows"] == 6160 == sum(of["rows"] for of in found["tiers"].values())
    for of in (found, *found["tables"]):
        near(sum(tier["coverage"] for tier in of["tiers"].values()), 100, 1e-9)
    near(sum(tier["volume"] for tier in found["tiers"].values()), 100, 1e-9)
    near(found["lookups_per_sample"], 5.51 + 3 + 1, 1e-9)
    with open("rows.svg", encoding="utf-8") as file:
        svg = file.read()
    assert svg.startswith("<svg") and svg.endswith("</svg>\n") and "nan" not in svg and "inf" not in svg
    assert all(f">{name}: " in svg for name in "ABCD") and svg.count("<polyline") == 3
    # one dimension for all, and tables without any row that pays
    assert [t["dim"] for t in plan("--law", "zipf:50:1:1", "--law", "zipf:60:1:1", "--dim", 7)["tables"]] == [7, 7]
    text = run("--law", "zipf:5000:0:1", "--svg", "flat.svg", "--json", "flat.json")
    with open("flat.json", encoding="utf-8") as file:
        points = json.load(file)["points"]
    assert points["A"] is None and points["B"] is None and points["C"] is None and points["D"]["rows"] == 5000, points
    assert text.count("does not exist: no row saves memory") == 2, text


def profile():
    """A profile's tables, and the plan of its rows as trainers take it."""
    tables = {"a": (100, {70: 900, 3: 900, 8: 500, 99: 40, 5: 1}), "b": (7, {6: 30, 1: 2})}
    write_profile("profile", 1000, {name: (rows, sum(seen.values()), 0, seen) for name, (rows, seen) in tables.items()})
    common = ["--profile", "profile", "--hosts", 2, "--ranks", 4, "--batch", 1024, "--dim", 8, "--chunk", 1]
    two = plan(*common, "--tiers", "dp,row", "--goal", "communication", "--a2a-global", 1, "--ar-global", 1, "--out", "two.plan")
    write_runs("a", [(2, 0.9), (1, 0.5), (1, 0.04), (1, 0.001), (95, 0)])
    write_runs("b", [(1, 0.03), (1, 0.002), (5, 0)])
    same = plan("--distribution", "a", "--distribution", "b", *common[2:], "--tiers", "dp,row", "--goal", "communication",
                "--a2a-global", 1, "--ar-global", 1)
    assert two["tiers"] == same["tiers"] and [t["name"] for t in two["tables"]] == ["a", "b"]
    metadata, found = read_safetensors("two.plan")
    assert json.loads(metadata["tiers"]) == ["dp", "row"] and json.loads(metadata["tables"]) == ["a", "b"]
    rows = [t["tiers"]["dp"]["rows"] for t in two["tables"]]
    assert rows[0] > 2 and found["tables/a/tiers"] == [rows[0], 100 - rows[0]]
    assert found["tables/a/replicated"] == [3, 70, 8, 99, 5][:rows[0]]
    unseen = [row for row in range(100) if found["tables/a/unseen"][row // 64] >> row % 64 & 1]
    assert unseen == [row for row in range(100) if row not in tables["a"][1]]
    # chunks of rows that were not seen are not replicated
    plan(*common[:-2], "--chunk", 50, "--tiers", "dp,row", "--goal", "communication", "--a2a-global", 1, "--ar-global", 100, "--out", "all.plan")
    assert read_safetensors("all.plan")[1]["tables/a/tiers"] == [5, 95]
    # of these hot rows nearly all are touched: dense, unless pinned
    assert found["tables/a/touches"][:3] == [rows[0]] * 3 and "tables/a/reduction" not in found, found["tables/a/touches"]
    for pinned, number in (("touched", 0), ("dense", 1)):
        plan(*common, "--tiers", "dp,row", "--goal", "communication", "--a2a-global", 1, "--ar-global", 1, "--out", "pinned.plan",
             "--reduction", pinned)
        assert read_safetensors("pinned.plan")[1]["tables/b/reduction"] == [number]
    run("--distribution", "a", "--reduction", "dense", status=2, says=["--reduction has no effect without --out FILE"])
    for arguments, text in [(["--profile", "profile", "--distribution", "a"], "--profile has all tables: give no --distribution"),
                            (["--profile", "profile", "--names", "c,d"], "--names has no effect with --profile"),
                            (["--profile", "a"], "a: "),
                            (["--profile", "profile", "--out", "/no/such/folder/plan"], "/no/such/folder/plan: cannot be written")]:
        error = run(*arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def listed():
    """Only rows that a profile lists are replicated, whatever was looked up beside them, and the report says what the file has."""
    write_profile("profile", 1000, {"never": (50, 0, 0, {}), "bounded": (40, 6000, 70, {9: 2000, 3: 1000, 30: 600}),
                                    "exact": (90, 330, 0, {4: 200, 88: 100, 7: 30})})
    common = ["--profile", "profile", "--hosts", 2, "--ranks", 4, "--batch", 1024, "--dim", 8, "--budget", 1e9, "--out", "rows.plan"]
    for chunk in (1, 2, 50):
        found = plan(*common, "--chunk", chunk)
        tensors = read_safetensors("rows.plan")[1]
        for table in found["tables"]:
            tiers = [of["rows"] for of in table["tiers"].values()]
            assert tensors[f"tables/{table['name']}/tiers"] == tiers, (table, tensors)
            assert sum(tiers[:2]) == (0 if table["name"] == "never" else 3), tiers
        assert [round(table["lookups_per_sample"], 12) for table in found["tables"]] == [0, 6, 0.33], found["tables"]
        assert set(tensors["tables/bounded/replicated"]) == {9, 3, 30} and tensors["tables/bounded/unseen"] == []
        # of 6000 look-ups 2400 are of no row: 60 of each, of three rows 180
        near(sum(of["coverage"] for of in list(found["tables"][1]["tiers"].values())[:2]), 100 * (3600 + 180) / 6000, 1e-9)
    run("--profile", "profile", says=["never, dim 256", "    0.00%"])
    write_profile("profile", 1000, {"never": (50, 0, 0, {})})
    run("--profile", "profile", status=2, says=["no row of any table is looked up"])
    write_profile("profile", 1000, {"t": (3, 500, 70, {1: 5})})
    run("--profile", "profile", status=2, says=["add up to 5 of its 500, which are too few for 3 rows with an error of 70"])
    for error in (0, 1):
        write_profile("profile", 1, {"t": (2**63 - 1, 1 + error, error, {5: 1})})
        error = run("--profile", "profile", "--out", "rows.plan", status=2, says=["table 't': it has 9223372036854775807 rows, and at most 4294967295"])
        assert len(error.strip().splitlines()) == 1, error


def in_order():
    """A plan of distributions and laws: their rows are numbered by how often they are looked up."""
    write_runs("a", [(90, 0.0001), (6, 0.9), (4, 0.25)])
    common = ["--distribution", "a", "--law", "zipf:50:1.5:3", "--hosts", 2, "--ranks", 4, "--batch", 1024, "--dim", 8, "--chunk", 1]
    found = plan(*common, "--names", "clicks,users", "--out", "two.plan")
    metadata, tensors = read_safetensors("two.plan")
    assert json.loads(metadata["tiers"]) == ["dp", "flex", "row"] and json.loads(metadata["tables"]) == ["clicks", "users"]
    assert [table["name"] for table in found["tables"]] == ["clicks", "users"]
    for table in found["tables"]:
        tiers = [table["tiers"][tier]["rows"] for tier in ("dp", "flex", "row")]
        name = f"tables/{table['name']}/"
        assert tensors[name + "tiers"] == tiers and tiers[0] > 0, (tiers, tensors)
        assert tensors[name + "replicated"] == [] and tensors[name + "unseen"] == [], tensors
        for tier, lookups in zip(("dp", "flex", "row"), tensors[name + "lookups"]):
            near(lookups, 1e4 * table["tiers"][tier]["coverage"] * table["lookups_per_sample"], 1e-5)
    # ten rows that nearly every rank's batch touches; of the others those that 1 - (1 - q)^b says, q = 1 - e^-p
    assert tensors["tables/clicks/tiers"][0] == 10 and tensors["tables/clicks/touches"][:3] == [10, 10, 10], tensors
    for touched, samples in zip(tensors["tables/clicks/touches"][3:6] if tensors["tables/clicks/tiers"][1] else tensors["tables/clicks/touches"][6:],
                                (1024, 2048, 4096)):
        assert abs(touched - 90 * (1 - (1 - 0.0001) ** samples)) <= 1, (touched, samples)
    assert json.loads(read_safetensors_of(common)["tables"]) == ["a", "zipf:50:1.5:3"]
    for names, text in (("a", "--names a: 1 names for 2 tables"), ("a,a", "--names a,a: 'a' is empty or stands twice")):
        run(*common, "--names", names, status=2, says=[text])


def read_safetensors_of(arguments):
    run(*arguments, "--out", "unnamed.plan")
    return read_safetensors("unnamed.plan")[0]


def models():
    """What a plan takes by both models of memory, whichever it was made with."""
    common = ["--law", "zipf_mandelbrot:20000:1.2:10:3", "--dim", 16, "--ranks", 8, "--hosts", 2, "--chunk", 1, "--cut", "flex"]
    paper, library = plan(*common), plan(*common, "--model", "library")
    assert paper["tiers"] != library["tiers"], paper["tiers"]
    for found, name in ((paper, "paper"), (library, "library")):
        near(found["models"][name]["net_bytes"], found["net_bytes"], 1e-9)
        assert {k: v for k, v in found["models"][name].items() if k != "net_bytes"} == {
            k: v for k, v in found["neutral"].items() if k.startswith("memory_")}, found["models"]
    assert paper["models"]["library"]["net_bytes"] != library["net_bytes"]
    # all rows in dp, by hand: six times the weights and one vector a look-up, instead of an eighth and two
    found = plan("--law", "zipf:1000:1:10", "--dim", 16, "--ranks", 8, "--hosts", 2, "--tiers", "dp,row", "--chunk", 1, "--budget", 1e12,
                 "--model", "library")
    assert found["tiers"]["dp"]["rows"] == 1000, found["tiers"]
    near(found["models"]["paper"]["net_bytes"], 1000 * 64 * (6 - 1 / 8) - 4096 * 10 * 64, 1e-9)
    text = run(*common)
    assert "in memory: paper" in text and "in memory: library" in text and "by the library's " in text, text


def bad_usage():
    write_runs("good", [(10, 0.5)])
    for name, text in (("negative", "3 0.5\n1 -0.25\n"), ("nan", "1 nan\n"), ("words", "3 0.5 7\n"), ("rows", "2.5 0.1\n"), ("none", ""),
                       ("zero", "5 0\n")):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    files = sorted(os.listdir())
    good = ["--distribution", "good"]
    for arguments, text in [
        ([], "no table to plan for: give --distribution FILE or --law LAW"),
        (["--distribution", "nowhere"], "nowhere: cannot be read"),
        (["--distribution", "negative"], "negative, line 2: p is -0.25"),
        (["--distribution", "nan"], "nan, line 1: p is nan"),
        (["--distribution", "words"], "words, line 1: give two numbers"),
        (["--distribution", "rows"], "rows, line 1: '2.5' rows: give a whole number of at least 1"),
        (["--distribution", "none"], "none: has no line of rows and p"),
        (["--distribution", "zero"], "no row of any table is looked up"),
        (["--law", "half_normal:10"], "law 'half_normal:10': it takes 2 to 3 numbers, not 1"),
        (["--law", "normal:10"], "law 'normal:10': there is none of this name"),
        ([*good, "--dim", "8,16"], "--dim 8,16: 2 numbers for 1 tables"),
        ([*good, "--dim", "0"], "--dim 0: give at least 1"),
        ([*good, "--hosts", 3], "3 hosts do not divide 32 ranks"),
        ([*good, "--batch", 0], "--batch 0: give at least 1"),
        ([*good, "--chunk", 0], "--chunk 0: give at least 1"),
        ([*good, "--multiplier", 0.5], "--multiplier 0.5: give at least 1"),
        ([*good, "--tiers", "row"], "--tiers 'row': give dp,flex,row or dp,row or flex,row"),
        ([*good, "--cut", "dp"], "--cut 'dp': give row or flex"),
        ([*good, "--model", "other"], "--model 'other': give paper or library"),
        ([*good, "--goal", "speed"], "--goal 'speed': give neutral or memory or communication"),
        ([*good, "--goal", "communication"], "give a budget, or the bandwidths"),
        ([*good, "--a2a-global", 0], "--a2a-global 0: give a number of GB/s above 0"),
        ([*good, "--cut", "row", "--tiers", "dp,row"], "--cut has no effect with --tiers dp,row"),
        ([*good, "--cut", "row", "--tiers", "flex,row"], "--cut has no effect with --tiers flex,row"),
        ([*good, "--cut", "row", "--goal", "memory"], "--cut has no effect with --goal memory"),
        ([*good, "--budget", 5, "--goal", "memory"], "--budget has no effect with --goal memory"),
        ([*good, "--cut", "flex", "--goal", "communication"], "--cut has no effect with --goal communication unless"),
        ([*good, "--budget", "nan"], "--budget nan: give a number of bytes"),
        ([*good, "--budget", -1e12], "a budget of -1000000000000 bytes a rank: no plan takes as little; the least is -"),
        ([*good, "--json", "/no/such/folder/plan.json"], "/no/such/folder/plan.json: cannot be written"),
        ([*good, "--svg", "/no/such/folder/rows.svg"], "/no/such/folder/rows.svg: cannot be written"),
        ([*good, "--json", "good", "--svg", "."], ".: cannot be written"),
        ([*good, "--profiles", "x"], "plan_rows --help"),
    ]:
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("plan_rows: ") and len(error.strip().splitlines()) == 1, error
    assert sorted(os.listdir()) == files, os.listdir()
    with open("good", encoding="utf-8") as file:  # nothing is written before all is known to be writable
        assert file.read() == "10 0.5\n"


main({"help": help_, "accounting": accounting, "library": library, "algebra": algebra, "full_size": full_size, "one_in_a_hundred": one_in_a_hundred,
      "speedup": speedup, "tables": tables, "profile": profile, "listed": listed, "in_order": in_order, "models": models, "bad_usage": bad_usage})
