# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulated platform and the replay have the times of their formulas: G ranks on hosts of R, V bytes a rank, to all."""

import os
import sys
import tempfile

import sweep

BUILD = sys.argv[1]

for cluster, nv, nic in (("A100", 300e9, 25e9), ("H100", 450e9, 50e9)):
    for hosts in (2, 4):
        ranks, a_host = hosts * sweep.RANKS_A_HOST, sweep.RANKS_A_HOST
        part = 1_000_000  # bytes a pair
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "schedule")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{ranks} 1\nvectors\n")
                for rank in range(ranks):
                    file.write(" ".join(str(0 if to == rank else part) for to in range(ranks)) + "\n")
            across, inside = ranks - a_host, a_host - 1
            expected = {"post": across * part / nic + 5e-6,  # both ports at once: that across is the slower one
                        "pair": across * (part / nic + 5e-6) + inside * (part / nv + 2e-6)}
            for order, seconds in expected.items():
                found = sweep.simulate(BUILD, folder, sweep.CLUSTERS[cluster], hosts, path, order, 0.0, 0)["vectors"] * 1e-6
                assert abs(found - seconds) < 0.01 * seconds, (cluster, hosts, order, found, seconds)
            overhead = sweep.simulate(BUILD, folder, sweep.CLUSTERS[cluster], hosts, path, "pair", 5e-6, 0)["vectors"] * 1e-6
            assert overhead > expected["pair"] + 0.9 * (ranks - 1) * 5e-6, (overhead, expected)
