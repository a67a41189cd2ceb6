# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The test of Mann and Whitney against splits counted one by one."""

import itertools

from tower_study import mann_whitney


def counted(a, b):
    values = sorted(a + b)

    def u(first):
        rest = [v for v in values if v not in first]
        return sum(x > y for x in first for y in rest)

    middle = len(a) * len(b) / 2
    found = abs(u(a) - middle)
    splits = [abs(u(split) - middle) for split in itertools.combinations(values, len(a))]
    return sum(s >= found for s in splits) / len(splits)


assert abs(mann_whitney(range(9), range(9, 18)) - 2 / 48620) < 1e-12
for a, b in (([1, 2, 3], [4, 5, 6]), ([1, 5, 6, 9], [2, 3, 7, 8, 10]), ([1, 2, 4, 9], [3, 5, 6]), ([4], [1, 2, 3, 5])):
    assert abs(mann_whitney(a, b) - counted(a, b)) < 1e-12, (a, b, mann_whitney(a, b), counted(a, b))
    assert mann_whitney(a, b) == mann_whitney(b, a)
