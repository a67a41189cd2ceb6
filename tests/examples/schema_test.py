# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainers on CSV and TSV files of one's own, with the schemas of examples/schemas, on files in the shapes of theirs."""

import csv
import datetime
import gzip
import json
import os
import random

from programs import main, run

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "schemas")
COMMON = ["--batch", 64, "--dim", 8, "--optimizer", "adam", "--learning-rate", 0.01, "--measure", 4]


def schema(name):
    return os.path.join(SCHEMAS, name + ".json")


def small(name, rows):
    """A schema whose tables have so many rows, in a file of its own."""
    with open(schema(name), encoding="utf-8") as file:
        all_ = json.load(file)
    all_["rows"] = rows
    for column in all_["categorical"]:
        if isinstance(column, dict) and "rows" in column:
            column["rows"] = min(column["rows"], 10 * rows)
    with open(f"{name}.json", "w", encoding="utf-8") as file:
        json.dump(all_, file)
    return f"{name}.json"


def report(*arguments, **keywords):
    """Runs, and returns the JSON report, whose every byte was predicted."""
    run("--json", "report.json", *arguments, **keywords)
    with open("report.json", encoding="utf-8") as file:
        r = json.load(file)
    assert r["bytes"]["predicted"] == r["bytes"]["moved"], r["bytes"]
    assert r["memory"]["predicted"] == r["memory"]["measured"], r["memory"]
    return r


def write(path, rows, **form):
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, **form).writerows(rows)


def avazu(lines, seed):
    """24 columns: id, click, the hour as yymmddhh, and 21 anonymous categories. The site says whether one clicks."""
    dice = random.Random(seed)
    names = ("site_id site_domain site_category app_id app_domain app_category device_id device_ip device_model device_type "
             "device_conn_type C14 C15 C16 C17 C18 C19 C20 C21").split()
    yield ["id", "click", "hour", "C1", "banner_pos", *names]
    for i in range(lines):
        values = [f"{dice.randrange(30):08x}" for _ in names]
        likely = int(values[0], 16) < 15
        yield [10**19 + i, int(dice.random() < (0.9 if likely else 0.1)), f"141021{i * 24 // lines:02d}", 1005, dice.randrange(4), *values]


def frappe(lines, seed):
    """Who uses which app how often, and in which of 8 contexts."""
    dice = random.Random(seed)
    yield "user item cnt daytime weekday isweekend homework cost weather country city".split()
    for _ in range(lines):
        user, item = dice.randrange(50), dice.randrange(80)
        often = dice.random() < (0.9 if item % 2 == 0 else 0.1)
        yield [user, item, dice.randrange(2, 90) if often else 1, dice.choice(["morning", "noon", "evening"]), dice.choice(["monday", "sunday"]),
               dice.choice(["weekend", "workday"]), dice.choice(["home", "work", "unknown"]), dice.choice(["free", "paid"]),
               dice.choice(["sunny", "cloudy", "unknown"]), dice.choice(["United States", "Spain", "unknown"]), dice.randrange(9)]


def talkingdata(lines, seed):
    """Clicks with their times; whether the app was installed then, which is what counts, and when. At night it is."""
    dice = random.Random(seed)
    yield "ip app device os channel click_time attributed_time is_attributed".split()
    for _ in range(lines):
        time = datetime.datetime(2017, 11, 6) + datetime.timedelta(seconds=dice.randrange(4 * 24 * 3600))
        yes = dice.random() < (0.9 if time.hour < 6 else 0.1)
        yield [dice.randrange(300000), dice.randrange(50), 1, dice.randrange(30), dice.randrange(100), time,
               time + datetime.timedelta(hours=1) if yes else "", int(yes)]


def movielens(lines, seed):
    """ratings.csv with title and genres of movies.csv. Everybody likes Westerns."""
    dice = random.Random(seed)
    genres = ["Action", "Comedy", "Drama", "Western", "IMAX"]
    yield "userId movieId rating timestamp title genres".split()
    for _ in range(lines):
        movie = dice.randrange(200)
        of_it = [g for i, g in enumerate(genres) if movie >> i & 1]
        likes = dice.random() < (0.9 if "Western" in of_it else 0.1)
        title = dice.choice(['American President, The (1995)', 'He said "no"', "Two\nlines"])
        yield [dice.randrange(100), movie, dice.choice([4, 4.5, 5]) if likes else dice.choice([0.5, 3, 3.5]), 1256677221 + dice.randrange(10**7),
               title, "|".join(of_it) or "(no genres listed)"]


def avazu_():
    """22 categories, no dense column: no bottom MLP. Plain, gzip, in parts and over ranks it is the same."""
    write("train.csv", avazu(4000, 1))
    write("train.csv.gz", avazu(4000, 1))
    write("test.csv", avazu(1000, 2))
    files = ["--schema", small("avazu", 100), "--test", "test.csv", "--epochs", 6]
    r = report("--data", "train.csv", *files, *COMMON)
    assert r["auc"] > 0.8, r["auc"]
    assert r["config"]["rows"] == [24] + 8 * [100] + 2 * [1000] + 11 * [100], r["config"]["rows"]
    assert r["config"]["schema"] == "avazu.json" and r["config"]["bottom"] == "" and r["samples"] == 6 * 4000
    interaction = 22 * 21 // 2
    assert r["model"]["dense_parameters"] == (interaction + 1) * 128 + 129 * 64 + 65, r["model"]
    packed = report("--data", "train.csv.gz", *files, *COMMON)
    assert packed["losses"] == r["losses"] and packed["auc"] == r["auc"]
    other = report("--data", "train.csv", *files, *COMMON, "--sharding", "mixed", "--no-prefetch")
    assert other["losses"] == r["losses"]
    many, few = (report("--data", "train.csv", *files, *COMMON, "--precision", "wide", *ranks) for ranks in ([], ["--ranks", 1, "--hosts", 1, "--batch", 256]))
    assert max(abs(a - b) for a, b in zip(few["losses"], many["losses"])) < 1e-9
    dcn = report("--data", "train.csv", *files, *COMMON, "--cross-layers", 2, program="train_dcn")
    assert dcn["auc"] > 0.8, dcn["auc"]
    cross = 2 * ((22 * 8) ** 2 + 22 * 8)
    assert dcn["model"]["dense_parameters"] == cross + (22 * 8 + 1) * 128 + 129 * 64 + 65, dcn["model"]
    for policies in (["--collective", "hierarchical", "--tower", "dot"], ["--sharding", "tiered"], ["--requests", "coalesced"],
                     ["--sharding", "tiered", "--tiers", "dp,row", "--hot-batches"]):
        report("--data", "train.csv", "--schema", "avazu.json", "--batch", 16, "--steps", 20, *policies)


def checkpoint():
    """A model without a bottom MLP is saved and loaded: two halves are a whole."""
    write("train.csv", avazu(1000, 1))
    common = ["--data", "train.csv", "--schema", small("avazu", 100), "--batch", 16, "--dim", 4, "--optimizer", "adam"]
    report(*common, "--steps", 12, "--save", "whole.safetensors")
    report(*common, "--steps", 5, "--save", "part.safetensors")
    report(*common, "--steps", 12, "--load", "part.safetensors", "--save", "joined.safetensors")
    with open("whole.safetensors", "rb") as whole, open("joined.safetensors", "rb") as joined:
        bytes_ = whole.read()
        assert bytes_ == joined.read()
    assert b"top.0.weight" in bytes_ and b"bottom.0.weight" not in bytes_ and b"tables/device_ip/weight" in bytes_
    report(*common, "--steps", 12, "--save", "folder/", "--save-every", 4)
    report(*common, "--steps", 14, "--load", "folder")


def frappe_():
    """Tabs, a threshold, values that say that nothing is known; 10 categories."""
    write("train.tsv", frappe(4000, 1), delimiter="\t", lineterminator="\n")
    write("test.tsv", frappe(1000, 2), delimiter="\t", lineterminator="\n")
    r = report("--data", "train.tsv", "--test", "test.tsv", "--schema", small("frappe", 500), "--epochs", 8, *COMMON)
    assert r["auc"] > 0.8 and r["config"]["rows"] == [500] * 10, r["auc"]


def talkingdata_():
    """A column of times gives two features; strings are quoted."""
    write("train.csv", talkingdata(4000, 1), quoting=csv.QUOTE_NONNUMERIC)
    write("plain.csv", talkingdata(4000, 1))
    write("test.csv", talkingdata(1000, 2), quoting=csv.QUOTE_ALL)
    with open("train.csv", encoding="utf-8") as file:
        assert file.readline().startswith('"ip","app"')
    files = ["--schema", small("talkingdata", 500), "--test", "test.csv", "--epochs", 5]
    r = report("--data", "train.csv", *files, *COMMON)
    assert r["auc"] > 0.8 and r["config"]["rows"] == [500] * 5 + [24, 7], (r["auc"], r["config"]["rows"])
    assert report("--data", "plain.csv", *files, *COMMON)["losses"] == r["losses"]


def movielens_():
    """Bags of genres; titles with commas, quotes and line breaks are passed over."""
    write("train.csv", movielens(4000, 1))
    write("test.csv", movielens(1000, 2))
    files = ["--data", "train.csv", "--schema", small("movielens", 500), "--test", "test.csv", "--epochs", 5]
    report(*files, *COMMON, "--sharding", "tiered", "--tiers", "dp,row", "--hot-batches")
    for pooling in ("sum", "mean"):
        r = report(*files, *COMMON, "--pooling", pooling)
        assert r["auc"] > 0.8 and r["config"]["rows"] == [500, 500, 7, 100], (r["auc"], r["config"]["rows"])


def sequences():
    """train_sequence reads the same file: users, items and times."""
    dice = random.Random(1)
    lines = [(user, (dice.randrange(20) + 7 * i) % 40, time) for user in range(60) for i, time in enumerate(sorted(dice.sample(range(10**6), 12)))]
    dice.shuffle(lines)
    write("ratings.csv", [["userId", "movieId", "rating", "timestamp"]] + [[user, item, 3, time] for user, item, time in lines])
    common = ["--history", 8, "--dim", 8, "--top", "8-1", "--batch", 16, "--steps", 8]
    r = report("--data", "ratings.csv", "--schema", schema("movielens"), *common, program="train_sequence")
    assert r["config"]["rows"] == [40] and r["config"]["schema"] == schema("movielens") and len(r["losses"]) == 8
    with open("order.txt", "w", encoding="utf-8") as file:  # users in the order of their first times, as they come
        file.writelines(f"{user} {item}\n" for user, item, _ in sorted(lines, key=lambda line: line[2]))
    plain = report("--data", "order.txt", *common, program="train_sequence")
    assert plain["losses"] == r["losses"] and plain["auc"] == r["auc"]
    for arguments, text in [
            (["--schema", schema("movielens")], "without --data"),
            (["--data", "ratings.csv", "--schema", schema("avazu")], "avazu.json: key 'history' is missing"),
            (["--data", "ratings.csv", "--schema", schema("movielens"), "--rows", 5], "expected an item, a whole number from 0 to 4")]:
        error = run(*arguments, status=2, says=[text], program="train_sequence")
        assert len(error.strip().splitlines()) == 1, error


def predicts():
    """infer_dlrm gives the probabilities of the model that was trained; the checkpoint says the rows."""
    write("train.csv", avazu(1000, 1))
    write("bags.csv", movielens(600, 1))
    for data, name in (("train.csv", small("avazu", 100)), ("bags.csv", small("movielens", 100))):
        common = ["--data", data, "--schema", name, "--dim", 4]
        run(*common, "--rows", 70, "--batch", 16, "--epochs", 3, "--save", "model.safetensors")
        for bound in (0, 2):
            run("--data", data, "--schema", name, "--load", "model.safetensors", "--batch", 16, "--bound", bound, "--out", f"{bound}.txt",
                program="infer_dlrm")
        with open("0.txt", encoding="ascii") as first, open("2.txt", encoding="ascii") as second:
            lines = first.readlines()
            assert lines == second.readlines() and len(lines) == (1000 if data == "train.csv" else 600)
        labels = [line.split(",") for line in open(data, encoding="utf-8")][1:] if data == "train.csv" else None
        if labels:
            clicked = [float(line.split()[1]) for line, label in zip(lines, labels) if label[1] == "1"]
            others = [float(line.split()[1]) for line, label in zip(lines, labels) if label[1] == "0"]
            assert sum(clicked) / len(clicked) > sum(others) / len(others) + 0.05
        run(*common, "--batch", 16, "--batches", 3, program="infer_dlrm")
    for arguments, text in [
            (["--schema", "avazu.json"], "--schema avazu.json without --data"),
            (["--data", "train.csv", "--schema", "avazu.json", "--load", "model.safetensors"], "has no table 'hour': it is a checkpoint of other tables than "
                                                                                              "those of avazu.json"),
            (["--data", "train.csv", "--schema", "avazu.json", "--bottom", "8-4"], "--bottom has no effect: avazu.json has no dense columns"),
            (["--data", "bags.csv", "--schema", "movielens.json", "--load", "model.safetensors", "--rows", 7], "--rows has no effect: model.safetensors")]:
        run(*arguments, status=2, says=[text], program="infer_dlrm")


def schemas():
    """Each schema as it is kept fits its file."""
    for name, make, form in (("avazu", avazu, {}), ("frappe", frappe, {"delimiter": "\t"}), ("talkingdata", talkingdata, {}),
                             ("movielens", movielens, {})):
        write("train", make(64, 1), **form)
        r = report("--data", "train", "--schema", schema(name), "--batch", 8, "--dim", 1, "--top", "4-1",
                   "--optimizer", "sgd", "--steps", 2)
        assert r["config"]["schema"] == schema(name)


def dense():
    """Dense columns have a bottom MLP; --rows is for tables of which the schema says none."""
    dice = random.Random(1)
    rows = [["y", "x", "n", "a", "b"]]
    for _ in range(2000):
        x = dice.random()
        rows.append([int(dice.random() < x), f"{x:.3f}", dice.choice(["", 5, 900]), dice.randrange(9), dice.randrange(9)])
    write("train.csv", rows)
    with open("s.json", "w", encoding="utf-8") as file:
        json.dump({"label": "y", "dense": ["x", {"column": "n", "transform": "log1p"}], "categorical": ["a", {"column": "b", "rows": 9, "ids": "row"}]}, file)
    r = report("--data", "train.csv", "--test", "train.csv", "--schema", "s.json", "--rows", 50, "--epochs", 5, *COMMON, "--bottom", "16-8", "--top", "8-1")
    assert r["config"]["rows"] == [50, 9] and r["config"]["bottom"] == "16-8", r["config"]
    assert r["auc"] > 0.77, r["auc"]  # 5/6 is the best
    assert r["model"]["dense_parameters"] == (2 * 16 + 16 + 16 * 8 + 8) + ((8 + 3) * 8 + 8 + 9), r["model"]


def bad_usage():
    write("train.csv", avazu(100, 1))
    write("wrong.csv", [*list(avazu(50, 1)), ["1", "yes", *[0] * 22]])
    small("avazu", 100)
    with open("typo.json", "w", encoding="utf-8") as file:
        file.write('{"label": "click", "rows": 5, "categorical": ["C1", {"colunm": "C2"}]}')
    with open("full.json", "w", encoding="utf-8") as file:
        file.write('{"label": "click", "ignore": "others", "categorical": [{"column": "C1", "rows": 5}]}')
    data = ["--data", "train.csv", "--schema", "avazu.json"]
    for arguments, text in [
            (["--schema", "avazu.json"], "--schema avazu.json without --data"),
            (["--data", "train.csv", "--schema", "nowhere.json"], "nowhere.json: cannot be read"),
            (["--data", "train.csv", "--schema", "typo.json"], "typo.json, entry 2 of 'categorical': there is no key 'colunm'; give one of column, name"),
            (["--data", "train.csv", "--schema", "full.json", "--rows", 7], "--rows has no effect: full.json says the rows of every table"),
            (["--data", "train.csv", "--schema", "full.json"], "1 embedding and no dense features: nothing meets it"),
            ([*data, "--rows", "7,8"], "--rows: 2 numbers; with --schema give one"),
            ([*data, "--bottom", "64-16"], "--bottom has no effect: avazu.json has no dense columns"),
            ([*data, "--bag", 3], "--bag has no effect with --data"),
            (["--data", "wrong.csv", "--schema", "avazu.json"], "wrong.csv, line 52: column 2 (click): 'yes', expected a label of 0 or 1"),
            (["--data", "train.csv", "--schema", schema("frappe")], "train.csv, line 1: there is no column 'cnt'; the columns are")]:
        error = run(*arguments, status=2, says=[text])
        assert len(error.strip().splitlines()) == 1, error


def mpi():
    write("train.csv", movielens(1000, 1))
    files = ["--data", "train.csv", "--schema", small("movielens", 100), "--hosts", 2, "--batch", 16]
    threads = report(*files, "--ranks", 4)
    processes = report(*files, ranks=4)
    assert threads["losses"] == processes["losses"]


main({"avazu": avazu_, "checkpoint": checkpoint, "frappe": frappe_, "talkingdata": talkingdata_, "movielens": movielens_,
      "predicts": predicts, "schemas": schemas, "sequences": sequences, "dense": dense, "bad_usage": bad_usage, "mpi": mpi})
