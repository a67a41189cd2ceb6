# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of train_dlrm that are killed, interrupted and gone on with: they end with the bits of a run that was not."""

import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from programs import PROGRAM, main, run

FULL = os.environ.get("SHARDWISE_FULL") == "1"
MODEL = ["--rows", 300, "--dim", 8, "--bottom", "16-8", "--top", "16-1", "--batch", 16, "--optimizer", "rowwise_adagrad", "--measure", 0]
RUN = [*MODEL, "--steps", 300, "--samples", 9600, "--epochs", 3, "--test-samples", 64]


def command(*arguments, ranks=None):
    words = [PROGRAM, *map(str, arguments)]
    return words if ranks is None else [os.environ["MPIEXEC"], "-np", str(ranks), *words]


def checkpoints(folder):
    """Steps of the whole checkpoints in a folder."""
    return sorted(int(os.path.basename(path)[5:17]) for path in glob.glob(f"{folder}/step-*.json"))


def model_of(folder):
    """The bytes of the newest checkpoint, as one file."""
    run(*MODEL, "--samples", 640, "--test-samples", 64, "--load", folder, "--steps", 0, "--save", "one.safetensors")
    with open("one.safetensors", "rb") as file:
        return file.read()


def undisturbed(*arguments, ranks=None):
    run(*RUN, *arguments, "--save", "whole", "--save-every", 5, ranks=ranks)
    return model_of("whole")


def processes_below(pid):
    below = [int(p) for p in subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True, check=False).stdout.split()]
    return below + [p for child in below for p in processes_below(child)]


def killed(kills, *arguments, ranks=None):
    """Kills a run again and again, at any moment, and goes on."""
    dice = random.Random(kills)
    expected = undisturbed(*arguments, ranks=ranks)
    begin = time.monotonic()
    run(*RUN, *arguments, "--save", "timed", "--save-every", 5, ranks=ranks)
    takes = time.monotonic() - begin
    gone_on = 0
    done = 0
    turn = 0
    while done < kills:
        folder = f"killed{turn}"
        turn += 1
        for attempt in range(1000):
            on = ["--load", folder] if checkpoints(folder) else []
            gone_on += 1 if on else 0
            with subprocess.Popen(command(*RUN, *arguments, "--save", folder, "--save-every", 5, *on, ranks=ranks),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
                try:
                    # now and then it may come to its end
                    out, err = job.communicate(timeout=dice.uniform(0.02, 0.7) * takes)
                    assert job.returncode == 0 or "nothing is left to train" in err, (job.returncode, out, err)
                    break
                except subprocess.TimeoutExpired:
                    victims = processes_below(job.pid) if ranks else [job.pid]
                    for victim in [dice.choice(victims)] if victims else []:
                        try:
                            os.kill(victim, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                    job.communicate(timeout=60)
                    done += 1
        assert checkpoints(folder)[-1] == 300 and len(checkpoints(folder)) <= 3, checkpoints(folder)  # or killed between two of them
        assert model_of(folder) == expected, (folder, attempt)
    assert gone_on > 0


def killed_threads():
    killed(1000 if FULL else 12, "--ranks", 3)


def killed_mpi():
    killed(300 if FULL else 5, ranks=4)


def wait_for_step(job, least):
    """Reads what a run shows, until it has come so far."""
    for line in job.stderr:
        found = re.match(r"step (\d+)", line)
        if found and int(found.group(1)) >= least:
            return


def interrupted(ranks=None):
    """Each signal, in a step, with and without checkpoints before; then on to the end."""
    flags = ["--ranks", 3] if ranks is None else []
    long = [*MODEL, "--steps", 2500, "--samples", 160000, "--test-samples", 64, *flags]
    run(*long, "--save", "straight/", ranks=ranks)
    expected = model_of("straight")
    for which, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for saves in (["--save-every", 50], []):
            folder = f"{which.name}{len(saves)}/"
            with subprocess.Popen(command(*long, "--save", folder, "--json", "report.json", *saves, ranks=ranks), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as job:
                wait_for_step(job, 300)
                os.kill(job.pid if ranks is None else processes_below(job.pid)[1], which)
                out, err = job.communicate(timeout=60)
            assert job.returncode == status, (job.returncode, out, err)
            assert f"ended by {which.name} after step" in err and "training loss" in out, (out, err)
            with open("report.json", encoding="utf-8") as file:
                report = json.load(file)
            steps = report["steps"]
            assert 300 <= steps < 2500 and report["ended_by"] == which.name and report["saved"]["steps"] == steps, report["steps"]
            assert checkpoints(folder)[-1] == steps and len(report["losses"]) == steps
            run(*long, "--load", folder, "--save", folder, says=[f"continuing from step {steps} of "], ranks=ranks)
            assert model_of(folder) == expected


def interrupted_threads():
    interrupted()


def interrupted_mpi():
    interrupted(ranks=4)


def interrupted_anywhere():
    """At the start, in an evaluation, in a save, and twice: nothing hangs, and a whole checkpoint is there."""
    test = [*MODEL, "--ranks", 2, "--steps", 40, "--samples", 1280, "--epochs", 3, "--test-samples", 3000000]
    with subprocess.Popen(command(*test, "--save", "test/"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        wait_for_step(job, 36)
        time.sleep(0.5)  # in the test behind the first epoch
        job.send_signal(signal.SIGTERM)
        out, err = job.communicate(timeout=60)
    found = re.search(r"ended by SIGTERM after step (\d+): --load test/ goes on from there", err)
    assert job.returncode == 143 and found, (job.returncode, out, err)
    assert checkpoints("test") == [int(found.group(1))]
    with subprocess.Popen(command(*MODEL, "--ranks", 2, "--steps", 100000, "--samples", 6400000), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        wait_for_step(job, 1)
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGTERM)  # at once, unless the run has ended by then
        out, err = job.communicate(timeout=60)
    assert job.returncode in (-signal.SIGTERM, 130, 143), (job.returncode, out, err)
    dice = random.Random(3)
    for moment in [0.0, 0.01] + [dice.uniform(0, 1) for _ in range(200 if FULL else 10)]:
        with subprocess.Popen(command(*RUN, "--ranks", 2, "--save", "anywhere", "--save-every", 1, *(["--load", "anywhere"] if checkpoints("anywhere") else [])),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            time.sleep(moment)
            job.send_signal(signal.SIGINT)
            if moment > 0.9:
                job.send_signal(signal.SIGTERM)
            out, err = job.communicate(timeout=60)
        assert job.returncode in (130, 0, -signal.SIGINT, -signal.SIGTERM) or "nothing is left to train" in err, (job.returncode, out, err)
        if checkpoints("anywhere") and checkpoints("anywhere")[-1] == 300:
            break
    run(*RUN, "--ranks", 2, "--save", "straight/")
    if not checkpoints("anywhere") or checkpoints("anywhere")[-1] != 300:
        run(*RUN, "--ranks", 2, "--save", "anywhere", "--save-every", 1, *(["--load", "anywhere"] if checkpoints("anywhere") else []))
    assert model_of("anywhere") == model_of("straight")


def options():
    """Saves by time, keeps, and is told what makes no sense."""
    run(*MODEL, "--ranks", 2, "--steps", 3000, "--samples", 96000, "--save", "by_time", "--save-every", "0.02s", "--keep", 3)
    assert 1 < len(checkpoints("by_time")) <= 3 and checkpoints("by_time")[-1] == 3000, checkpoints("by_time")
    run(*MODEL, "--ranks", 2, "--steps", 2000000, "--save", "by_time", "--save-every", 5, status=2, says=["holds a checkpoint of step 3000"])
    # converted, and moved, though nothing is trained; bytes are as predicted beside saves
    run(*MODEL, "--samples", 640, "--load", "by_time", "--steps", 0, "--save", "moved/")
    assert checkpoints("moved") == [3000] and model_of("moved") == model_of("by_time")
    run(*MODEL[:-2], "--ranks", 4, "--hosts", 2, "--collective", "hierarchical", "--tower", "dot", "--tower-dim", 8, "--steps", 30, "--samples", 1920, "--save", "towers", "--save-every", 5,
        says=["every byte moved and held was predicted"], never=["PREDICTION IS WRONG"])
    towers = [*MODEL[:-2], "--ranks", 4, "--hosts", 2, "--collective", "hierarchical", "--tower", "dot", "--tower-dim", 8, "--samples", 19200]
    run(*towers, "--steps", 7, "--save", "seven/")
    for every in (5, 7):  # the first save is near, or the step was saved elsewhere
        run(*towers, "--steps", 40, "--load", "seven", "--save", f"on{every}", "--save-every", every,
            says=["every byte moved and held was predicted"], never=["PREDICTION IS WRONG"])
    for arguments, text in [(["--save-every", 5], "--save-every without --save"), (["--save-every", "5parsecs", "--save", "x"], "--save-every '5parsecs'"),
                            (["--save-every", 0, "--save", "x"], "--save-every '0'"), (["--save-every", 2.5, "--save", "x"], "--save-every '2.5'"),
                            (["--save-every", 5, "--save", "x", "--keep", 0], "--keep 0: give at least 1"),
                            (["--load", "no_such"], "no_such: cannot be read: No such file or directory"),
                            (["--save", "/proc/x/"], "/proc/x: cannot be made")]:
        run(*MODEL, *arguments, status=2, says=[text])
    os.mkdir("empty")
    run(*MODEL, "--load", "empty", status=2, says=["empty: has no checkpoint"])


if __name__ == "__main__":
    tests = {"killed_threads": killed_threads, "killed_mpi": killed_mpi, "interrupted_threads": interrupted_threads,
             "interrupted_mpi": interrupted_mpi, "interrupted_anywhere": interrupted_anywhere, "options": options}
    sys.exit(main(tests))
