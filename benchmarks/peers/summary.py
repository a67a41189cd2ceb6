# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compare.py makes of its turns: of every measure and shape, each peer at its fastest release."""

import statistics
from collections import Counter
from typing import NamedTuple

from releases import PEERS
from turns import MEASURES, Sharded, to_json

# A turn that has a processor for less of the time was disturbed.
QUIET = 0.9


class Measured(NamedTuple):
    """One turn of one round."""

    turn: tuple
    ours: dict    # milliseconds by measure
    theirs: dict  # by FBGEMM's release, peer and measure: milliseconds, or a text that says why not
    busy: float   # what part of the time had a processor


def quartiles(values):
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return low, high


def of_release(rounds, what, release, peer):
    """What one release of a peer took: {"ms", "rounds", "ratio", "low", "high"}, {"left_out"}, or None where it was not there."""
    pairs = [(one.ours[what], one.theirs[release][peer][what]) for one in rounds
             if what in one.ours and what in one.theirs.get(release, {}).get(peer, {})]
    if not pairs:
        return None
    if isinstance(pairs[0][1], str):
        return {"left_out": pairs[0][1]}
    low, high = quartiles([b / a for a, b in pairs])
    times = [b for _, b in pairs]
    own = statistics.median([one.ours[what] for one in rounds if what in one.ours])
    return {"ms": statistics.median(times), "rounds": times, "ratio": statistics.median(times) / own, "low": low, "high": high}


def summarize(measured, releases):
    """A record a turn and measure: medians, and by peer the ratio of medians with the quartiles of the rounds' ratios.

    A peer is its fastest release, by the median; `releases` of its entry has them all, by the peer's own version.
    """
    records = []
    for turn in dict.fromkeys(one.turn for one in measured):
        rounds = [one for one in measured if one.turn == turn]
        for what in dict.fromkeys(what for one in rounds for what in one.ours):
            own = [one.ours[what] for one in rounds if what in one.ours]
            low, high = quartiles(own)
            record = {"what": what, "turn": to_json(turn), "text": turn.text(), "ms": statistics.median(own), "low": low, "high": high,
                      "rounds": own, "busy": None if isinstance(turn, Sharded) else min(one.busy for one in rounds), "peers": {}}
            for peer in PEERS:
                all_of = {release.version(peer): of_release(rounds, what, release.fbgemm, peer) for release in releases}
                all_of = {version: one for version, one in all_of.items() if one}
                there = [version for version, one in all_of.items() if "ms" in one]
                if there:
                    fastest = min(there, key=lambda version: all_of[version]["ms"])
                    record["peers"][peer] = {"release": fastest, **all_of[fastest], "releases": all_of}
                elif all_of:
                    record["peers"][peer] = {**next(iter(all_of.values())), "releases": all_of}
            records.append(record)
    return sorted(records, key=lambda one: MEASURES.index(one["what"]))


def table(records):
    """Markdown: a row a record. `times`: how many times as long as shardwise the peer takes."""
    lines = [["", "", "shardwise ms"] + [text for peer in PEERS for text in (f"{peer} ms", "release", "times", "quartiles")]]
    lines.append(["---"] * len(lines[0]))
    for one in records:
        line = [one["what"], one["text"], f"{one['ms']:.2f}"]
        for peer in PEERS:
            p = one["peers"].get(peer, {"left_out": ""})
            line += ([p["left_out"], "", "", ""] if "left_out" in p else
                     [f"{p['ms']:.2f}", p["release"], f"{p['ratio']:.2f}", f"{p['low']:.2f} to {p['high']:.2f}" if len(p["rounds"]) > 1 else ""])
        lines.append(line)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def fastest(records):
    """A line a measure and peer: which releases were the fastest in how many of the shapes."""
    lines = []
    for what in MEASURES:
        for peer in PEERS:
            found = Counter(one["peers"][peer]["release"] for one in records
                            if one["what"] == what and "release" in one["peers"].get(peer, {}))
            if found:
                releases = ", ".join(f"{version} ({count})" for version, count in found.most_common())
                lines.append(f"{what}: {peer} was fastest as {releases}\n")
    return "".join(lines)


def not_there(missing):
    """A sentence for each reason. `missing`: by release and peer, why."""
    lines = []
    for release, peers in missing.items():
        why = {}
        for peer, reason in peers.items():
            why.setdefault(reason, []).append(f"{peer} {release.version(peer)}")
        lines += [f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} not there: {reason}" for reason, names in why.items()]
    return lines


def remarks(records, missing, failed):
    """What was disturbed, is not there, or failed: a sentence each. `missing`: by release and peer, why."""
    lines = []
    waited = dict.fromkeys(one["text"] for one in records if one["busy"] is not None and one["busy"] < QUIET)
    if waited:
        lines.append(f"Other programs held the processor more than {1 - QUIET:.0%} of a turn, so do not trust: {'; '.join(waited)}.")
    lines += not_there(missing)
    lines += [f"Not measured: {sentence}" for sentence in dict.fromkeys(failed)]
    return "".join(f"\n{line}\n" for line in lines)
