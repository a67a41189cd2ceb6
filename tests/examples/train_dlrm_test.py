# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import gzip
import json
import math
import os
import random
import re
import struct
import subprocess
import sys

from programs import main, run, shown_on_terminal, write_row_plan

SMALL = ["--steps", 12, "--batch", 8, "--rows", 200, "--dim", 8, "--test-samples", 512]


def report(*arguments, **keywords):
    """Runs, and returns the JSON report."""
    run("--json", "report.json", *arguments, **keywords)
    with open("report.json", encoding="utf-8") as file:
        return json.load(file)


def check_prediction(r):
    """Every byte, message and held byte was predicted, and every tier is hot."""
    assert r["bytes"]["predicted"] == r["bytes"]["moved"], r["bytes"]
    assert r["memory"]["predicted"] == r["memory"]["measured"], r["memory"]
    for tier, there in (("host", r["config"]["ranks"] > r["config"]["hosts"]), ("cross_host", r["config"]["hosts"] > 1)):
        moved = r["bytes"]["moved"][tier]
        assert (moved["payload"] > 0) == (moved["messages"] > 0) == there, moved


def help_():
    text = run("--help")
    for flag in ("--ranks --hosts --seed --steps --epochs --batch --data --test --explain --trace --json --save --load "
                 "--sharding --collective --pooling --optimizer --order --wire --towers --tower --tower-c --tower-p --tower-dim --prefetch "
                 "--groups --group-placement --sync-every --sync --sync-overlap --moment-scale --plan --profile --profile-out --tiers --cut --budget --learning-rate --lr-schedule --dim --rows --bottom --top --deadline").split():
        assert flag in text, flag
    for name in "row col table dp mixed sum mean sgd adagrad rowwise_adagrad adam tree sample fp32 bf16".split():
        assert name in text, name
    out = run("--explain", "--sharding", "mixed", says=["forward", "backward (derived)", "[dp]", "cross_host"])
    assert "step 1" not in out


def bad_usage():
    for arguments, text in [
            (["--ranks", 0], "0 ranks: at least one is needed"),
            (["--ranks", 2, "--hosts", 4], "4 hosts for 2 ranks"),
            (["--ranks", 4, "--hosts", 3], "3 hosts do not divide 4 ranks"),
            (["--hosts", 0], "0 hosts"),
            (["--sharding", "rows"], "--sharding 'rows': there is no such policy; give one of row, col, table, dp, flex, col1, mixed, tiered, auto (did you mean row?)"),
            (["--sharding", "rwo"], "auto (did you mean row?)"),
            (["--sharding", "aut"], "auto (did you mean auto?)"),
            (["--sharding", "colum"], "auto (did you mean col?)"),
            (["--sharding", "everywhere"], "mixed, tiered, auto\n"),
            (["--requests", "corlesced"], "give one of raw, coalesced, auto (did you mean coalesced?)"),
            (["--optimizer", "lamb"], "sgd, adagrad, rowwise_adagrad, rowwise_adagrad_mean, adam, rms_prop"),
            (["--pooling", "max"], "sum, mean"),
            (["--order", "any"], "tree, wide_tree, sample"),
            (["--wire", "fp8"], "fp32, bf16"),
            (["--order", "sample", "--sharding", "dp"], "use Order<Tree> or Order<WideTree>"),
            (["--collective", "ring"], "--collective 'ring': there is no such policy; give one of flat, two_stage, hierarchical"),
            (["--collective", "bounded_lag"], "--collective 'bounded_lag': there is no such policy; give one of flat, two_stage, hierarchical"),
            (["--collective", "hierarchical", "--sharding", "dp"], "no vector travels where all rows are replicated"),
            (["--collective", "two_stage", "--sharding", "col"], "otherwise use Collective<Flat>"),
            (["--collective", "hierarchical", "--towers", 3], "3 towers do not divide 2 hosts"),
            (["--towers", 0], "--towers 0: give at least 1, or a file"),
            (["--sharding", "auto", "--collective", "two_stage"], "--sharding auto may choose col; "),
            (["--feature-groups", -1], "--feature-groups -1: give at least 0"),
            (["--feature-groups", 14], "14 groups of 26 features: give at most half as many groups as features, or 0"),
            (["--towers", "nowhere.json"], "--towers nowhere.json: is neither a number nor a file"),
            (["--towers", "2x"], "--towers 2x: is neither a number nor a file"),
            (["--towers", "."], "--towers .: is neither a number nor a file"),
            (["--towers", "99999999999"], "--towers 99999999999: there are at most 26 features"),
            (["--tower", "dots"], "--tower 'dots': there is no such policy; give one of pass, dot, cross"),
            (["--tower", "dot"], "--tower dot: a tower's module works where"),
            (["--tower", "dot", "--collective", "hierarchical", "--sharding", "mixed"], "needs one sharding policy for all tables"),
            (["--tower", "cross", "--collective", "hierarchical", "--pooling", "mean"], "Tower<> needs Pooling<Sum>"),
            (["--tower", "dot", "--collective", "hierarchical", "--tower-c", 0, "--tower-p", 0], "no vector would be left"),
            (["--tower", "cross", "--collective", "hierarchical", "--tower-c", 1], "it maps the tower as a whole"),
            (["--tower-c", 2], "--tower-c without --tower dot or cross has no effect"),
            (["--tower", "dot", "--collective", "hierarchical", "--tower-dim", 0], "--tower-dim 0: give at least 1"),
            (["--towers", -1], "--towers -1: give at least 1, or a file"),
            (["--steps", -1], "--steps -1"),
            (["--batch", 0], "--batch 0"),
            (["--rows", "5,6"], "2 numbers"),
            (["--rows", 0], "--rows '0'"),
            (["--rows", "7,"], "--rows '7,'"),
            (["--lr-schedule", "step"], "without --lr-decay-steps"),
            (["--bottom", "64-x"], "--bottom '64-x'"),
            (["--bottom", "64-8", "--dim", 16], "its last width is the dimension"),
            (["--top", "64-2"], "its last width is 1"),
            (["--learning-rate", 0], "--learning-rate 0"),
            (["--lr-schedule", "cosine"], "constant, step or polynomial"),
            (["--deadline", 0], "--deadline 0"),
            (["--deadline", 1e17], "--deadline 1e+17"),
            (["--batch", 2**62], "--batch 4611686018427387904"),
            (["--steps", "many"], "many"),
            (["--data"], "--data"),
            (["--test", "x"], "--test without --data"),
            (["--data", "/nonexistent"], "/nonexistent"),
            (["--data", "x", "--bag", 5], "--bag has no effect with --data"),
            (["--data", "x", "--zipf", 1], "--zipf has no effect with --data"),
            (["--data", "x", "--samples", 9], "--samples has no effect with --data"),
            (["--data", "x", "--test", "y", "--test-samples", 0], "--test-samples has no effect with --data"),
            (["--load", "/nonexistent"], "/nonexistent: cannot be read"),
            (["--json", "/nonexistent/report"], "/nonexistent/report: cannot be written"),
            (["--save", "/nonexistent/model"], "/nonexistent/model: cannot be written"),
            (["--trace", "."], ".: cannot be written"),
            (["--save", "/dev/null"], "/dev/null: cannot be replaced"),
            (["--frobnicate"], "frobnicate")]:
        error = run(*arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def deadline():
    run("--steps", 3, "--deadline", 0.0001, status=3, says=["waited 0 ms", "rank"])


def click_lines(count, seed):
    """Lines in Criteo's format, whose label depends on the first category."""
    dice = random.Random(seed)
    lines = []
    for _ in range(count):
        hot = dice.randrange(4)
        label = 1 if dice.random() < (0.1, 0.3, 0.6, 0.9)[hot] else 0
        integers = [str(dice.randrange(50)) if dice.random() < 0.8 else "" for _ in range(13)]
        categories = [f"{hot:08x}"] + [f"{dice.randrange(40):x}" if dice.random() < 0.9 else "" for _ in range(25)]
        lines.append("\t".join([str(label), *integers, *categories]) + "\n")
    return "".join(lines)


def write(name, text):
    with open(name, "w", encoding="ascii") as file:
        file.write(text)


def bad_data():
    good = click_lines(100, 1)
    lines = good.splitlines(keepends=True)
    for wrong, reason in [(lines[70].replace("\t", " ", 1), "39 columns, expected 40"),
                          ("nan" + lines[70][1:], "expected 0 or 1")]:
        write("bad.tsv", "".join(lines[:70] + [wrong] + lines[71:]))
        for extra in ([], ["--no-prefetch"], ["--ranks", 1], ["--epochs", 2]):
            error = run("--data", "bad.tsv", "--batch", 8, *extra, status=2, says=["bad.tsv, line 71", reason])
            assert error.count("line 71") == 1, error
        write("good.tsv", good)
        run("--data", "good.tsv", "--test", "bad.tsv", "--batch", 8, status=2, says=["bad.tsv, line 71"])
    write("empty.tsv", "")
    run("--data", "empty.tsv", status=2, says=["empty.tsv: no samples"])


def shardings():
    """The same losses to the last bit, whatever the sharding; with one id a bag, lookups are the same bits, too."""
    for optimizer in ("adagrad", "sgd", "adam"):
        expected = None
        for sharding in ("row", "col", "col1", "table", "dp", "flex", "mixed"):
            r = report(*SMALL, "--sharding", sharding, "--optimizer", optimizer)
            check_prediction(r)
            losses = r["losses"]
            assert len(losses) == 12 and len(set(losses)) == 12
            expected = expected or (losses, r["auc"], r["loss"])
            assert (losses, r["auc"], r["loss"]) == expected, (sharding, optimizer)
    for sharding in ("row", "col", "mixed"):  # a moment a row: columns exchange its norm
        check_prediction(report(*SMALL, "--sharding", sharding, "--optimizer", "rowwise_adagrad_mean", "--bag", 3))


def prefetch():
    for sharding in ("row", "dp", "mixed"):
        ahead = report(*SMALL, "--sharding", sharding, "--bag", 3, "--pooling", "mean")
        behind = report(*SMALL, "--sharding", sharding, "--bag", 3, "--pooling", "mean", "--no-prefetch")
        assert ahead["losses"] == behind["losses"] and ahead["auc"] == behind["auc"]
        check_prediction(ahead)
        check_prediction(behind)


def sample_order():
    """Rows are summed in the order of samples: the same losses for every sharding that can."""
    reports = [report(*SMALL, "--order", "sample", "--optimizer", "adagrad", "--sharding", sharding) for sharding in ("row", "col", "table")]
    for r in reports:
        check_prediction(r)
        assert r["losses"] == reports[0]["losses"]


def world_sizes():
    """The same global batches on other numbers of ranks. Sums in double leave no trace but in the loss, whose own sum knows
    the ranks; nor do blocks, where every rank has whole ones, or less than one; along the tree in single precision, and in parts
    of blocks, sums round in another order, which the first steps show as rounding."""
    for order, optimizer, sharding, batch, more in (
            ("wide_tree", "rowwise_adagrad", "row", 48, []), ("wide_tree", "adagrad", "dp", 48, []), ("wide_tree", "adam", "mixed", 1536, []),
            ("wide_tree", "sgd", "col", 240, ["--precision", "wide"]), ("sample", "adagrad", "row", 1536, []), ("sample", "adam", "table", 48, []),
            ("wide_tree", "adagrad", "row", 240, []), ("tree", "adagrad", "row", 48, [])):
        rounds = order == "tree" or (batch == 240 and not more)
        steps, tolerance = (10, 1e-5) if rounds else (100, 1e-12)
        policies = ["--order", order, "--optimizer", optimizer, "--sharding", sharding, "--rows", 200, "--dim", 8, "--steps", steps,
                    "--samples", batch * steps, *more]
        alone = report(*policies, "--ranks", 1, "--hosts", 1, "--batch", batch)["losses"]
        assert len(alone) == steps
        for ranks, hosts in ((3, 3), (4, 2)):
            losses = report(*policies, "--ranks", ranks, "--hosts", hosts, "--batch", batch // ranks)["losses"]
            worst = max(abs(a - b) / a for a, b in zip(alone, losses))
            assert worst <= tolerance, (order, optimizer, sharding, batch, ranks, hosts, worst)
            assert worst > 1e-12 or not rounds, "nothing was summed in another order: the test is vacuous"


def collectives():
    """The same losses to the last bit over relays; between hosts, fewer bytes where relays sum."""
    for sharding, bag in (("row", 12), ("mixed", 12), ("table", 3), ("col", 1)):
        common = [*SMALL, "--sharding", sharding, "--bag", bag, "--optimizer", "adam"]
        flat = report(*common)
        towered = report(*common, "--towers", 2)
        for collective in ("two_stage", "hierarchical"):
            if collective == "two_stage" and sharding in ("table", "col"):
                continue
            r = report(*common, "--collective", collective)
            check_prediction(r)
            same = towered if collective == "hierarchical" else flat  # rows are split over other ranks
            assert (r["losses"], r["auc"]) == (same["losses"], same["auc"]), (sharding, collective)
            relayed, straight = (x["bytes"]["moved"]["cross_host"]["payload"] for x in (r, same))
            if sharding in ("row", "mixed"):
                assert relayed < straight, (sharding, collective)
            else:  # empty bags go over relays, and nowhere else
                assert relayed == straight if bag == 1 else relayed >= straight, (sharding, collective)


def every_composition():
    """What a program of compiled compositions would leave out."""
    for arguments in (["--collective", "hierarchical", "--optimizer", "adagrad"], ["--collective", "two_stage", "--order", "sample"],
                      ["--order", "sample", "--wire", "bf16"],
                      ["--collective", "two_stage", "--sharding", "mixed", "--optimizer", "rowwise_adagrad_mean", "--wire", "bf16"]):
        check_prediction(report(*SMALL, "--ranks", 4, "--hosts", 2, "--bag", 3, *arguments))


def modules():
    """Towers whose modules compress what crosses hosts: every byte predicted, and fewer of them by the compression."""
    for sharding in ("row", "col", "table"):
        plain = report(*SMALL, "--collective", "hierarchical", "--sharding", sharding, "--bag", 2)
        for tower in (["--tower", "dot"], ["--tower", "dot", "--tower-c", 0, "--tower-p", 2, "--tower-dim", 8], ["--tower", "cross"]):
            r = report(*SMALL, "--collective", "hierarchical", "--sharding", sharding, "--bag", 2, *tower)
            check_prediction(r)
            assert r["losses"] != plain["losses"] and all(math.isfinite(x) for x in r["losses"])
            if sharding != "row":
                less = plain["bytes"]["moved"]["cross_host"]["payload"] - r["bytes"]["moved"]["cross_host"]["payload"]
                assert less > 0, (sharding, tower, less)
    for order in ("tree", "wide_tree"):  # modules learn as dense weights do, on every number of ranks
        policies = ["--order", order, "--optimizer", "sgd", "--sharding", "table", "--rows", 200, "--dim", 8, "--steps", 30,
                    "--collective", "hierarchical", "--tower", "dot", "--towers", 1]
        alone = report(*policies, "--ranks", 1, "--hosts", 1, "--batch", 48)["losses"]
        losses = report(*policies, "--ranks", 4, "--hosts", 2, "--batch", 12)["losses"]
        worst = max(abs(a - b) / a for a, b in zip(alone, losses))
        assert worst < (1e-4 if order == "tree" else 1e-12), (order, worst)
    # a run that goes on from a checkpoint is one run
    common = [*SMALL, "--samples", 320, "--collective", "hierarchical", "--tower", "cross", "--optimizer", "adam"]
    whole = report(*common, "--epochs", 2, "--steps", 14, "--save", "whole")
    report(*common, "--epochs", 2, "--steps", 6, "--save", "half", "--sharding", "table")
    rest = report(*common, "--epochs", 2, "--steps", 14, "--load", "half", "--save", "rest", "--sharding", "col")
    assert rest["losses"] == whole["losses"][6:]
    with open("whole", "rb") as a, open("rest", "rb") as b:
        assert a.read() == b.read()
    _, tensors = read_safetensors("whole")
    assert tensors["tower.0.cross.0.w.weight"][0] == [13 * 8, 13 * 8] and tensors["tower.1.all.weight"][0] == [4, 13 * 8]
    assert "dense_state/tower.1.all.bias/1" in tensors


def auto():
    """Columns for single ids and large batches, rows for many ids and small ones; as the run with that sharding."""
    for bag, batch, expected in ((1, 256, "col"), (60, 64, "row")):
        arguments = [*SMALL, "--ranks", 4, "--hosts", 2, "--collective", "hierarchical", "--order", "tree", "--bag", bag, "--batch", batch,
                     "--optimizer", "sgd"]
        out = run("--json", "report.json", *arguments, "--sharding", "auto", says=["sharding row: exchanges of the first batch",
                                                                                   "sharding col: exchanges of the first batch"])
        assert f"sharding auto: {expected}" in out, out
        with open("report.json", encoding="utf-8") as file:
            chosen = json.load(file)
        assert chosen["config"]["sharding"] == expected
        assert chosen["losses"] == report(*arguments, "--sharding", expected)["losses"]
        check_prediction(chosen)


def requests():
    """Each distinct id once: the same losses, fewer bytes, all of them predicted; or whichever exchanges sooner."""
    write_row_plan("hot.plan", ["dp", "flex", "row"], [(f"C{i + 1}", [2, 3, 195], [3, 0, 11, 190, 7], [5, 150]) for i in range(26)])
    raw = report(*SMALL, "--batch", 128, "--order", "tree")
    assert raw["requests"] == {"lookups": 26 * raw["samples"], "distinct": None, "rows_read": 26 * raw["samples"]}
    for policies in (["row"], ["row", "--collective", "hierarchical"], ["flex"], ["mixed"], ["tiered", "--plan", "hot.plan"]):
        r = report(*SMALL, "--batch", 128, "--order", "tree", "--requests", "coalesced", "--sharding", *policies)
        check_prediction(r)
        assert (r["losses"], r["auc"]) == (raw["losses"], raw["auc"]), policies  # one id a bag: no sum to round
        asked = r["requests"]
        assert asked["lookups"] == raw["requests"]["lookups"] and 0 < asked["distinct"] < 0.8 * asked["lookups"], asked
        assert asked["rows_read"] == asked["distinct"] == sum(r["looked_up_rows"]["by_rank"])
        if policies == ["row"]:
            moved = [x["bytes"]["moved"]["cross_host"]["payload"] for x in (r, raw)]
            assert moved[0] < 0.8 * moved[1], moved
    rows = r["rows"]
    assert sum(rows[tier]["lookups"] for tier in ("dp", "flex", "row")) == asked["lookups"]
    assert sum(sum(rows[tier]["looked_up_rows"]["by_rank"]) for tier in ("dp", "flex", "row")) == asked["distinct"]
    check_tiers(r)
    # checkpoints do not know what is asked for
    report(*SMALL, "--batch", 128, "--order", "tree", "--steps", 6, "--requests", "coalesced", "--save", "half")
    assert report(*SMALL, "--batch", 128, "--order", "tree", "--load", "half")["losses"] == raw["losses"][6:]
    # sums of several ids are one part, wherever their rows live
    bags = [report(*SMALL, "--bag", 3, "--requests", "coalesced", "--sharding", *policies)["losses"]
            for policies in (["row"], ["table"], ["tiered", "--plan", "hot.plan"])]
    assert bags[0] == bags[1] == bags[2]
    for arguments, chosen in ((["--batch", 128, "--order", "tree"], "coalesced"), (["--batch", 2, "--bag", 20], "raw")):
        out = run(*SMALL, *arguments, "--requests", "auto", "--json", "report.json",
                  says=["requests raw: exchanges of the first batch", "requests coalesced: exchanges of the first batch"])
        assert f"requests auto: {chosen}" in out, out
        with open("report.json", encoding="utf-8") as file:
            assert json.load(file)["config"]["requests"] == chosen
    out = run(*SMALL, "--requests", "coalesced", "--explain", "--steps", 0, says=["Coalesce", "SumByUnique", "distinct rows: each travelled"])
    assert "step 1" not in out
    for arguments, text in [
            (["--requests", "once"], "--requests 'once': there is no such policy; give one of raw, coalesced"),
            (["--requests", "auto", "--order", "sample"], "--requests auto may choose coalesced; "),
            (["--requests", "coalesced", "--sharding", "dp"], "no id travels where all rows are replicated: use Requests<Raw>")]:
        error = run(*SMALL, *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def feature_groups():
    """Groups are another data set, and so is another seed of the data."""
    more = ["--rows", 20, "--dim", 8, "--steps", 40, "--ranks", 2]
    one = report(*more, "--feature-groups", 4, "--seed", 1)
    assert one["config"]["feature_groups"] == 4 and one["config"]["data_seed"] == 1
    assert one["losses"] != report(*more, "--seed", 1)["losses"]
    assert one["losses"][0] != report(*more, "--feature-groups", 4, "--seed", 1, "--data-seed", 2)["losses"][0]


def replica_groups():
    """Every byte and held byte of exchanges inside groups and of syncs between them is predicted; the same losses whatever a sync moves."""
    one = report(*SMALL, "--bag", 2)
    assert one["config"]["groups"] == 1 and one["config"]["moment_scale"] is None and one["bytes"]["replica_sync"] == {"predicted": 0, "moved": 0}
    for ranks, hosts, count, placement in ((4, 2, 2, "across"), (4, 2, 2, "inside"), (4, 2, 4, "across"), (6, 3, 3, "across"), (8, 2, 2, "inside")):
        where = ["--ranks", ranks, "--hosts", hosts, "--groups", count, "--group-placement", placement]
        for n in (1, 3):
            touched, everything = (report(*SMALL, "--bag", 2, *where, "--sync-every", n, "--sync", rows) for rows in ("touched", "all"))
            for r, rows in ((touched, "touched"), (everything, "all")):
                check_prediction(r)
                assert r["bytes"]["replica_sync"]["moved"] == r["bytes"]["replica_sync"]["predicted"] > 0
                assert [r["config"][key] for key in "groups group_placement sync_every sync moment_scale".split()] == [count, placement, n, rows, count]
                assert r["time"]["replica_sync"]["mean"] > 0 and r["time"]["lookup"]["mean"] > 0 and 1 <= r["imbalance"] <= ranks
                part = r["memory"]["measured"]
                for i in range(ranks):
                    by = {key: part[key]["by_rank"][i] for key in part}
                    assert by["tables"] > 0 and by["moments"] > 0 and by["flights"] > 0 and by["syncs"] > 0
                    assert by["tables"] + by["moments"] + by["flights"] + by["syncs"] == by["static"] + by["dynamic"]
            assert touched["losses"] == everything["losses"] and touched["auc"] == everything["auc"]
            crosses = touched["bytes"]["moved"]["cross_host"]["payload"] - everything["bytes"]["moved"]["cross_host"]["payload"]
            assert (crosses == 0) == (placement == "inside"), "syncs inside hosts do not cross"
    run(*SMALL, "--groups", 2, "--sync-every", 5, says=["copies of tables synced before the test, 2 steps after the last sync"])
    run(*SMALL, "--groups", 2, "--sync-every", 5, "--test-samples", 0, "--save", "model", says=["copies of tables synced before the save, 2 steps after the last sync"])
    run(*SMALL, "--groups", 2, "--sync-every", 4, never=["synced before"])
    run(*SMALL, "--steps", 9, "--samples", 96, "--epochs", 3, "--groups", 2, "--sync-every", 10,
        says=["synced before the test, 3 steps after the last sync"], never=["6 steps after", "9 steps after"])
    run(*SMALL, "--steps", 3, "--groups", 2, "--sync-every", 10, "--test-samples", 0, "--save", "third")
    run(*SMALL, "--steps", 5, "--groups", 2, "--sync-every", 10, "--load", "third", says=["synced before the test, 2 steps after the last sync"])
    for more in (["col", "--requests", "coalesced"], ["table"], ["dp"], ["flex"], ["mixed"]):
        r = report(*SMALL, "--bag", 2, "--sharding", *more, "--groups", 2, "--sync-every", 2)
        assert r["bytes"]["moved"] == r["bytes"]["predicted"] and r["memory"]["measured"] == r["memory"]["predicted"], more
    apart = report(*SMALL, "--bag", 2, "--groups", 2, "--sync-every", 2, "--no-sync-overlap")
    together = report(*SMALL, "--bag", 2, "--groups", 2, "--sync-every", 2)
    assert [r["config"]["sync_overlap"] for r in (one, apart, together)] == [None, False, True]
    assert all(apart[key] == together[key] for key in "losses auc bytes memory".split())
    skewed = ["--sharding", "col1", "--bag", ",".join(map(str, [32, 16, 8, *[1] * 23])), "--ranks", 8, "--hosts", 2]
    even = [report(*SMALL, *skewed, "--groups", m)["looked_up_rows"]["max_over_mean"] for m in (1, 2, 4, 8)]
    assert even[0] > 1.2 * even[1] > 1.2 * 1.2 * even[2] and even[3] < 1.05, even
    write_row_plan("rows.plan", ["dp", "row"], [(f"C{i + 1}", [60, 140], [], []) for i in range(26)])
    hot = report(*SMALL, "--sharding", "tiered", "--plan", "rows.plan", "--zipf", 1.8, "--hot-batches", "--groups", 2)
    assert hot["bytes"]["moved"] == hot["bytes"]["predicted"] and hot["hot"]["samples"] > 0
    text = run(*SMALL, "--explain", "--groups", 2, says=["The sync of copies, after one step on the first batch."])
    of_sync = text.split("The sync of copies")[1]
    assert all(step in of_sync for step in ("TellTouched", "GatherCopies", "SpreadMeans")) and "backward" not in of_sync, of_sync
    run(*SMALL, "--groups", 2, "--trace", "trace.json", "--measure", 6, "--sync-every", 2)
    with open("trace.json", encoding="utf-8") as file:
        syncs = [e["args"] for e in json.load(file)["traceEvents"] if "sync_after_step" in e.get("args", {})]
    assert {args["sync_after_step"] for args in syncs} == {2, 4, 6}
    rounds = [args for args in syncs if "moved_bytes" in args]
    assert rounds and all(args["moved_bytes"] == args["predicted_bytes"] for args in rounds), rounds


def replica_groups_learn():
    """Rows learn from the samples of their group, dense weights and modules from those of the world. Where all groups have as many samples
    and sgd learns, that is what one group learns."""
    for order in ("wide_tree", "tree"):
        for more in ([], ["--collective", "hierarchical", "--tower", "dot", "--towers", 1], ["--collective", "hierarchical", "--tower", "cross", "--towers", 2]):
            common = [*SMALL, "--optimizer", "sgd", "--sharding", "table", "--order", order, "--ranks", 8, "--hosts", 4, "--learning-rate", 0.3, *more]
            one = report(*common, "--groups", 1)["losses"]
            for groups in (["--groups", 2], ["--groups", 2, "--group-placement", "inside"]):
                several = report(*common, *groups)["losses"]
                worst = max(abs(a - b) / a for a, b in zip(one, several))
                assert worst < 1e-5, (order, more, groups, worst)
    # uneven: a group of 32 samples and one of 16; a row that only one of them looks up moves by 1/2 of its mean
    common = ["--optimizer", "sgd", "--ranks", 2, "--hosts", 2, "--batch", 32, "--rows", 100000, "--dim", 4, "--zipf", 0.4, "--test-samples", 0,
              "--samples", 48, "--learning-rate", 100]
    run(*common, "--steps", 0, "--save", "before")
    run(*common, "--save", "one")
    run(*common, "--groups", 2, "--save", "two")
    before, one, two = (read_safetensors(name)[1] for name in ("before", "one", "two"))
    ratios = []
    for i in range(26):
        name = f"tables/C{i + 1}/weight"
        ratios += [(c - a) / (b - a) for a, b, c in zip(before[name][1], one[name][1], two[name][1]) if abs(b - a) > 1e-3]
    near = [min(abs(ratio - 48 / 64), abs(ratio - 48 / 32)) < 1e-2 for ratio in ratios]
    assert len(ratios) > 2500 and sum(near) > 0.9 * len(near), (len(ratios), sum(near))
    both = [any(abs(ratio - x) < 1e-2 for ratio in ratios) for x in (48 / 64, 48 / 32)]
    assert both == [True, True], both
    for name in ("top.0.weight", "bottom.0.weight", "top.1.bias"):  # dense weights are the world's
        assert max(abs(b - c) for b, c in zip(one[name][1], two[name][1])) < 1e-6, name
    # a group without a sample
    r = report(*SMALL, "--groups", 4, "--samples", 70, "--batch", 16, "--steps", 2)
    check_prediction(r)
    assert all(math.isfinite(x) for x in r["losses"]) and len(r["losses"]) == 2


def replica_groups_checkpoint():
    common = SMALL + ["--samples", 320]  # an epoch has 10 steps of 4 x 8
    towers = ["--collective", "hierarchical", "--tower", "dot", "--towers", 1]
    for more in ([], towers):
        for optimizer in ("adam", "rowwise_adagrad", "rms_prop"):
            policies = [*more, "--optimizer", optimizer, "--epochs", 2, "--groups", 2, "--sync-every", 3, "--test-samples", 0]
            straight = report(*common, *policies, "--steps", 14, "--save", "straight")
            begins = report(*common, *policies, "--steps", 6, "--save", "half")
            ends = report(*common, *policies, "--steps", 14, "--load", "half", "--save", "whole", "--sharding", "row")
            assert begins["losses"] == straight["losses"][:6] and ends["losses"] == straight["losses"][6:]
            check_prediction(ends)
            with open("straight", "rb") as a, open("whole", "rb") as b:
                assert a.read() == b.read()
    run(*common, "--groups", 2, "--save", "two")
    for arguments in (["--groups", 1], ["--groups", 4, "--sharding", "col"], ["--groups", 3, "--ranks", 6, "--hosts", 3, "--sharding", "table"]):
        run(*common, *arguments, "--load", "two", "--steps", 0, "--save", "again")
        with open("two", "rb") as a, open("again", "rb") as b:
            assert a.read() == b.read(), arguments


def replica_groups_wrong():
    for arguments, text in [
            (["--groups", 0], "--groups 0: give at least 1"),
            (["--groups", 3], "3 groups across hosts, of 2 hosts of 2 ranks: a group is whole hosts, or an equal part of one; give one of 1, 2, 4"),
            (["--groups", 4, "--group-placement", "inside"], "give one of 1, 2"),
            (["--groups", 2, "--group-placement", "anywhere"], "--group-placement 'anywhere': give across or inside"),
            (["--groups", 2, "--sync", "some"], "--sync 'some': give touched or all"),
            (["--groups", 2, "--sync-every", 0], "--sync-every 0: give at least 1"),
            (["--groups", 2, "--moment-scale", 3], "--moment-scale '3': give groups, or a number above 0 and at most 2, that of groups"),
            (["--groups", 2, "--moment-scale", "M"], "--moment-scale 'M'"),
            (["--groups", 2, "--moment-scale", "nan"], "--moment-scale 'nan'"),
            (["--groups", 2, "--moment-scale", 2, "--optimizer", "sgd"], "sgd has no moments"),
            (["--groups", 2, "--collective", "hierarchical", "--towers", 2], "2 towers do not divide the 1 host of each of 2 groups"),
            (["--sync", "all"], "--sync without --groups has no effect"),
            (["--sync-every", 2], "--sync-every without --groups has no effect"),
            (["--no-sync-overlap"], "--no-sync-overlap without --groups has no effect"),
            (["--bag", "1,2"], "--bag: 2 numbers; give one for all features, or 26"),
            (["--bag", "2,0"], "--bag '2,0': give positive numbers, such as 3 or 26 numbers with commas between them"),
            (["--moment-scale", 1], "--moment-scale without --groups has no effect"),
            (["--group-placement", "inside", "--groups", 1], "--group-placement without --groups has no effect")]:
        error = run(*SMALL, "--ranks", 4, "--hosts", 2, *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def replica_groups_mpi():
    for more in ([], ["--group-placement", "inside", "--sync", "all", "--sync-every", 2, "--moment-scale", 1.5], ["--collective", "hierarchical", "--tower", "dot", "--towers", 1, "--prefetch"]):
        arguments = [*SMALL, "--hosts", 2, "--bag", 2, "--groups", 2, *more]
        threads = report(*arguments, "--ranks", 4, "--save", "threads")
        processes = report(*arguments, ranks=4)
        check_prediction(processes)
        for key in "losses auc loss bytes memory looked_up_rows".split():
            assert threads[key] == processes[key], (more, key)
        run(*arguments, "--save", "processes", ranks=4)
        with open("threads", "rb") as a, open("processes", "rb") as b:
            assert a.read() == b.read(), more
    assert run(*SMALL, "--groups", 3, "--hosts", 2, status=2, ranks=4).count("give one of 1, 2, 4") == 1
    assert run(*SMALL, "--groups", 2, "--moment-scale", 5, status=2, ranks=2).count("--moment-scale '5'") == 1


def tiers():
    """Rows in tiers as a file says: the same losses, fewer bytes between hosts, and look-ups counted by tier."""
    names = [f"C{i + 1}" for i in range(26)]
    hot = [3, 0, 11, 190, 7]
    write_row_plan("three.plan", ["dp", "flex", "row"], [(name, [2, 3, 195], hot, [5, 150]) for name in names])
    write_row_plan("two.plan", ["dp", "row"], [(name, [40, 160], [], []) for name in names])
    write_row_plan("dense.plan", ["dp", "row"], [(name, [40, 160], [], []) for name in names], dense=True)
    row = report(*SMALL)
    for plan in ("three.plan", "dense.plan", "two.plan"):
        r = report(*SMALL, "--sharding", "tiered", "--plan", plan)
        check_prediction(r)
        assert (r["losses"], r["auc"]) == (row["losses"], row["auc"]), plan  # one id a bag: no sum to round
        rows = r["rows"]
        lookups = {tier: rows[tier]["lookups"] for tier in rows if tier != "unseen_lookups"}
        assert sum(lookups.values()) == 26 * r["samples"] and min(lookups.values()) > 0, lookups
        for tier, count in lookups.items():
            assert abs(rows[tier]["coverage"] - 100 * count / sum(lookups.values())) < 1e-9
            assert rows[tier]["predicted_coverage"] is None  # the plan does not say
        assert (rows["unseen_lookups"] > 0) == (plan == "three.plan")
        check_tiers(r)
        assert r["row_map_bytes"] == (26 * (2 * 32 + 2 * 4 * 5) if plan == "three.plan" else 0), r["row_map_bytes"]
        vectors, plain = (x["bytes"]["moved"]["cross_host"]["payload"] for x in (r, row))
        assert vectors != plain
    assert r["rows"]["dp"]["rows"] == 26 * 40 and r["config"]["plan"] == "two.plan"
    assert row["rows"] is None and row["row_map_bytes"] is None
    asked = 26 * row["samples"]
    assert sum(row["looked_up_rows"]["by_rank"]) == sum(r["looked_up_rows"]["by_rank"]) == asked
    assert row["looked_up_rows"]["max_over_mean"] == max(row["looked_up_rows"]["by_rank"]) * 4 / asked
    run(*SMALL, "--sharding", "tiered", "--plan", "two.plan", says=["rows of tier dp       1040, which took"])
    run(*SMALL, "--sharding", "tiered", "--plan", "two.plan", "--explain", says=["Fork<tier>", "[dp] Split<dp>", "Merge<tier>", "not known"])
    write_row_plan("other.plan", ["dp", "row"], [("C1", [1, 1], [], [])])
    write_row_plan("named.plan", ["dp", "row"], [("item", [1, 199], [], [])])
    write_row_plan("short.plan", ["dp", "row"], [(name, [1, 199], [], []) for name in names[:-1]])
    write_row_plan("order.plan", ["row", "dp"], [(name, [1, 199], [], []) for name in names])
    write_row_plan("twice.plan", ["dp", "row"], [("C1", [2, 198], [4, 4], [])])
    for arguments, text in [
            (["--plan", "two.plan"], "--plan two.plan says which rows are in which tier, and --sharding row has none"),
            (["--sharding", "tiered", "--plan", "other.plan"], "other.plan: the row plan says that table 'C1' has 2 rows, and the layer's has 200"),
            (["--sharding", "tiered", "--plan", "named.plan"], "named.plan: the row plan has a table 'item', and the layer has none of that name: give a plan of the layer's tables, under"),
            (["--sharding", "tiered", "--plan", "short.plan"], "short.plan: the row plan has no table 'C26': add it, with all its rows in the last tier"),
            (["--sharding", "tiered", "--plan", "order.plan"], "--plan order.plan: its tiers are row,dp; give a plan of dp,flex,row or dp,row or flex,row"),
            (["--sharding", "tiered", "--plan", "twice.plan"], "twice.plan: the row plan of table 'C1': row 4 stands twice"),
            (["--sharding", "tiered", "--plan", "none.plan"], "none.plan"),
            (["--sharding", "tiered", "--plan", "two.plan", "--order", "sample"], "rows with several copies (DP, Flex)")]:
        error = run(*SMALL, *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def check_tiers(r):
    """Payload by tier moved as predicted, and adds up to what the communicator counted for the layer."""
    rows = [tier for tier in r["rows"].values() if isinstance(tier, dict)]
    for tier in rows:
        assert tier["payload"] == tier["predicted_payload"], rows
    for rank, looked_up in enumerate(r["looked_up_rows"]["by_rank"]):
        assert sum(tier["looked_up_rows"]["by_rank"][rank] for tier in rows) == looked_up
    assert sum(tier["payload"] for tier in rows) == r["bytes"]["embedding_payload"] > 0, rows


def hot_batches():
    """Samples of replicated rows alone in batches of their own: all are learnt from, whatever the ranks, the order and the sizes of batches."""
    names = [f"C{i + 1}" for i in range(26)]
    write_row_plan("two.plan", ["dp", "row"], [(name, [60, 140], [], []) for name in names])
    write_row_plan("three.plan", ["dp", "flex", "row"], [(name, [60, 20, 120], [], []) for name in names])
    write_row_plan("none.plan", ["dp", "row"], [(name, [0, 200], [], []) for name in names])
    write_row_plan("flex.plan", ["flex", "row"], [(name, [60, 140], [], []) for name in names])
    common = ["--batch", 8, "--rows", 200, "--dim", 8, "--test-samples", 512, "--samples", 1000, "--zipf", 1.8, "--sharding", "tiered"]
    plain = report(*common, "--plan", "two.plan")
    assert plain["hot"] is None and plain["config"]["hot_batch"] is None, plain["hot"]
    found = set()
    for arguments in ([], ["--hot-batch", 20], ["--hot-order", "first"], ["--ranks", 3, "--batch", 7, "--epochs", 2], ["--hot-batch", 3, "--requests", "coalesced"],
                      ["--no-prefetch", "--hot-order", "first", "--hot-batch", 64], ["--plan", "three.plan", "--collective", "two_stage"],
                      ["--ranks", 1, "--hot-batch", 5]):
        arguments = ["--plan", "two.plan", *arguments]
        r = report(*common, "--hot-batches", *arguments, says=["hot batches"])
        hot = r["hot"]
        assert r["bytes"]["moved"] == r["bytes"]["predicted"] and r["memory"]["measured"] == r["memory"]["predicted"], arguments
        assert hot["samples"] + hot["other_samples"] == r["samples"] == 1000 * r["config"]["epochs"], hot
        assert hot["batches"] + hot["other_batches"] == r["steps"] and hot["share"] == hot["samples"] / r["samples"], hot
        assert hot["order"] == r["config"]["hot_order"] == ("first" if "first" in arguments else "spread")
        found.add(hot["share"])
        assert hot["seconds"] > 0 and hot["other_seconds"] > 0
        if arguments == ["--plan", "two.plan"]:
            assert report(*common, "--hot-batches", *arguments, "--no-prefetch")["losses"] == r["losses"]
            # it goes on where it was
            two = report(*common, "--hot-batches", *arguments, "--epochs", 2)
            run(*common, "--hot-batches", *arguments, "--save", "model")
            rest = report(*common, "--hot-batches", *arguments, "--epochs", 2, "--load", "model")
            assert r["losses"] + rest["losses"] == two["losses"] and rest["first_step"] == r["steps"]
    assert len(found) == 1 and 0.2 < found.pop() < 0.9, found  # the samples are hot or not, whoever reads them
    for arguments, text in [
            (["--hot-batch", 5], "--hot-batch has no effect without --hot-batches"),
            (["--hot-order", "first"], "--hot-order has no effect without --hot-batches"),
            (["--hot-batches", "--hot-batch", 0, "--plan", "two.plan"], "--hot-batch 0: give at least 1"),
            (["--hot-batches", "--hot-order", "last", "--plan", "two.plan"], "--hot-order 'last': give spread or first"),
            (["--hot-batches", "--sharding", "row"], "--hot-batches with --sharding row: hot samples have rows of tier dp alone"),
            (["--hot-batches", "--plan", "flex.plan"], "--hot-batches with tiers flex,row: hot samples have rows of tier dp alone"),
            (["--hot-batches", "--plan", "none.plan"], "hot batches with a row plan that replicates no row: give a plan with rows in the first tier")]:
        error = run(*common, *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def tune_cache():
    """Sizes of the cache by the clock: the fastest is kept, and the report has all."""
    common = ["--batch", 8, "--rows", 200, "--dim", 8, "--test-samples", 512, "--samples", 640, "--zipf", 1.8, "--sharding", "tiered"]
    run(*common, "--steps", 1, "--profile-out", "profile")
    for arguments in (["--profile", "profile"], ["--requests", "auto"], ["--epochs", 1, "--steps", 2, "--no-prefetch"]):
        r = report(*common, "--tune-cache", "3,900,50", *arguments, says=["cache of 900 rows: ", "--tune-cache: "])
        check_prediction(r)
        tried = r["tuned"]
        assert [one["rows"] for one in tried] == r["config"]["tune_cache"] == [3, 900, 50] and all(one["step_seconds"] > 0 for one in tried), tried
        assert r["rows"]["dp"]["rows"] == min(tried, key=lambda one: one["step_seconds"])["rows"], (tried, r["rows"])
        assert r["first_step"] == 0 and r["steps"] == (2 if "--steps" in arguments else 20), r["steps"]
    assert report(*common)["tuned"] is None
    # those of the profile that are looked up most
    run(*common, "--steps", 1, "--tune-cache", 40, "--profile", "profile", "--json", "report.json")
    with open("report.json", encoding="utf-8") as file:
        covered = json.load(file)["rows"]["dp"]["predicted_coverage"]
    counts = sorted((count for name, counts in read_safetensors("profile")[1].items() if name.endswith("/lookups") for count in counts[1]), reverse=True)
    assert abs(covered - 100 * sum(counts[:40]) / sum(counts)) < 1e-9, covered
    for arguments, text in [
            (["--tune-cache", 0], "--tune-cache 0: give at least 1 row"),
            (["--tune-cache", "5,1e6"], "--tune-cache"),
            (["--tune-cache", "5,6000"], "--tune-cache 6000: the profile saw"),
            (["--tune-cache", 5, "--tiers", "dp,flex,row"], "--tune-cache is of tiers dp,row: leave --tiers out"),
            (["--tune-cache", 5, "--budget", 5], "--budget has no effect with --tune-cache"),
            (["--tune-cache", 5, "--hot-batches"], "--tune-cache with --hot-batches: steps of two kinds have no one time"),
            (["--tune-cache", 5, "--sharding", "row"], "--tune-cache has no effect with --sharding row")]:
        error = run(*common, *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def profiled():
    """A plan of the trainer's own is that of the programs, from a file or from a pass that nothing later notices."""
    write("train.tsv", click_lines(3000, 1))
    common = ["--data", "train.tsv", "--rows", 100, "--batch", 100, "--dim", 8, "--ranks", 4, "--hosts", 2]
    run("--data", "train.tsv", "--rows", 100, "--out", "profile", program="profile_rows")
    row = report(*common)
    plans = {}
    for flags in ([], ["--tiers", "dp,row"], ["--budget", 5000], ["--budget", 5000, "--cut", "flex"], ["--tiers", "flex,row", "--budget", 2000]):
        run("--profile", "profile", "--dim", 8, "--batch", 100, "--ranks", 4, "--hosts", 2, *flags, "--out", "plan", program="plan_rows")
        planned = report(*common, "--sharding", "tiered", "--plan", "plan")
        own = report(*common, "--sharding", "tiered", "--profile-out", "counted", *flags)
        with open("profile", "rb") as file, open("counted", "rb") as counted:
            assert file.read() == counted.read()
        read = report(*common, "--sharding", "tiered", "--profile", "profile", *flags)
        check_prediction(own)
        check_tiers(own)
        for key in "losses auc bytes memory rows row_map_bytes looked_up_rows".split():
            assert planned[key] == own[key] == read[key], (flags, key)
        assert own["losses"] == row["losses"] and own["auc"] == row["auc"], flags  # one id a bag: no sum to round
        rows = {tier: of for tier, of in own["rows"].items() if isinstance(of, dict)}
        for tier, of in rows.items():  # what was profiled is what was trained on
            assert math.isclose(of["coverage"], of["predicted_coverage"]) and of["rows"] > 0, (flags, tier, of)
        assert sum(of["rows"] for of in rows.values()) == 2600 and own["rows"]["unseen_lookups"] == 0
        plans[tuple(flags)] = [of["rows"] for of in rows.values()]
        config = own["config"]
        assert (config["plan"], config["profile"], config["tiers"]) == ("", "", [*rows]) and read["config"]["profile"] == "profile"
    assert len({str(plan) for plan in plans.values()}) == len(plans), plans  # every option has its effect
    for more in ([], ["--no-prefetch"], ["--bag", 3, "--zipf", 1.3]):  # generated: the same batches after the pass
        data = ["--samples", 6000, "--rows", 100, "--batch", 100, "--dim", 8, "--test-samples", 500, *more]
        r = report(*data, "--sharding", "tiered")
        check_prediction(r)
        check_tiers(r)
        assert r["rows"]["dp"]["rows"] > 0
        if not more: assert r["losses"] == report(*data)["losses"]
    out = run(*common, "--sharding", "tiered", "--explain", says=["rows placed by a profile of the training data: dp ", "row map: "])
    assert "first batch" in out and "step 1" not in out, out
    run(*common, "--sharding", "tiered", "--profile", "profile", says=["rows placed by profile: dp ", "% in the plan's profile"])


def explained():
    """What --explain says of the first batch is what a run of that batch reports."""
    write_row_plan("three.plan", ["dp", "flex", "row"], [(f"C{i + 1}", [2, 30, 168], [], [199, 100]) for i in range(26)])
    for policies in (["row"], ["col"], ["table"], ["mixed"], ["flex"], ["col", "--collective", "hierarchical"],
                     ["tiered", "--plan", "three.plan"], ["tiered", "--plan", "three.plan", "--collective", "two_stage"]):
        out = run("--explain", "--steps", 1, "--test-samples", 0, "--rows", 200, "--batch", 20, "--bag", 3, "--dim", 8, "--json", "report.json",
                  "--sharding", *policies)
        with open("report.json", encoding="utf-8") as file:
            r = json.load(file)
        line = re.search(r"looked-up rows of a rank: ([\d.]+)", out)
        assert line and math.isclose(float(line[1]), r["looked_up_rows"]["max_over_mean"], abs_tol=6e-4), (policies, out, r["looked_up_rows"])
        if policies[0] != "tiered": continue
        check_tiers(r)
        for tier in ("dp", "flex", "row"):
            of = r["rows"][tier]
            assert re.search(rf"^  {tier} +{of['rows']} +not known +{of['coverage']:.2f}% +{of['payload']}$", out, re.MULTILINE), (tier, of, out)
            assert f"{tier} {of['looked_up_rows']['max_over_mean']:.3f}" in out, (tier, of, out)
        assert f"never saw: {r['rows']['unseen_lookups']}; row map: {r['row_map_bytes']} bytes" in out, out
        assert r["rows"]["unseen_lookups"] > 0 and r["row_map_bytes"] > 0


def profile_progress():
    """The pass that profiles shows on a terminal how fast it goes and how long it will take, and then goes on."""
    shown, out = shown_on_terminal(sys.argv[1], "--samples", "1500000", "--steps", "2", "--test-samples", "0", "--rows", "100",
                                   "--sharding", "tiered")
    assert "rows placed by a profile of the training data: dp " in out, out
    assert re.search(rb"profiling the training data: \d+ samples of about 1500000 \(\d+ %\)   \d+ samples/s   \d+:\d\d left", shown), shown


def profiled_wrong():
    write("train.tsv", click_lines(300, 1))
    lines = click_lines(100, 1).splitlines(keepends=True)
    write("bad.tsv", "".join([*lines[:70], "2" + lines[70][1:], *lines[71:]]))
    os.mkfifo("pipe")
    run("--data", "train.tsv", "--rows", 200, "--out", "profile", program="profile_rows")
    write_row_plan("two.plan", ["dp", "row"], [(f"C{i + 1}", [40, 160], [], []) for i in range(26)])
    with open("profile", "rb") as file:
        data = file.read()
    with open("short", "wb") as file:
        file.write(data[:-8])
    write("one.txt", "1 5\n1 6\n")
    run("--sequences", "one.txt", "--out", "items", program="profile_rows")
    tiered = ["--sharding", "tiered"]
    for arguments, text in [
            ([*tiered, "--plan", "two.plan", "--profile", "profile"], "--plan two.plan and --profile profile: the one says which rows"),
            (["--profile", "profile"], "--profile has no effect with --sharding row"),
            (["--profile-out", "new"], "--profile-out has no effect with --sharding row"),
            ([*tiered, "--plan", "two.plan", "--profile-out", "new"], "--profile-out has no effect with --plan two.plan"),
            ([*tiered, "--profile", "profile", "--profile-out", "new"], "--profile-out has no effect with --profile profile"),
            ([*tiered, "--profile-out", "/no/such/folder/new"], "/no/such/folder/new: cannot be written"),
            (["--tiers", "dp,row"], "--tiers has no effect with --sharding row"),
            ([*tiered, "--plan", "two.plan", "--cut", "flex"], "--cut has no effect with --plan two.plan"),
            ([*tiered, "--plan", "two.plan", "--budget", 5], "--budget has no effect with --plan two.plan"),
            ([*tiered, "--tiers", "row"], "--tiers 'row': give dp,flex,row or dp,row or flex,row"),
            ([*tiered, "--cut", "dp"], "--cut 'dp': give row or flex"),
            ([*tiered, "--cut", "flex", "--tiers", "dp,row"], "--cut has no effect with --tiers dp,row"),
            ([*tiered, "--tiers", "flex,row"], "--tiers flex,row with a budget of 0 bytes"),
            ([*tiered, "--budget", "nan"], "--budget nan: give a number of bytes"),
            ([*tiered, "--budget", -1e12], "a budget of -1000000000000 bytes a rank: no plan takes as little; the least is "),
            ([*tiered, "--profile", "nowhere"], "nowhere"),
            ([*tiered, "--profile", "short"], "short"),
            ([*tiered, "--profile", "two.plan"], "two.plan: is no access profile"),
            ([*tiered, "--plan", "profile"], "profile: is no row plan"),
            ([*tiered, "--profile", "items"], "items: "),
            ([*tiered, "--profile", "profile", "--rows", 100], "profile: "),
            ([*tiered, "--data", "bad.tsv"], "bad.tsv, line 71"),
            ([*tiered, "--data", "pipe"], "pipe is no regular file, and --sharding tiered reads the data once more"),
            ([*tiered, "--data", "nowhere.tsv"], "nowhere.tsv")]:
        error = run(*SMALL[:-2], *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def tower_files():
    """Features in towers as a file says; dealt in turn they are what a number of towers does."""
    names = [f"C{i + 1}" for i in range(26)]
    write("dealt.json", json.dumps({"towers": [names[0::2], names[1::2]], "strategy": "naive"}))
    write("halves.json", json.dumps({"towers": [names[:13], names[13:]]}))
    common = [*SMALL, "--collective", "hierarchical", "--tower", "dot"]
    dealt = report(*common, "--towers", "dealt.json")
    assert dealt["losses"] == report(*common, "--towers", 2)["losses"] == report(*common)["losses"]
    assert dealt["config"]["towers"] == "dealt.json"
    halves = report(*common, "--towers", "halves.json")
    check_prediction(halves)
    assert halves["losses"] != dealt["losses"]
    for towers, text in [
            ([names[:13], names[13:25] + ["C99"]], "wrong.json: tower 1 names feature 'C99', which no table has"),
            ([names[:13], names[13:25]], "wrong.json: feature 'C26' is in no tower: name every feature once"),
            ([names[:14], names[13:]], "wrong.json: feature 'C14' is in tower 0 and again in tower 1: name it once"),
            ([names[:9], names[9:18], names[18:]], "wrong.json: 3 towers do not divide 2 hosts"),
            ([names, []], "tower 1 of 2 has no feature"),
            ([names[:13], 7], "wrong.json: tower 1 is 7: give the names of its features")]:
        write("wrong.json", json.dumps({"towers": towers}))
        error = run(*common, "--towers", "wrong.json", status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def wires():
    for wire in (["--wire", "bf16"], ["--wire", "bf16", "--collective", "hierarchical", "--bag", 3]):
        exact = report(*SMALL, *wire[2:])
        lossy = report(*SMALL, *wire)
        check_prediction(lossy)
        assert lossy["losses"] != exact["losses"]
        assert all(math.isclose(a, b, rel_tol=0.02) for a, b in zip(lossy["losses"], exact["losses"]))
        assert lossy["bytes"]["moved"]["host"]["payload"] < exact["bytes"]["moved"]["host"]["payload"]
    note = "--wire bf16 with --sharding dp: every rank has all rows, so that no vector travels or is rounded; the sums of gradients are rounded to bf16"
    exact = report(*SMALL, "--sharding", "dp", never=["--wire"])["losses"]
    lossy = report(*SMALL, "--sharding", "dp", "--wire", "bf16", says=[note])["losses"]
    assert lossy[0] == exact[0] and lossy[1] != exact[1], "the note is wrong: the first step has seen no gradient yet"
    report(*SMALL, "--sharding", "row", "--wire", "bf16", never=["--wire"])


def read_safetensors(name):
    """With nothing but Python's own library."""
    with open(name, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for key, info in header.items():
        begin, end = info["data_offsets"]
        code = {"F32": "f", "I64": "q"}[info["dtype"]]
        count = math.prod(info["shape"])
        tensors[key] = (info["shape"], struct.unpack(f"<{count}{code}", data[begin:end]))
    return metadata, tensors


def checkpoint():
    common = SMALL + ["--samples", 320]  # an epoch has 10 steps of 4 x 8
    for optimizer in ("adam", "rowwise_adagrad", "sgd"):
        policies = ["--optimizer", optimizer, "--epochs", 2, "--lr-schedule", "polynomial", "--lr-decay-steps", 15]
        straight = report(*common, *policies, "--steps", 14, "--save", "straight")
        for at in (4, 10, 12):
            begins = report(*common, *policies, "--steps", at, "--save", "half", "--sharding", "table")
            ends = report(*common, *policies, "--steps", 14, "--load", "half", "--save", "whole", "--sharding", "col")
            assert begins["losses"] == straight["losses"][:at]
            assert ends["first_step"] == at
            if optimizer != "rowwise_adagrad":  # whose norms of columns add up in another order
                assert ends["losses"] == straight["losses"][at:]
                assert ends["auc"] == straight["auc"]
                with open("straight", "rb") as a, open("whole", "rb") as b:
                    assert a.read() == b.read()
            check_prediction(ends)
    metadata, tensors = read_safetensors("straight")
    assert metadata["optimizer"] == "sgd"
    assert tensors["tables/C1/weight"][0] == [200, 8] and tensors["tables/C26/weight"][0] == [200, 8]
    assert tensors["bottom.0.weight"][0] == [64, 13]
    assert tensors["steps"] == ([], (14,))
    assert max(abs(x) for x in tensors["tables/C1/weight"][1]) < 1
    # any number of ranks, and no training at all
    here = report(*common, "--optimizer", "sgd", "--load", "straight", "--steps", 0)
    there = report(*common, "--optimizer", "sgd", "--load", "straight", "--steps", 0, "--ranks", 3, "--batch", 5)
    assert here["losses"] == [] and here["auc"] == there["auc"]
    run(*common, "--optimizer", "adam", "--load", "straight", status=2, says=["holds the state of optimizer 'sgd'"])
    run(*common, "--optimizer", "sgd", "--load", "straight", "--rows", 300, status=2, says=["tables/C1/weight"])
    write("junk", "this is no checkpoint")
    run(*common, "--load", "junk", status=2, says=["junk: "])


def write_weights_alone(source, target, change=lambda name, values: values):
    """The weights of a checkpoint as another program writes them: no metadata, biases (n,), and a tensor of its own."""
    _, tensors = read_safetensors(source)
    header, data = {"mine": {"dtype": "I8", "shape": [3], "data_offsets": [0, 3]}}, b"abc"
    for name, (shape, values) in tensors.items():
        if name in ("steps", "train/samples") or "_state" in name: continue
        begin, values = len(data), change(name, values)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape[1:] if name.endswith(".bias") else shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def weights_alone():
    """A file of weights alone is said to be one, predicts the same, and trains on from step 0 with fresh moments."""
    for policies in (["--optimizer", "adam", "--sharding", "col"], ["--towers", 2, "--tower", "dot", "--collective", "hierarchical", "--optimizer", "adagrad"]):
        common = [*SMALL, *policies]
        run(*common, "--save", "trained")
        write_weights_alone("trained", "alone")
        said = ["alone has weights alone: moments, steps and samples begin anew"]
        trained = report(*common, "--load", "trained", "--steps", 0)
        r = report(*common, "--load", "alone", "--steps", 0, says=said)
        assert r["auc"] == trained["auc"] and r["first_step"] == 0
        r = report(*common, "--load", "alone", "--save", "on", says=said, never=["continuing from"])
        assert r["first_step"] == 0 and len(r["losses"]) == 12 and r["losses"][0] != trained["losses"]
        _, tensors = read_safetensors("on")
        assert tensors["steps"] == ([], (12,))
        on = report(*common, "--load", "on", "--steps", 24, never=["weights alone"])
        assert on["first_step"] == 12
        table = "tables/C3/weight"
        write_weights_alone("trained", "nan", lambda name, values: (values[0], math.nan, *values[2:]) if name == table else values)
        run(*common, "--load", "nan", status=2, says=["nan: tensor 'tables/C3/weight', row 0, column 1 (from 0): nan, and weights are finite"])


def goes_on():
    """A run that goes on from a checkpoint says from where, and says so when there is nothing left to learn."""
    common = ["--batch", 8, "--rows", 200, "--dim", 8, "--test-samples", 512, "--samples", 320]  # 10 steps an epoch
    run(*common, "--save", "model")
    with open("model", "rb") as file:
        before = file.read()
    on = [*common, "--load", "model", "--save", "model"]
    for arguments, texts in [
            (["--steps", 4], ["model holds 10 steps", "--steps 4", "nothing is left to train; give --steps 11 or more"]),
            (["--steps", 10, "--epochs", 2], ["give --steps 11 or more"]),
            ([], ["model has learnt from 320 samples in 10 steps, and --epochs 1 has 320", "give --epochs 2 or more"]),
            (["--steps", 15], ["give --epochs 2 or more"]),
            (["--samples", 100, "--epochs", 2], ["--epochs 2 has 200", "give --epochs 4 or more"])]:
        error = run(*on, *arguments, status=2, says=texts)
        assert error.count("nothing is left to train") == 1, error
    with open("model", "rb") as file:
        assert file.read() == before
    run(*on, "--steps", 0, says=["loaded step 10 of model: --steps 0 trains nothing", "model: the model after step 10\n"])
    run(*on, "--epochs", 0, says=["loaded step 10 of model: --epochs 0 trains nothing"])
    with open("model", "rb") as file:
        assert file.read() == before
    r = report(*on, "--epochs", 2, says=["continuing from step 10 of model", "model: the model after epoch 2, step 20\n"])
    assert r["first_step"] == 10 and len(r["losses"]) == 10
    assert r["saved"] == {"file": "model", "epoch": 2, "steps": 20}


def outputs():
    """A run that fails makes no file and harms none; what is saved is the last epoch, and the report says so."""
    made = ["--save", "model", "--json", "json", "--trace", "trace"]
    write("bad.tsv", click_lines(70, 1) + "1\t2\n")
    write("good.tsv", click_lines(70, 1))
    failures = [(["--sharding", "rows"], 2), (["--data", "bad.tsv"], 2), (["--data", "good.tsv", "--test", "bad.tsv"], 2),
                (["--deadline", 0.0001], 3), (["--load", "/nonexistent"], 2)]
    for arguments, status in failures:
        run(*arguments, *made, status=status)
        assert sorted(os.listdir()) == ["bad.tsv", "good.tsv"], os.listdir()
    for name in made[1::2]:
        write(name, "precious")
    for arguments, status in failures:
        run(*arguments, *made, status=status)
        for name in made[1::2]:
            with open(name, encoding="ascii") as file:
                assert file.read() == "precious", name
    assert sorted(os.listdir()) == ["bad.tsv", "good.tsv", "json", "model", "trace"], os.listdir()

    write("train.tsv", click_lines(200, 1))
    write("test.tsv", click_lines(600, 2))
    learn = ["--data", "train.tsv", "--test", "test.tsv", "--batch", 5, "--rows", 100, "--learning-rate", 0.1]
    r = report(*learn, "--epochs", 8, "--save", "model")
    last, best = r["epochs"][-1], r["best_epoch"]
    assert best < 8 and r["auc"] > last["auc"], "the last epoch is the best: the test is vacuous"
    assert r["saved"] == {"file": "model", "epoch": 8, "steps": 80}
    line = f"model: the model after epoch 8, step 80 (test AUC {last['auc']:.5f}); the best was epoch {best}\n"
    run(*learn, "--epochs", 8, "--save", "model", says=[line])
    assert report(*learn, "--load", "model", "--steps", 0)["auc"] == last["auc"]
    assert report(*learn, "--epochs", 1)["saved"] is None


def progress():
    for lines, batch, last in ((1, 32, "step 1 of 1 (100 %)"), (70, 32, "step 1 of 1 (100 %)"), (9, 2, "step 2 of 2 (100 %)")):
        write("few.tsv", click_lines(lines, 1))
        run("--data", "few.tsv", "--batch", batch, says=[last])
    run("--data", "few.tsv", "--batch", 2, "--epochs", 2, "--steps", 50, says=["step 4 of 4 (100 %)"])
    progress_is_of_all_ranks(["--ranks", 4])
    progress_is_of_all_ranks(["--ranks", 3, "--no-prefetch", "--epochs", 2, "--samples", 312])
    worse = ": worse than a constant, the base rate as every prediction"
    for rate, says, never in ((0.02, [], [worse]), (6, [worse], [])):
        ne = report("--steps", 40, "--batch", 8, "--learning-rate", rate, "--optimizer", "sgd", says=says, never=never)["ne"]
        assert (ne > 1) == bool(says), ne


def progress_is_of_all_ranks(arguments, ranks=None):
    """The loss of a line is the mean of the report's losses of the steps since the line before."""
    command = [sys.argv[1], "--batch", 8, "--rows", 200, "--steps", 64, "--json", "report.json", *arguments]
    if ranks is not None:
        command = [os.environ["MPIEXEC"], "-np", ranks, *command]
    shown = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True).stderr
    with open("report.json", encoding="utf-8") as file:
        losses = json.load(file)["losses"]
    lines = [(int(step), float(loss)) for step, loss in re.findall(r"^step (\d+) .*loss (\S+) ", shown, re.M)]
    assert len(lines) >= 5, shown
    for (before, _), (step, loss) in zip([(0, 0), *lines], lines):
        mean = sum(losses[before:step]) / (step - before)
        assert abs(loss - mean) <= 0.5001e-4, (before, step, loss, mean)
    assert lines[-1][0] == len(losses), shown


def settings():
    """The settings that had effect, with numbers as they were given."""
    config = report(*SMALL, "--learning-rate", 0.05, "--zipf", 1.3, "--deadline", 7.5)["config"]
    assert config["learning_rate"] == {"base": 0.05, "schedule": "constant", "warmup": 0, "decay_start": None, "decay_steps": None,
                                       "decay_factor": None, "decay_power": None, "end": None}, config
    assert (config["steps"], config["zipf"], config["deadline"], config["measure"], config["samples"]) == (12, 1.3, 7.5, 10, 131072)
    for key in "tower_c tower_p tower_dim towers cross_rank cross_layers keep save_every group_placement tiers".split():
        assert config[key] is None, (key, config[key])
    with open("report.json", encoding="ascii") as file:
        text = file.read()
    assert '"base": 0.05,' in text and "0.0500" not in text, text[:2000]
    decay = report(*SMALL, "--lr-schedule", "step", "--lr-decay-steps", 5, "--lr-decay-factor", 0.7, "--collective", "hierarchical",
                   "--tower", "dot", "--save", "run/", "--save-every", "10min")["config"]
    assert decay["learning_rate"]["decay_factor"] == 0.7 and decay["learning_rate"]["end"] is None, decay
    assert (decay["towers"], decay["tower_c"], decay["keep"], decay["save_every"]) == (2, 1, 2, "600s"), decay
    groups = report(*SMALL, "--groups", 2, "--moment-scale", 1.1, "--lr-schedule", "polynomial", "--lr-decay-steps", 9, "--lr-end", 0.003)["config"]
    assert groups["moment_scale"] == 1.1 and groups["learning_rate"]["end"] == 0.003 and groups["learning_rate"]["decay_factor"] is None, groups
    write("few.tsv", click_lines(70, 1))
    of_files = report("--data", "few.tsv", "--rows", 200)["config"]
    for key in "samples test_samples bag zipf data_seed feature_groups steps".split():
        assert of_files[key] is None, (key, of_files[key])


def report_():
    r = report("--steps", 30, "--sharding", "col", "--bag", 2)
    for key in "config samples_per_second loss auc ne bytes memory time losses epochs best_epoch".split():
        assert key in r, key
    assert r["config"]["ranks"] == 4 and r["config"]["hosts"] == 2 and r["config"]["sharding"] == "col"
    assert r["samples_per_second"] > 0 and r["samples"] == 30 * 4 * 32
    assert 0.5 < r["auc"] < 0.85 and 0.4 < r["loss"] < 0.8 and 0.7 < r["ne"] < 1.1
    assert r["bytes"]["steps"] == 10
    check_prediction(r)
    for name in "compute exchange exposed_exchange dense_reduction sync input step".split():
        assert 0 <= r["time"][name]["mean"] <= r["time"][name]["max"] * (1 + 1e-9), name
    assert 0 < sum(r["time"][n]["mean"] for n in "compute exchange dense_reduction sync input".split()) \
        <= r["time"]["step"]["mean"] * 1.01
    assert 0 < r["time"]["exposed_exchange"]["mean"] <= r["time"]["exchange"]["mean"]
    dense = 13 * 64 + 64 + 64 * 16 + 16 + (16 + 351) * 128 + 128 + 128 * 64 + 64 + 64 + 1  # 351 pairs of 27 vectors
    assert r["model"]["dense_parameters"] == dense and r["model"]["table_parameters"] == 26 * 5000 * 16, r["model"]
    assert r["model"]["module_parameters"] == 0 and r["model"]["compression"] == 1
    interaction = 6 * 27 * 27 * 16
    weights = 13 * 64 + 64 * 16 + (16 + 351) * 128 + 128 * 64 + 64
    assert r["model"]["flops_per_sample"] == 6 * weights - 2 * 13 * 64 + interaction, r["model"]
    for ranks, hosts in ((1, 1), (3, 3), (6, 2)):
        check_prediction(report(*SMALL, "--ranks", ranks, "--hosts", hosts, "--sharding", "mixed"))
    check_prediction(report(*SMALL, "--samples", 70, "--epochs", 3))  # epochs shorter than what is measured
    check_prediction(report(*SMALL, "--measure", 1))
    assert report(*SMALL, "--measure", 0)["bytes"]["steps"] == 0
    learnt = report("--steps", 300)
    assert learnt["auc"] > 0.72, learnt["auc"]


def files():
    write("train.tsv", click_lines(3000, 1))
    write("test.tsv", click_lines(600, 2))
    with gzip.open("train.tsv.gz", "wt", encoding="ascii") as file:
        file.write(click_lines(3000, 1))
    r = report("--data", "train.tsv", "--test", "test.tsv", "--epochs", 3, "--batch", 10, "--rows", 100)
    assert [e["epoch"] for e in r["epochs"]] == [1, 2, 3] and r["quality_of"] == "test"
    assert r["auc"] == max(e["auc"] for e in r["epochs"]) and r["epochs"][0]["samples"] == 600
    assert r["auc"] > 0.75, r["auc"]
    packed = report("--data", "train.tsv.gz", "--test", "test.tsv", "--epochs", 3, "--batch", 10, "--rows", 100)
    assert packed["losses"] == r["losses"]
    # a global batch that does not divide the data, without test data
    odd = report("--data", "train.tsv", "--batch", 7, "--ranks", 3, "--rows", 100)
    assert odd["samples"] == 3000 and len(odd["losses"]) == 143 and odd["quality_of"] == "train"
    check_prediction(odd)


def xxh64(data, seed):
    """XXH64 of no or four bytes, from its specification."""
    mask = 2**64 - 1
    p1, p2, p3, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5
    h = (seed + p5 + len(data)) & mask
    if data:
        h ^= struct.unpack("<I", data)[0] * p1 & mask
        h = ((h << 23 | h >> 41) * p2 + p3) & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def write_npy(name, dtype, columns, values):
    """As numpy.save writes it; by numpy itself where it is there."""
    rows = len(values) // columns
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (117 - len(header)) + "\n"
    data = struct.pack(f"<{len(values)}{dtype[1]}", *values)
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)
    try:
        import numpy
    except ImportError:
        return
    numpy.save("numpy.npy", numpy.array(values, dtype=dtype).reshape(rows, columns))
    with open(name, "rb") as ours, open("numpy.npy", "rb") as theirs:
        assert ours.read() == theirs.read()


def write_day(name, lines, rows):
    """The samples of click logs as numpy files, with the dense values and ids that train_dlrm makes of the logs."""
    dice = random.Random(3)
    dense, sparse, labels = [], [], []
    for line in lines.splitlines():
        columns = line.split("\t")
        labels.append(int(columns[0]))
        dense += [math.log1p(int(x or "0")) for x in columns[1:14]]
        for feature, x in enumerate(columns[14:]):
            row = xxh64(struct.pack("<I", int(x, 16)) if x else b"", feature) % rows
            sparse.append(row + rows * dice.randrange(-9, 9))  # of which the remainder is left
    write_npy(name + "_dense.npy", "<f4", 13, dense)
    write_npy(name + "_sparse.npy", "<i4", 26, sparse)
    write_npy(name + "_labels.npy", "<i4", 1, labels)


def numpy_files():
    """The same samples in both formats are the same losses to the last bit."""
    logs = click_lines(3000, 1).splitlines(keepends=True)
    write("train.tsv", "".join(logs))
    write("test.tsv", click_lines(600, 2))
    write_day("day_0", "".join(logs[:1000]), 100)
    write_day("day_1", "".join(logs[1000:]), 100)
    write_day("test", click_lines(600, 2), 100)
    files = [f"{day}_{kind}.npy" for kind in ("sparse", "labels", "dense") for day in ("day_0", "day_1")]
    tests = ["test_dense.npy", "test_sparse.npy", "test_labels.npy"]
    for arguments in (["--batch", 10, "--epochs", 2], ["--batch", 7, "--ranks", 3, "--no-prefetch"]):
        r = report("--data", "train.tsv", "--test", "test.tsv", "--rows", 100, *arguments)
        n = report("--data", *files, "--test", *tests, "--rows", 100, *arguments)
        check_prediction(n)
        assert n["samples"] == r["samples"] and n["losses"] == r["losses"] and n["auc"] == r["auc"]
    assert n["samples"] == 3000 and len(n["losses"]) == 143
    tiered = ["--rows", 100, "--batch", 100, "--sharding", "tiered"]  # and the same profiles
    r, n = report("--data", "train.tsv", *tiered), report("--data", *files, *tiered)
    assert n["rows"] == r["rows"] and n["losses"] == r["losses"] and n["rows"]["dp"]["rows"] > 0
    run("--data", *files, "--batch", 10, "--rows", 100, says=["step 8 of 75 (11 %)"])

    for arguments, text in [
            (files[1:], "day_0: day_0_sparse.npy is not among the files"),
            ([*files, "train.tsv"], "day_0_sparse.npy is a numpy file and train.tsv is none: give files of one kind"),
            ([*files, "--test", "test.tsv"], "numpy files and click logs have other dense values and ids"),
            (["train.tsv", "--test", *tests], "numpy files and click logs have other dense values and ids"),
            (["day.npy"], "day.npy: expected a name such as day_0_dense.npy")]:
        error = run("--data", *arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error
    write_npy("day_1_labels.npy", "<i4", 1, [0] * 1234 + [2] + [1] * 765)
    for extra in ([], ["--ranks", 1], ["--no-prefetch"]):
        error = run("--data", *files, "--batch", 10, *extra, status=2, says=["day_1_labels.npy, row 1234 (from 0): 2, expected"])
        assert error.count("row 1234") == 1, error
    write_npy("day_1_labels.npy", "<i4", 1, [0] * 1999)
    error = run("--data", *files, status=2, says=["day_1_dense.npy has 2000 rows", "day_1_labels.npy 1999"])
    assert error.count("1999") == 1, error


def trace():
    run(*SMALL, "--trace", "trace.json", "--measure", 4, "--sharding", "mixed")
    with open("trace.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in spans} == {0, 1, 2, 3} and {e["pid"] for e in spans} == {0, 1}
    rounds = [e["args"] for e in spans if "moved_bytes" in e["args"]]
    assert len(rounds) >= 4 * 4 * 3
    for args in rounds:
        assert args["moved_bytes"] == args["predicted_bytes"], args
    for what in ("pack", "wait"):
        names = {e["name"] for e in spans if e["cat"] == what}
        assert f"Exchange<World, Ids> {what}" in names and all(name.endswith(" " + what) for name in names), names
    assert not any(e["name"].endswith((" pack", " wait")) for e in spans if e["cat"] == "compute")


def mpi():
    progress_is_of_all_ranks(["--hosts", 2], ranks=4)
    write_row_plan("rows.plan", ["dp", "flex", "row"], [(f"C{i + 1}", [3, 7, 190], [], []) for i in range(26)])
    for sharding in (["row"], ["mixed"], ["flex"], ["tiered", "--plan", "rows.plan"], ["tiered", "--samples", 4000, "--batch", 64]):
        arguments = [*SMALL, "--sharding", *sharding, "--hosts", 2, "--bag", 2]
        threads = report(*arguments, "--ranks", 4)
        processes = report(*arguments, ranks=4)
        assert processes["config"]["backend"] == "mpi"
        check_prediction(processes)
        for key in "losses auc loss bytes memory rows looked_up_rows row_map_bytes".split():
            assert threads[key] == processes[key], key
    write_row_plan("hot.plan", ["dp", "row"], [(f"C{i + 1}", [60, 140], [], []) for i in range(26)])
    for order in ("spread", "first"):
        arguments = [*SMALL, "--sharding", "tiered", "--plan", "hot.plan", "--zipf", 1.8, "--hosts", 2, "--hot-batches", "--hot-batch", 20, "--hot-order", order]
        threads = report(*arguments, "--ranks", 4)
        processes = report(*arguments, ranks=4)
        for key in "losses auc bytes memory".split():
            assert threads[key] == processes[key], (order, key)
        assert processes["bytes"]["moved"] == processes["bytes"]["predicted"] and processes["hot"]["samples"] == threads["hot"]["samples"] > 0
    for tower in ("dot", "cross"):
        arguments = [*SMALL, "--hosts", 2, "--bag", 2, "--collective", "hierarchical", "--tower", tower]
        threads = report(*arguments, "--ranks", 4)
        processes = report(*arguments, ranks=4)
        check_prediction(processes)
        for key in "losses auc loss bytes memory".split():
            assert threads[key] == processes[key], (tower, key)
    run(*SMALL, "--save", "model", "--hosts", 2, ranks=4)
    run(*SMALL, "--save", "model2", "--hosts", 2, "--ranks", 4)
    with open("model", "rb") as a, open("model2", "rb") as b:
        assert a.read() == b.read()


def mpi_errors():
    assert run("--sharding", "rows", status=2, ranks=2).count("there is no such policy") == 1
    run("--ranks", 3, status=2, ranks=2, says=["--ranks 3 in a job of 2 processes"])
    run("--hosts", 3, status=2, ranks=2, says=["3 hosts for 2 ranks"])
    lines = click_lines(100, 1).splitlines(keepends=True)
    lines[70] = "2" + lines[70][1:]
    write("bad.tsv", "".join(lines))
    error = run("--data", "bad.tsv", "--batch", 8, status=2, ranks=4)
    assert error.count("bad.tsv, line 71") == 1, error
    error = run("--data", "bad.tsv", "--batch", 8, "--sharding", "tiered", status=2, ranks=4)
    assert error.count("bad.tsv, line 71") == 1, error
    error = run("--data", "bad.tsv", "--sharding", "tiered", "--profile", "bad.tsv", status=2, ranks=4)
    assert error.count("bad.tsv") == 1, error
    error = run(*SMALL, "--sharding", "tiered", "--budget", -1e12, status=2, ranks=4)
    assert error.count("no plan takes as little") == 1, error
    command = [os.environ["MPIEXEC"]]
    for rows in (200, 200, 201, 200):
        command += [*([":"] if len(command) > 1 else []), "-np", "1", sys.argv[1], *map(str, SMALL[:4]), "--rows", str(rows), "--hosts", "2"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 3 and "table 'C1': 200 rows here, 201 on rank 2; " in done.stderr, done.stderr
    assert done.stderr.count("runs another layer") == 1, done.stderr
    run("--help", ranks=2)
    run(*SMALL, "--save", "model", ranks=2)
    for arguments in (["--steps", 12], ["--samples", 192, "--steps", 13]):
        error = run(*SMALL, "--load", "model", "--json", "report.json", *arguments, status=2, ranks=2)
        assert error.count("nothing is left to train") == 1, error
    assert sorted(os.listdir()) == ["bad.tsv", "model"], os.listdir()


main({"help": help_, "auto": auto, "requests": requests, "feature_groups": feature_groups, "replica_groups": replica_groups, "replica_groups_learn": replica_groups_learn,
      "replica_groups_checkpoint": replica_groups_checkpoint, "replica_groups_wrong": replica_groups_wrong, "replica_groups_mpi": replica_groups_mpi, "tiers": tiers, "hot_batches": hot_batches, "tune_cache": tune_cache, "profiled": profiled, "explained": explained, "profile_progress": profile_progress, "profiled_wrong": profiled_wrong, "bad_usage": bad_usage, "deadline": deadline, "bad_data": bad_data, "shardings": shardings, "prefetch": prefetch,
      "sample_order": sample_order, "collectives": collectives, "every_composition": every_composition, "modules": modules, "tower_files": tower_files, "world_sizes": world_sizes, "wires": wires, "checkpoint": checkpoint, "weights_alone": weights_alone, "goes_on": goes_on, "outputs": outputs,
      "progress": progress, "settings": settings, "report": report_, "files": files, "numpy_files": numpy_files, "trace": trace, "mpi": mpi, "mpi_errors": mpi_errors})
