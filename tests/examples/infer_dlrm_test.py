# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""infer_dlrm: the same predictions however far apart ranks may be, and what it says of a run."""

import json
import os
import random
import signal
import subprocess
import sys
import time

from programs import PROGRAM, main, run, shown_on_terminal

SMALL = ["--batch", 16, "--batches", 12, "--warmup", 2, "--runs", 1, "--rows", 300, "--dim", 8]


def predictions(*arguments, **keywords):
    """Runs, and returns the text of --out, whose lines are numbered."""
    run(*arguments, "--out", "out.txt", **keywords)
    with open("out.txt", encoding="ascii") as file:
        text = file.read()
    numbers = [line.split() for line in text.splitlines()]
    assert [int(n) for n, _ in numbers] == list(range(len(numbers))), "samples are out of order"
    assert all(0 < float(p) < 1 for _, p in numbers)
    return text


def report(*arguments, **keywords):
    run(*arguments, "--json", "report.json", **keywords)
    with open("report.json", encoding="utf-8") as file:
        return json.load(file)


def click_lines(count, seed):
    """Lines of Criteo's form, some values missing; clicks have to do with the first columns."""
    dice = random.Random(seed)
    lines = []
    for _ in range(count):
        dense = [dice.randrange(100) if dice.random() > 0.1 else "" for _ in range(13)]
        ids = [f"{dice.randrange(40):08x}" if dice.random() > 0.1 else "" for _ in range(26)]
        hot = (dense[0] or 0) > 50 and ids[0] != "" and int(ids[0], 16) % 2 == 0
        label = int(dice.random() < (0.8 if hot else 0.2))
        lines.append("\t".join(map(str, [label, *dense, *ids])) + "\n")
    return "".join(lines)


def help_():
    text = run("--help")
    for part in ("bounded lag", "--bound", "--ids", "--serve", "--progress", "--transport", "--delay", "--skew", "--load", "--out",
                 "--explain", "--json", "--trace", "Exit status"):
        assert part in text, part


VARIANTS = [["--bound", 0], ["--bound", 1], ["--bound", 3, "--serve", "each"], ["--bound", 8, "--progress", "thread"],
            ["--bound", 2, "--serve", "each", "--progress", "thread", "--delay", "uniform:0:2ms"], ["--ids", "owner"],
            ["--ids", "owner", "--bound", 1, "--delay", "exponential:500us"], ["--ids", "owner", "--bound", 8],
            ["--bound", 1, "--delay", "constant:3ms@1"], ["--bound", 2, "--transport", "messages"],
            ["--ids", "owner", "--bound", 2, "--transport", "messages", "--delay", "uniform:0:1ms"],
            ["--ids", "owner", "--transport", "rounds"], ["--hosts", 2, "--bound", 4]]


def same_out():
    """Bit by bit, with every way to be apart."""
    for model in (["--skew", 6], ["--bag", 4, "--pooling", "mean"], ["--sharding", "row", "--wire", "bf16"], ["--sharding", "col"]):
        expected = predictions(*SMALL, *model, "--transport", "rounds")
        assert len(expected.splitlines()) == 4 * 12 * 16
        for variant in VARIANTS:
            assert predictions(*SMALL, *model, *variant) == expected, (model, variant)
    # rows that come home one by one: a mean taken there has the bits of one taken where they lie
    expected = predictions(*SMALL, "--bag", 4, "--pooling", "mean", "--transport", "rounds")
    for variant in [["--transport", "rounds"], *VARIANTS]:
        if "owner" not in variant:
            assert predictions(*SMALL, "--bag", 4, "--pooling", "none", *variant) == expected, variant


def same_out_mpi():
    for ranks in (2, 3):
        expected = predictions(*SMALL, "--ranks", ranks, "--transport", "rounds")
        for variant in (["--transport", "rounds"], ["--bound", 2, "--hosts", 1], ["--bound", 1, "--hosts", ranks],
                        ["--bound", 1, "--hosts", ranks, "--progress", "thread", "--delay", "uniform:0:1ms"],
                        ["--bound", 4, "--progress", "thread", "--serve", "each", "--hosts", 1],
                        ["--ids", "owner", "--bound", 1, "--hosts", ranks], ["--ids", "owner", "--bound", 2, "--transport", "messages"],
                        ["--bound", 1, "--transport", "messages", "--serve", "each"]):
            assert predictions(*SMALL, *variant, ranks=ranks) == expected, (ranks, variant)


def report_():
    for variant in ([], ["--ids", "owner"], ["--serve", "each", "--progress", "thread"]):
        by_bound = {}
        for bound in (0, 2):
            r = report(*SMALL, "--runs", 3, "--bound", bound, "--delay", "uniform:0:2ms", *variant)
            assert r["bound"] == bound and r["runs"] == 3 and r["batches"] == 12 and len(r["by_rank"]) == 4
            assert r["two_sided_messages"] == 0, "from first start to drain nothing travels but what is put"
            assert r["lag_max"] <= bound + 1 or r["serve"] == "each", r["lag_max"]
            for rank in r["by_rank"]:
                stages = rank["stages_ms"]
                mean = sum(rank["iteration_ms"]) / 3
                assert set(stages) == {"delay", "start", "bottom", "exchange", "top"} and len(rank["iteration_ms"]) == 3
                assert 0.9 * mean <= sum(stages.values()) <= 1.01 * mean, rank
                assert rank["memory"]["static"] > 0 and rank["memory"]["dynamic"] > 0
            iterations = [x for rank in r["by_rank"] for x in rank["iteration_ms"]]
            assert abs(r["iteration_ms"]["mean"] - sum(iterations) / 12) < 1e-9
            by_run = [sum(1e3 / rank["iteration_ms"][i] for rank in r["by_rank"]) for i in range(3)]
            assert abs(r["throughput"]["mean"] - sum(by_run) / 3) < 1e-6 and r["throughput"]["interval_95"] > 0
            assert abs(r["samples_per_second"] / r["throughput"]["mean"] - 16) < 1e-9
            waits = [rank["stages_ms"]["delay"] + rank["stages_ms"]["exchange"] for rank in r["by_rank"]]
            assert abs(r["delay_ms_per_batch"]["mean"] - sum(waits) / 4) < 1e-9
            by_bound[bound] = r
        for a, b in zip(by_bound[0]["by_rank"], by_bound[2]["by_rank"]):
            slots = 3 if variant != ["--ids", "owner"] else 6 / 2
            assert b["memory"]["slots"] == slots * a["memory"]["slots"], "each k more takes as much as the first"
            # drains put nothing but a tag: the same bytes a batch
            assert a["bytes_per_batch"] == b["bytes_per_batch"] > 0, (a, b)


def loads():
    with open("clicks.tsv", "w", encoding="ascii") as file:
        file.write(click_lines(700, 1))
    train = os.path.join(os.path.dirname(PROGRAM), "train_dlrm")
    done = subprocess.run([train, "--data", "clicks.tsv", "--batch", "8", "--epochs", "6", "--rows", "50", "--dim", "4", "--top", "16-1",
                           "--bottom", "8-4", "--optimizer", "adagrad", "--sharding", "row", "--learning-rate", "0.05", "--save",
                           "model.safetensors"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    model = ["--load", "model.safetensors", "--data", "clicks.tsv", "--batch", 32, "--runs", 1]
    texts = [predictions(*model, *variant) for variant in (["--ranks", 1], ["--ranks", 1, "--bound", 4], ["--ranks", 4, "--bound", 1],
                                                            ["--ranks", 3, "--ids", "owner", "--bound", 2])]
    assert texts[0] == texts[1] and len(texts[0].splitlines()) == 700
    values = [[float(line.split()[1]) for line in text.splitlines()] for text in texts]
    for other in values[2:]:  # of batches of other sizes, and sums of other parts
        assert max(abs(a - b) for a, b in zip(values[0], other)) < 1e-5
    with open("clicks.tsv", encoding="ascii") as file:
        labels = [int(line[0]) for line in file]
    clicked = [p for p, label in zip(values[0], labels) if label]
    others = [p for p, label in zip(values[0], labels) if not label]
    auc = sum((a > b) + 0.5 * (a == b) for a in clicked for b in others) / len(clicked) / len(others)
    assert auc > 0.7, f"{auc}: these are no predictions of what was learnt"
    run(*model, "--rows", 50, "--dim", 4, "--bottom", "8-4", "--top", "16-1")
    for flags, text in [(["--rows", 51], "--rows 51,51,"), (["--dim", 8], "--dim 8, and model.safetensors has 4: leave it out, or load another file"),
                        (["--top", "8-1"], "--top 8-1, and model.safetensors has 16-1"),
                        (["--bottom", "4"], "--bottom 4, and model.safetensors has 8-4"),
                        (["--batches", 30], "--batches 30 of 32 samples for 4 ranks, and the data has 700 samples")]:
        run(*model, *flags, status=2, says=[text])
    with open("model.safetensors", "rb") as file:
        data = file.read()
    with open("short.safetensors", "wb") as file:
        file.write(data[:-7])
    run("--load", "short.safetensors", status=2, says=["short.safetensors"])
    run("--load", "missing.safetensors", status=2, says=["missing.safetensors"])
    dcn = os.path.join(os.path.dirname(PROGRAM), "train_dcn")
    subprocess.run([dcn, "--steps", "1", "--rows", "20", "--dim", "4", "--bottom", "4", "--save", "dcn.safetensors"], check=True, capture_output=True)
    run("--load", "dcn.safetensors", status=2, says=["so its model is no DLRM without modules of towers"])
    sequence = os.path.join(os.path.dirname(PROGRAM), "train_sequence")
    subprocess.run([sequence, "--steps", "1", "--save", "sequence.safetensors"], check=True, capture_output=True)
    run("--load", "sequence.safetensors", status=2, says=["has no table 'C1'"])


def outputs():
    text = run(*SMALL, "--explain", "--bound", 1)
    for part in ("Split<table>", "Exchange<World, Ids>", "one round", "slots with k = "):
        assert part in text, text
    assert "OwnerSplit<table>" in run(*SMALL, "--explain", "--ids", "owner")
    run(*SMALL, "--trace", "trace.json", "--bound", 2, "--delay", "uniform:0:1ms")
    with open("trace.json", encoding="utf-8") as file:
        names = [event.get("name", "") for event in json.load(file)["traceEvents"]]
    for part in ("bottom MLP", "interaction and top MLP", "delay", "Exchange<World, Vectors, fp32>"):
        assert any(part in name for name in names), (part, sorted(set(names)))
    assert sum(name == "delay" for name in names) == 4 * 12, "the last run alone"
    shown, out = shown_on_terminal(PROGRAM, *map(str, SMALL), "--delay", "constant:60ms")
    assert b"run 1 of 1: batch" in shown and b"s left" in shown and b"samples/s" in shown, shown
    assert "samples/s" in out


def overlaps():
    """What goes on while a batch is exchanged, seen in traces (Bounded lag, Table I)."""
    for flags, bound in ((["--transport", "rounds"], 0), ([], 0), (["--ids", "owner"], 0), (["--ids", "owner"], 1), ([], 2),
                         (["--serve", "each", "--progress", "thread"], 1), (["--ids", "owner", "--transport", "messages"], 2)):
        run(*SMALL, *flags, "--bound", bound, "--delay", "uniform:0:2ms", "--trace", "trace.json")
        with open("trace.json", encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["cat"] in ("compute", "pack", "wait")]
        own = [e for e in events if "MLP" in e["name"] or e["name"] == "delay"]  # not what answers others
        lags = []
        for rank in range(4):
            mine = [e for e in events if e["tid"] == rank]
            first = min(e["args"]["flight"] for e in mine if e["name"] == "bottom MLP")
            begin = {e["args"]["flight"]: e["ts"] for e in sorted(mine, key=lambda e: -e["ts"])
                     if e["cat"] == "pack" and e["args"].get("moved_bytes", 0) > 0 and ("Ids" in e["name"] or "Answers" in e["name"])}
            end = {e["args"]["flight"]: e["ts"] for e in mine if e["name"] == "interaction and top MLP"}
            for flight in range(first, first + 12):
                inside = [e for e in own if e["tid"] == rank and begin[flight] < e["ts"] < end[flight]]
                same = [e["name"] for e in inside if e["args"]["flight"] == flight]
                assert same == ["bottom MLP"], (flags, bound, same)  # computes while it exchanges, of the same batch
                others = {e["args"]["flight"] for e in inside} - {flight}
                exchanges = [other for other in begin if begin[flight] < begin[other] < end[flight] and other >= first]
                lags.append((len(others), len(exchanges)))
        if bound == 0:
            assert all(computed == 0 and exchanged == 0 for computed, exchanged in lags), (flags, lags)
        else:  # computes, and exchanges, other batches meanwhile
            assert max(exchanged for _, exchanged in lags) == bound, (flags, bound, lags)
            assert max(computed for computed, _ in lags) >= bound, (flags, bound, lags)


def bad_usage():
    for arguments, text in [(["--bound", -1], "--bound -1: give at least 0"), (["--ids", "here"], "--ids 'here': give sample or owner"),
                            (["--serve", "all"], "--serve 'all': give together or each"), (["--progress", "gpu"], "--progress 'gpu'"),
                            (["--ids", "owner", "--pooling", "none"], "--pooling none with --ids owner, which sums at the owner"),
                            (["--transport", "udp"], "--transport 'udp': give slots or messages or rounds"),
                            (["--transport", "rounds", "--bound", 1], "--bound 1 with --transport rounds, where ranks go step by step"),
                            (["--transport", "rounds", "--serve", "each"], "--serve has no effect with --transport rounds"),
                            (["--ids", "owner", "--progress", "calls"], "--progress has no effect with --ids owner, where nobody asks"),
                            (["--transport", "messages", "--progress", "thread"], "whose slots are of one thread"),
                            (["--delay", "10ms"], "--delay '10ms': give uniform:0:10ms, exponential:2ms or constant:5ms"),
                            (["--delay", "uniform:3ms:1ms"], "--delay 'uniform:3ms:1ms'"), (["--delay", "constant:5"], "--delay 'constant:5'"),
                            (["--delay", "uniform:0:1e300s"], "--delay 'uniform:0:1e300s'"), (["--deadline", "inf"], "--deadline inf"),
                            (["--batch", 4611686018427387904], "--batch 4611686018427387904: give at most 250000000"),
                            (["--delay", "constant:5ms@x"], "--delay 'constant:5ms@x'"),
                            (["--delay", "constant:5ms@4"], "--delay constant:5ms@4: there are ranks 0 to 3"),
                            (["--runs", 0], "--runs 0: give at least 1"), (["--batches", 0], "--batches 0: give at least 1"),
                            (["--skew", 0], "--skew 0: give at least 1"), (["--bag", 3, "--skew", 3], "--bag and --skew: give one of the two"),
                            (["--rows", "3,4"], "--rows 3,4: give one number, or 26"), (["--dim", 0], "--dim 0: give at least 1"),
                            (["--bottom", "8-5"], "its last width is the dimension of the embeddings"),
                            (["--sharding", "dp"], "--sharding 'dp': give table or row or col"),
                            (["--data", "missing.tsv"], "missing.tsv"), (["--data", "missing.tsv", "--skew", 2], "--skew has no effect with --data"),
                            (["--bound", 2000000000], "a lag of 2000000000 batches: give a number from 0 to "),
                            (["--bound", 500000000, "--batches", 1], "and there is not so much memory: give a smaller lag"),
                            (["--hosts", 3], "3"), (["--out", "no/such/folder/x"], "no/such/folder"), (["--nonsense"], "infer_dlrm --help shows all options")]:
        error = run(*SMALL[:-4], *arguments, status=2, says=[text])
        assert error.startswith("infer_dlrm: ") and len(error.strip().splitlines()) == 1, error


def bad_usage_mpi():
    for arguments, text in [(["--bound", -1], "--bound -1"), (["--ranks", 3], "leave it out under mpirun"), (["--data", "missing.tsv"], "missing.tsv"),
                            (["--bound", 500000000, "--hosts", 1], "give a smaller lag")]:
        error = run(*SMALL, *arguments, status=2, says=[text], ranks=2)
        assert error.count(text) == 1, error


def a_rank_dies():
    """Killed in the middle of a run: all end, and soon."""
    command = [os.environ["MPIEXEC"], "-np", "3", PROGRAM, *map(str, SMALL), "--batches", "100000", "--bound", "1", "--deadline", "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        time.sleep(3)
        children = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(job.pid)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()]
        assert len(children) == 3, children
        begin = time.monotonic()
        os.kill(children[1], signal.SIGKILL)
        job.communicate(timeout=60)
        assert job.returncode != 0 and time.monotonic() - begin < 40


def deadline():
    """One rank is late beyond all patience: the others say whom they wait for."""
    for variant in ([], ["--ids", "owner"], ["--transport", "messages"]):
        run(*SMALL, "--delay", "constant:2s@2", "--deadline", 0.5, *variant, status=3, says=["waited 500 ms", "bounded lag: "])


if __name__ == "__main__":
    tests = {"help": help_, "same_out": same_out, "same_out_mpi": same_out_mpi, "report": report_, "loads": loads, "outputs": outputs, "overlaps": overlaps,
             "bad_usage": bad_usage, "bad_usage_mpi": bad_usage_mpi, "a_rank_dies": a_rank_dies, "deadline": deadline}
    sys.exit(main(tests))
