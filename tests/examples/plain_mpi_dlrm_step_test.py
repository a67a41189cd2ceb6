# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from programs import main, run


def same_bits():
    said = "plain MPI and shardwise gave the same bits"
    run(says=[said])
    run(ranks=3, says=[said, "on 3 ranks"])
    run("--hosts", 2, "--ranks", 4, ranks=4, says=[said])


def bad_usage():
    run("--help", says=["--hosts"])
    run("--hosts", 3, ranks=2, status=2, says=["3 hosts for 2 ranks"])
    run("--ranks", 3, ranks=2, status=2, says=["--ranks 3 in a job of 2 processes"])
    run("--batch", 0, status=2, says=["--batch"])


main({"same_bits": same_bits, "bad_usage": bad_usage})
