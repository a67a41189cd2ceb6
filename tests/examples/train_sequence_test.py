# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""train_sequence is the trainer of train_dlrm with a sequence model: what differs is tested here."""

import gzip
import json
import math
import random

from programs import main, run, write_row_plan

SMALL = ["--steps", 8, "--batch", 8, "--rows", 300, "--users", 120, "--length", 16, "--history", 10, "--dim", 8, "--top", "16-1"]


def report(*arguments, **keywords):
    """Runs, and returns the JSON report, whose every byte was predicted."""
    run("--json", "report.json", *arguments, **keywords)
    with open("report.json", encoding="utf-8") as file:
        r = json.load(file)
    assert r["bytes"]["predicted"] == r["bytes"]["moved"], r["bytes"]
    assert r["memory"]["predicted"] == r["memory"]["measured"], r["memory"]
    return r


def help_():
    text = run("--help")
    for part in ("sequence model", "train_sequence", "--pooling", "attention", "transformer", "mean", "--history", "--negatives", "--data", "--law", "--profile",
                 "--sharding", "--collective", "--optimizer", "--epochs", "--save", "--load", "--explain", "--trace", "--json"):
        assert part in text, part
    for part in ("--tower", "--bag", "--bottom", "--cross-rank", "--test", "Criteo"):
        assert part not in text, part
    run("--explain", "--sharding", "table", *SMALL[4:], says=["forward", "Lookup<none>", "backward (derived)", "cross_host"])


def bad_usage():
    write("one.txt", "1 5 1\n2 5 1\n")
    write("all.txt", "1 5\n1 6\n1 5\n")
    write("bad.txt", "1 5 1\n1 x 1\n")
    write("empty.txt", "")
    for arguments, text in [
            (["--pooling", "max"], "--pooling 'max': there is no such pooling; give attention, transformer or mean"),
            (["--pooling", "none"], "give attention, transformer or mean"),
            (["--history", 0], "--history 0: give at least 1"),
            (["--negatives", 0], "--negatives 0: give at least 1"),
            (["--heads", 3], "--heads 3 with --dim 32: the heads divide the columns"),
            (["--heads", 0], "--heads 0: give at least 1"),
            (["--heads", 2, "--pooling", "mean"], "--heads has no effect with --pooling mean"),
            (["--blocks", 2], "--blocks has no effect without --pooling transformer"),
            (["--blocks", 0, "--pooling", "transformer"], "--blocks 0: give at least 1"),
            (["--users", 0], "--users 0: give at least 1"),
            (["--length", 1], "--length 1: give at least 2"),
            (["--rows", 0], "--rows 0: give at least 1"),
            (["--zipf", 0], "a Zipf exponent of 0"),
            (["--law", "half_normal:10"], "law 'half_normal:10': it takes 2 to 3 numbers, not 1"),
            (["--law", "zipf:10:1:1", "--rows", 10], "--rows has no effect with --law zipf:10:1:1"),
            (["--law", "zipf:10:1:1", "--zipf", 1], "--zipf has no effect with --law zipf:10:1:1"),
            (["--data", "bad.txt", "--law", "zipf:10:1:1"], "--law has no effect with --data"),
            (["--sharding", "tiered", "--profile", "one.txt"], "one.txt: "),
            (["--batch", 80000000, "--history", 50], "--history 50 with --batch 80000000: a rank's batch has at most"),
            (["--sharding", "mixed"], "--sharding mixed has no effect on one table"),
            (["--sharding", "rows"], "--sharding 'rows': there is no such policy"),
            (["--collective", "two_stage"], "with sequences: "),
            (["--top", "16-2"], "its last width is 1"),
            (["--tower", "dot"], "--tower"),
            (["--data", "/nonexistent"], "/nonexistent"),
            (["--data", "bad.txt"], "bad.txt, line 2, column 2 (item): 'x', expected a whole number"),
            (["--data", "empty.txt"], "empty.txt: no history"),
            (["--data", "one.txt"], "no user has two items: the last one is held out"),
            (["--data", "all.txt"], "user 1 has all 2 items: none is left that did not come next"),
            (["--data", "bad.txt", "--users", 5], "--users has no effect with --data: it is for generated histories"),
            (["--data", "bad.txt", "--zipf", 1], "--zipf has no effect with --data"),
            (["--data", "one.txt", "--rows", 5], "one.txt, line 1, column 2 (item): 5 is no item: they are 0 to 4")]:
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("train_sequence: ") and len(error.strip().splitlines()) == 1, error


def trains():
    """Every pooling finds what is hidden in generated histories, which popularity does not tell."""
    for pooling in ("attention", "transformer", "mean"):
        r = report("--pooling", pooling, "--rows", 400, "--users", 1000, "--dim", 16, "--zipf", 0.3, "--history", 20, "--batch", 64,
                   "--learning-rate", 0.01, "--epochs", 2, "--order", "tree")
        assert r["quality_of"] == "test" and r["config"]["pooling"] == pooling
        assert sum(r["losses"][-10:]) < 0.9 * sum(r["losses"][10:20]), (r["losses"][10:20], r["losses"][-10:])
        assert 0.4 < r["popularity_auc"] < 0.7 and r["auc"] > r["popularity_auc"] + 0.1, (pooling, r["auc"], r["popularity_auc"])
        assert r["epochs"][0]["samples"] == 1000 * 51


def laws():
    """Generated items follow any law, and the trainer's own plan of what it then looks up holds while it trains."""
    law = "zipf_mandelbrot:3000:1.2:5:0.5"
    common = ["--law", law, "--users", 400, "--length", 30, "--history", 20, "--dim", 8, "--top", "16-1", "--batch", 64]
    row = report(*common)
    assert row["model"]["table_parameters"] == 3000 * 8 and row["config"]["law"] == law
    own = report(*common, "--sharding", "tiered", "--cut", "flex", "--profile-out", "counted")
    assert report(*common, "--sharding", "tiered", "--cut", "flex", "--profile", "counted")["rows"] == own["rows"]
    assert own["losses"] == row["losses"] and own["auc"] == row["auc"]
    tiers = {tier: of for tier, of in own["rows"].items() if isinstance(of, dict)}
    for tier, of in tiers.items():  # the samples of an epoch are those that were profiled
        assert of["payload"] == of["predicted_payload"] and 0 < of["rows"] and math.isclose(of["coverage"], of["predicted_coverage"]), (tier, of)
    assert sum(of["payload"] for of in tiers.values()) == own["bytes"]["embedding_payload"] < row["bytes"]["embedding_payload"]
    assert own["looked_up_rows"]["max_over_mean"] < row["looked_up_rows"]["max_over_mean"]
    flat = report("--law", "exponential:3000:1e9:10", *common[2:])
    assert flat["losses"] != row["losses"] and abs(flat["popularity_auc"] - 0.5) < 0.1 < row["popularity_auc"] - 0.5
    more = ["--hosts", 2, "--steps", 8, "--sharding", "tiered"]
    assert report(*common, *more, "--explain", "--ranks", 4)["rows"] == report(*common, *more, "--ranks", 4)["rows"]


def shardings():
    """Sequences are not summed, so that the same losses come of every sharding and collective, to the last bit."""
    write_row_plan("items.plan", ["dp", "flex", "row"], [("item", [5, 20, 275], [*range(20, 40), *range(5)], [])])
    for pooling in ("attention", "transformer"):
        expected = None
        for policies in (["row"], ["table"], ["dp"], ["col"], ["row", "--no-prefetch"], ["row", "--collective", "hierarchical"],
                         ["flex"], ["row", "--requests", "coalesced"], ["tiered", "--plan", "items.plan", "--requests", "coalesced"], ["tiered", "--plan", "items.plan"], ["tiered", "--plan", "items.plan", "--collective", "hierarchical"]):
            r = report(*SMALL, "--pooling", pooling, "--sharding", *policies)
            assert len(set(r["losses"])) == 8
            expected = expected or (r["losses"], r["auc"])
            assert (r["losses"], r["auc"]) == expected, (pooling, policies)
    out = run(*SMALL, "--sharding", "auto")
    assert "sharding auto: " in out, out


def world_sizes():
    """Samples, orders and negatives do not know the ranks: the same global batches on other numbers of them."""
    for pooling in ("attention", "transformer", "mean"):
        common = [*SMALL[4:], "--steps", 40, "--pooling", pooling]
        alone = report(*common, "--ranks", 1, "--hosts", 1, "--batch", 48)
        for ranks in (3, 4):
            r = report(*common, "--ranks", ranks, "--hosts", 1, "--batch", 48 // ranks)
            assert max(abs(a - b) / a for a, b in zip(alone["losses"], r["losses"])) < 1e-9, (pooling, ranks)
            assert r["popularity_auc"] == alone["popularity_auc"]
    other = report(*SMALL, "--data-seed", 5)
    assert other["losses"] != report(*SMALL)["losses"] and other["config"]["data_seed"] == 5


def write(name, text):
    with open(name, "w", encoding="ascii") as file:
        file.write(text)


def history_lines(seed=1):
    """120 users, each with an even or an odd taste; a line a time, in the order of time over all users."""
    dice = random.Random(seed)
    times = [(dice.random(), user) for user in range(120) for _ in range(4 + user % 20)]
    return [f"{1000 + user} {2 * dice.randrange(60) + user % 2} 1\n" for _, user in sorted(times)]


def files():
    lines = history_lines()
    write("all.txt", "".join(lines))
    users = sorted(lines, key=lambda line: line.split()[0])  # stable: one user after the other
    with gzip.open("sorted.txt.gz", "wt", encoding="ascii") as file:
        file.write("".join(users))
    write("first.txt", "".join(lines[:500]))
    write("second.txt", "".join(line.replace(" ", "\t", 1) for line in lines[500:]))
    common = ["--batch", 16, "--dim", 8, "--history", 8, "--epochs", 8, "--learning-rate", 0.02, "--top", "16-1"]
    r = report("--data", "all.txt", *common)
    assert r["samples"] == 8 * (len(lines) - 120) and r["epochs"][0]["samples"] == 120 * 51
    assert r["auc"] > 0.6 and r["auc"] > r["popularity_auc"] + 0.05, (r["auc"], r["popularity_auc"])
    assert r["losses"] == report("--data", "first.txt", "second.txt", *common)["losses"]
    # in another order of users: other samples in each batch, but as many of them, and the same ones to test
    packed = report("--data", "sorted.txt.gz", *common)
    assert len(packed["losses"]) == len(r["losses"]) and packed["losses"] != r["losses"]
    assert r["model"]["table_parameters"] == 120 * 8
    assert report("--data", "all.txt", "--rows", 500, *common, "--steps", 1)["model"]["table_parameters"] == 500 * 8


def popularity():
    """The held-out item against what others have, by counts: computed here once more."""
    lines = [f"{user} {item}\n" for user in range(40) for item in (0, 1, 2 + user % 3, 0)] + ["99 5\n", "99 6\n", "99 7\n"]
    write("few.txt", "".join(lines))
    r = report("--data", "few.txt", "--steps", 2, "--batch", 4, "--ranks", 2, "--history", 2)
    # 40 users end with item 0, which all have trained on; nobody has more of anything. User 99 ends with item 7, of no count,
    # against 0 to 4, which all have some
    assert math.isclose(r["popularity_auc"], 40 / 41), r["popularity_auc"]


def checkpoint():
    """A run in two parts under two shardings and worlds ends with the file of a run in one."""
    common = [*SMALL[4:], "--batch", 8, "--epochs", 2]
    whole = report(*common, "--steps", 70, "--save", "whole")
    report(*common, "--steps", 30, "--save", "half", "--sharding", "table")
    rest = report(*common, "--steps", 70, "--load", "half", "--save", "rest", "--sharding", "dp")
    assert rest["losses"] == whole["losses"][30:]
    with open("whole", "rb") as a, open("rest", "rb") as b:
        assert a.read() == b.read()
    run(*common, "--load", "whole", "--steps", 0, "--ranks", 3, "--json", "report.json")
    with open("report.json", encoding="utf-8") as file:
        tested = json.load(file)
    assert tested["auc"] == whole["epochs"][-1]["auc"]
    run(*common, "--steps", 1, "--save", "of_means", "--pooling", "mean")
    run(*common, "--load", "of_means", "--steps", 0, status=2, says=["of_means", "history.positions.weight"])
    run(*common, "--steps", 3, "--trace", "trace.json", "--save", "with_trace")
    with open("trace.json", encoding="utf-8") as file:
        assert any("Lookup" in e["name"] for e in json.load(file)["traceEvents"] if e["ph"] == "X")


def replica_groups():
    """Histories in groups: every byte is predicted, and by sgd groups of equally many samples learn what one does."""
    for groups in (["--groups", 2], ["--groups", 4, "--sync-every", 3], ["--groups", 2, "--group-placement", "inside", "--sync", "all"]):
        r = report(*SMALL, *groups)
        assert r["bytes"]["moved"] == r["bytes"]["predicted"] and r["memory"]["measured"] == r["memory"]["predicted"], groups
        assert r["bytes"]["replica_sync"]["moved"] > 0
    common = [*SMALL, "--optimizer", "sgd", "--learning-rate", 0.3, "--batch", 8]
    one, two = (report(*common, "--groups", count)["losses"] for count in (1, 2))
    worst = max(abs(a - b) / a for a, b in zip(one, two))
    assert worst < 1e-5, worst


def mpi():
    for sharding in (["row"], ["table"], ["tiered", "--batch", 64]):
        arguments = [*SMALL, "--hosts", 2, "--sharding", *sharding]
        threads = report(*arguments, "--ranks", 4)
        processes = report(*arguments, ranks=4)
        assert processes["config"]["backend"] == "mpi"
        for key in "losses auc popularity_auc loss bytes memory rows looked_up_rows".split():
            assert threads[key] == processes[key], (sharding, key)
    write("bad.txt", "1 5 1\n1 x 1\n")
    error = run("--data", "bad.txt", status=2, ranks=2)
    assert error.count("bad.txt, line 2") == 1, error


main({"help": help_, "bad_usage": bad_usage, "trains": trains, "laws": laws, "shardings": shardings, "world_sizes": world_sizes, "files": files,
      "popularity": popularity, "checkpoint": checkpoint, "replica_groups": replica_groups, "mpi": mpi})
