# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from programs import main, run


def runs():
    out = run("--steps", 20, "--explain", says=["forward", "backward (derived)", "row_ranges", "ftrl"])
    last = out.splitlines()[-1]
    assert last.startswith("step    20"), out
    run("--help", says=["--ranks", "--hosts", "--seed", "--steps"])


def bad_usage():
    run("--ranks", 0, status=2, says=["0 ranks"])
    run("--ranks", 4, "--hosts", 3, status=2, says=["3 hosts do not divide 4 ranks"])
    run("--nonsense", status=2, says=["nonsense"])


main({"runs": runs, "bad_usage": bad_usage})
