# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import os

from programs import main, run

SMALL = ["--steps", 12, "--batch", 16, "--rows", 100, "--dim", 8, "--test-samples", 512]


def help_():
    text = run("--help")
    for part in ("--towers", "--ratio", "--strategy", "--trainings", "--affinity", "--save-affinity", "--out", "--svg", "--steps"):
        assert part in text, part


def runs():
    """Affinities, a tower file and a picture; both strategies, and the better one is kept."""
    text = run(*SMALL, "--towers", 4, "--ratio", 1.5, "--save-affinity", "affinity.json", "--trainings", 2)
    assert "after 12 steps, in pass 1 over the data\n" in text, text
    with open("towers.json", encoding="utf-8") as file:
        written = json.load(file)
    names = [f"C{i + 1}" for i in range(26)]
    assert sorted(sum(written["towers"], [])) == sorted(names)
    sizes = [len(tower) for tower in written["towers"]]
    assert len(sizes) == 4 and max(sizes) <= 1.5 * min(sizes), sizes
    aucs = {line.split()[0]: line.split("AUC ")[1].split()[0] for line in text.splitlines() if "with modules" in line}
    assert set(aucs) == {"coherent", "diverse"}, text
    assert written["strategy"] == max(aucs, key=lambda name: float(aucs[name])) or len(set(aucs.values())) == 1, (aucs, written)
    first, second = written["aucs"]
    assert first != second and abs(float(aucs[written["strategy"]]) - (first + second) / 2) < 1e-4, (aucs, written)
    assert f'{written["strategy"]} is above in ' in text, text
    with open("towers.svg", encoding="utf-8") as file:
        svg = file.read()
    assert svg.startswith("<svg") and svg.endswith("</svg>\n") and all(f">{name}<" in svg for name in names)
    with open("affinity.json", encoding="utf-8") as file:
        affinity = json.load(file)["affinity"]
    assert all(affinity[i][i] == 1 and 0 <= affinity[i][j] == affinity[j][i] <= 1 for i in range(26) for j in range(26))
    # the same from what was saved, without training
    run("--affinity", "affinity.json", "--towers", 4, "--ratio", 1.5, "--strategy", written["strategy"], "--out", "again.json")
    with open("again.json", encoding="utf-8") as file:
        assert json.load(file)["towers"] == written["towers"]
    run("--affinity", "affinity.json", "--towers", 8, says=[])
    text = run("--affinity", "affinity.json", "--towers", 8)
    assert "no split into 8 towers keeps to R = 1" in text, text
    text = run("--steps", 4, "--batch", 4, "--samples", 16, "--test-samples", 0, "--rows", 50, "--dim", 4, "--strategy", "diverse")
    assert "in pass 2 over the data, of samples that it has learnt from: give --test-samples\n" in text, text
    run("--steps", 1, "--batch", 4, "--rows", 50, "--dim", 4, "--towers", 2, "--strategy", "diverse")


def trainings():
    """Each training has its own seed of the weights, on the same data; where strategies do not differ, it says so."""
    run(*SMALL, "--towers", 1, "--strategy", "coherent", "--save-affinity", "affinity.json")
    both = [*SMALL, "--affinity", "affinity.json", "--towers", 1, "--strategy", "both"]

    def aucs(*arguments, says):
        text = run(*both, *arguments, says=[])
        assert says in text, text
        with open("towers.json", encoding="utf-8") as file:
            return json.load(file)["aucs"]

    # one tower: both strategies have the same, so that neither is above
    two = aucs("--seed", 1, "--trainings", 2, says="coherent is above in 0 of 2 trainings: more --trainings would tell")
    assert len(set(two)) == 2, two
    alone = [aucs("--seed", seed, "--data-seed", 1, "--trainings", 1, says="above in 0 of 1")[0] for seed in (1, 2)]
    assert two == alone, (two, alone)
    # without test data, those that decide are of known samples, too
    text = run("--affinity", "affinity.json", "--towers", 2, "--strategy", "both", "--trainings", 1, "--steps", 4, "--batch", 4,
               "--samples", 16, "--test-samples", 0, "--rows", 50, "--dim", 4)
    assert text.count("of samples that it has learnt from: give --test-samples") == 2, text
    run("--affinity", "affinity.json", "--strategy", "both", "--steps", 2, "--batch", 8, "--rows", 50, "--dim", 4, "--test-samples", 1,
        status=2, says=["after 2 steps the AUC is not a number"])


def finds_groups():
    """The groups that generated clicks hide are found again, of any number and seed."""
    for groups, seed in ((4, 2), (8, 3)):
        run("--feature-groups", groups, "--towers", groups, "--data-seed", seed, "--ratio", 2, "--strategy", "coherent", "--rows", 100,
            "--batch", 512, "--steps", 1000, "--samples", 524288)
        with open("towers.json", encoding="utf-8") as file:
            found = json.load(file)["adjusted_rand_index"]
        assert found >= 0.9, (groups, seed, found)


def bad_usage():
    with open("wrong.json", "w", encoding="utf-8") as file:
        json.dump({"affinity": [[1, 2], [2, 1]]}, file)
    for arguments, text in [(["--towers", 0], "--towers 0: give 1 to 26"), (["--towers", 27], "--towers 27: give 1 to 26"),
                            (["--ratio", 0.5], "--ratio 0.5: give at least 1"),
                            (["--strategy", "best"], "--strategy 'best': give one of coherent, diverse, both"),
                            (["--affinity", "nowhere.json"], "nowhere.json: cannot be read"),
                            (["--affinity", "wrong.json"], "wrong.json: has 2 features, and the model 26"),
                            (["--out", "/no/such/folder/t.json"], "/no/such/folder/t.json: cannot be written"),
                            (["--feature-groups", 3, "--data", "x.tsv"], "--feature-groups has no effect with --data"),
                            (["--steps", 0], "--steps 0: give at least 1"), (["--trainings", 0], "--trainings 0: give at least 1"),
                            (["--strategy", "diverse", "--trainings", 5], "--trainings has no effect with one strategy, 'diverse'"), (["--nonsense"], "partition_towers --help")]:
        error = run(*arguments, status=2, says=[text])
        assert error.startswith("partition_towers: ") and len(error.strip().splitlines()) == 1, error
    assert sorted(os.listdir()) == ["wrong.json"], os.listdir()


main({"help": help_, "runs": runs, "trainings": trainings, "finds_groups": finds_groups, "bad_usage": bad_usage})
