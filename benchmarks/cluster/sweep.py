#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulates the exchanges of a training step on clusters of 8 GPUs a host, and prints a table of Markdown.

    cmake --preset simgrid && cmake --build --preset simgrid --target exchange_schedule replay_smpi
    benchmarks/cluster/sweep.py --json sweep.json

For each cluster, number of hosts and composition, exchange_schedule writes the rounds of a step as the library's cost reader
predicts them, and replay sends them over SimGrid's SMPI. The model is the DLRM of Disaggregated Multi-Tower: 26 features of 128
columns, 16384 samples a rank. Tables are cut into whichever number of blocks of columns the cost reader finds fastest, with modules
into one a rank of their tower. Products take a quarter of a GPU's peak, as measured nowhere: they only say how much of a step exchanges may be.

With --mpi nothing is simulated: the rounds of 4 ranks go over Open MPI on this machine, as 1, 2 and 4 hosts, for several
numbers of samples. Its "hosts" share memory, so that nothing is gained by crossing them less; it shows what relays cost.

pair: one partner after the other, as collectives work that go pair by pair; post: everything at once, an ideal network.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# GB/s a GPU inside a host and across, and TFLOP/s.
CLUSTERS = {"A100": {"host": 300, "cross_host": 25, "peak": 156}, "H100": {"host": 450, "cross_host": 50, "peak": 989}}
FLAT = ["flat/table", "flat/col", "flat/col2", "flat/col4", "flat/col8", "flat/col16"]
HIERARCHICAL = ["hierarchical/table", "hierarchical/col", "hierarchical/col4", "hierarchical/col8", "hierarchical/col16"]
RANKS_A_HOST = 8
BATCH = 16384
PEAK_SHARE = 0.25
DENSE_BYTES = 4 * 2_400_000  # gradients of the dense part

ROWS = [("flat", FLAT, 1), ("Hierarchical", HIERARCHICAL, 1), ("Hierarchical, modules / 2", ["modules/col"], 2),
        ("Hierarchical, modules / 4", ["modules/col"], 4), ("Hierarchical, modules / 8", ["modules/col"], 8)]


def platform(hosts, host, cross_host):
    """A network of full bisection, as XML: one zone a host, each GPU with a port inside and one across."""
    out = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
           '<platform version="4.1">', '<zone id="world" routing="Full">']
    for h in range(hosts):
        out.append(f'<zone id="h{h}" routing="Full">')
        out += [f'<host id="h{h}g{g}" speed="1Gf"/>' for g in range(RANKS_A_HOST)]
        for g in range(RANKS_A_HOST):  # a path has two ports: half of the latency each
            out.append(f'<link id="nv{h}.{g}" bandwidth="{host}GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>')
            out.append(f'<link id="nic{h}.{g}" bandwidth="{cross_host}GBps" latency="2.5us" sharing_policy="SPLITDUPLEX"/>')
            out.append(f'<link id="lo{h}.{g}" bandwidth="1000GBps" latency="0.1us" sharing_policy="FATPIPE"/>')
        out.append(f'<router id="gw{h}"/>')
        for g in range(RANKS_A_HOST):
            out.append(f'<route src="h{h}g{g}" dst="h{h}g{g}" symmetrical="NO"><link_ctn id="lo{h}.{g}"/></route>')
            out.append(f'<route src="h{h}g{g}" dst="gw{h}" symmetrical="NO">'
                       f'<link_ctn id="nic{h}.{g}" direction="UP"/></route>')
            out.append(f'<route src="gw{h}" dst="h{h}g{g}" symmetrical="NO">'
                       f'<link_ctn id="nic{h}.{g}" direction="DOWN"/></route>')
            out += [f'<route src="h{h}g{g}" dst="h{h}g{o}" symmetrical="NO"><link_ctn id="nv{h}.{g}" direction="UP"/>'
                    f'<link_ctn id="nv{h}.{o}" direction="DOWN"/></route>' for o in range(RANKS_A_HOST) if o != g]
        out.append("</zone>")
    out.append('<link id="fabric" bandwidth="1e18Bps" latency="0s" sharing_policy="FATPIPE"/>')
    out += [f'<zoneRoute src="h{a}" dst="h{b}" gw_src="gw{a}" gw_dst="gw{b}"><link_ctn id="fabric"/></zoneRoute>'
            for a in range(hosts) for b in range(a + 1, hosts)]
    return "\n".join(out + ["</zone></platform>"])


def simulate(build, folder, links, hosts, schedule, order, overhead, reduced):
    """{kind: microseconds, summed over the rounds of a kind}; links: GB/s inside a host and across, as in CLUSTERS"""
    xml, hostfile = os.path.join(folder, "platform.xml"), os.path.join(folder, "hosts")
    with open(xml, "w", encoding="utf-8") as file:
        file.write(platform(hosts, links["host"], links["cross_host"]))
    with open(hostfile, "w", encoding="utf-8") as file:
        file.write("".join(f"h{h}g{g}\n" for h in range(hosts) for g in range(RANKS_A_HOST)))
    command = ["smpirun", "-quiet", "-platform", xml, "-hostfile", hostfile, "-np", str(hosts * RANKS_A_HOST),
               "--cfg=smpi/simulate-computation:no", "--cfg=smpi/host-speed:1Gf", "--cfg=smpi/wtime:0",
               "--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=network/TCP-gamma:0",
               "--cfg=network/weight-S:0", "--cfg=network/crosstraffic:0", "--cfg=smpi/allreduce:lr",
               f"--cfg=smpi/ois:0:{overhead}:0:0:0", "--cfg=smpi/shared-malloc-blocksize:67108864",
               "--log=root.thres:warning", os.path.join(build, "benchmarks/replay_smpi"), schedule, order, "1",
               str(reduced)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    times = {}
    for line in ran.stdout.splitlines():
        words = line.split()
        if len(words) == 2:
            times[words[0]] = times.get(words[0], 0) + float(words[1])
    if ran.returncode != 0 or not times:
        sys.exit(f"{' '.join(command)}: {ran.stderr or ran.stdout}")
    return times


def over_mpi(build, schedule, ranks, repetitions):
    """As simulate, over Open MPI."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                       OMPI_MCA_mpi_yield_when_idle="1")
    command = ["mpirun", "-n", str(ranks), os.path.join(build, "benchmarks/replay"), schedule, "post", str(repetitions)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)}: {ran.stderr}")
    times = {}
    for line in ran.stdout.splitlines():
        kind, us = line.split()
        times[kind] = times.get(kind, 0) + float(us)
    return times


def measure_mpi(build, repetitions):
    records = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "schedule")
        for hosts in (1, 2, 4):
            for batch in (64, 512, 4096, 16384):
                turns = {}
                for turn in range(3):  # in turns, so that whatever else the machine does meets all
                    for name, composition, compression in (("flat", "flat/table", 1), ("Hierarchical", "hierarchical/table", 1),
                                                           ("Hierarchical, modules / 4", "modules/table", 4)):
                        schedule_of(build, path, hosts, composition, compression, 4 // hosts, batch)
                        turns.setdefault(name, []).append(over_mpi(build, path, 4, repetitions))
                for name, times in turns.items():
                    us = sorted(t["vectors"] + t["gradients"] for t in times)[1]
                    records.append({"hosts": hosts, "ranks_per_host": 4 // hosts, "batch": batch, "name": name, "us": us})
                print(f"{hosts} x {4 // hosts}, {batch} samples", file=sys.stderr, flush=True)
    return records


def markdown_mpi(records):
    lines = ["| hosts x ranks | samples a rank | flat ms | Hierarchical ms | of flat | modules / 4 ms | of flat |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    times = {(r["hosts"], r["batch"], r["name"]): r["us"] / 1e3 for r in records}
    for hosts, batch in dict.fromkeys((r["hosts"], r["batch"]) for r in records):
        flat, hierarchical, modules = (times[hosts, batch, n] for n in ("flat", "Hierarchical", "Hierarchical, modules / 4"))
        lines.append(f"| {hosts} x {4 // hosts} | {batch} | {flat:.2f} | {hierarchical:.2f} | {hierarchical / flat:.2f} | {modules:.2f} "
                     f"| {modules / flat:.2f} |")
    return "\n".join(lines)


def schedule_of(build, path, hosts, composition, compression, ranks_a_host=RANKS_A_HOST, batch=BATCH):
    collective, sharding = composition.split("/")
    command = [os.path.join(build, "benchmarks/exchange_schedule"), "--hosts", str(hosts), "--ranks-per-host",
               str(ranks_a_host), "--batch", str(batch), "--collective", collective, "--sharding", sharding, "--out", path]
    if compression != 1:
        command += ["--compression", str(compression)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def predicted(schedule, cluster):
    return sum(round["predicted_us"][cluster] for round in schedule["rounds"])


def megabytes(schedule):
    """{tier: MB of ids, vectors and gradients that a rank sends in a step}"""
    ranks = schedule["hosts"] * schedule["ranks_per_host"]
    return {tier: sum(f[tier]["payload"] + f[tier]["control"] for f in schedule["rounds"]) / ranks / 1e6
            for tier in ("host", "cross_host")}


def measure(build, cluster, hosts, order, overhead):
    """One record a row of the table."""
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name, compositions, compression in ROWS:
            paths = {c: os.path.join(folder, c.replace("/", "_")) for c in compositions}
            choices = {c: schedule_of(build, paths[c], hosts, c, compression) for c in compositions}
            best = min(choices, key=lambda c: predicted(choices[c], cluster))
            schedule = choices[best]
            times = simulate(build, folder, CLUSTERS[cluster], hosts, paths[best], order, overhead, DENSE_BYTES)
            compute = schedule["mflops"] * BATCH / (PEAK_SHARE * CLUSTERS[cluster]["peak"])  # MFlops over TFLOP/s: us
            exchange = times["ids"] + times["vectors"] + times["gradients"]
            records.append({"cluster": cluster, "hosts": hosts, "order": order, "overhead": overhead, "name": name,
                            "composition": best, "megabytes": megabytes(schedule),
                            "messages": {tier: sum(f[tier]["messages"] for f in schedule["rounds"])
                                         / hosts / RANKS_A_HOST for tier in ("host", "cross_host")},
                            "predicted_us": predicted(schedule, cluster), "times_us": times, "exchange_us": exchange,
                            "compute_us": compute, "step_us": exchange + compute + times["reduction"]})
    return records


def markdown(records):
    lines = ["| cluster | hosts | | tables | MB host, across | messages host, across | ids ms | vectors ms | gradients ms | exchange ms "
             "| of flat | predicted ms | dense reduction ms | compute ms | step ms | speed-up |",
             "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    flat = {}
    for r in records:
        if r["name"] == "flat":
            flat[r["cluster"], r["hosts"]] = r
        base = flat[r["cluster"], r["hosts"]]
        t = r["times_us"]
        lines.append(
            f"| {r['cluster']} | {r['hosts']} | {r['name']} | {r['composition'].split('/')[1]} "
            f"| {r['megabytes']['host']:.0f}, {r['megabytes']['cross_host']:.0f} "
            f"| {r['messages']['host']:.0f}, {r['messages']['cross_host']:.0f} "
            f"| {t['ids'] / 1e3:.2f} | {t['vectors'] / 1e3:.2f} | {t['gradients'] / 1e3:.2f} | {r['exchange_us'] / 1e3:.2f} "
            f"| {r['exchange_us'] / base['exchange_us']:.2f} | {r['predicted_us'] / 1e3:.2f} | {t['reduction'] / 1e3:.2f} "
            f"| {r['compute_us'] / 1e3:.2f} | {r['step_us'] / 1e3:.2f} | {base['step_us'] / r['step_us']:.2f} |")
    return "\n".join(lines)


def draw(records, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    # The same bits for the same numbers, text as text, and white under it on any page.
    plt.rcParams |= {"svg.hashsalt": "shardwise", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    clusters = list(dict.fromkeys(r["cluster"] for r in records))
    figure, axes = plt.subplots(1, len(clusters), figsize=(5.2 * len(clusters), 4.2), sharey=False, squeeze=False)
    looks = {"flat": ("#888888", "s"), "Hierarchical": ("#d9480f", "^"), "Hierarchical, modules / 2": ("#4da3e0", "o"),
             "Hierarchical, modules / 4": ("#0b5fa5", "o"), "Hierarchical, modules / 8": ("#073763", "o")}
    for axis, cluster in zip(axes[0], clusters):
        for name, (color, marker) in looks.items():
            own = sorted((r["hosts"], r["exchange_us"] / 1e3) for r in records
                         if r["cluster"] == cluster and r["name"] == name)
            axis.plot([h for h, _ in own], [ms for _, ms in own], color=color, marker=marker, label=name)
        axis.set_title(f"{cluster}, 8 GPUs a host")
        axis.set_xlabel("hosts")
        axis.set_xscale("log", base=2)
        hosts = sorted({r["hosts"] for r in records})
        axis.set_xticks(hosts, [str(h) for h in hosts])
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("exchange of a step, ms (simulated)")
    axes[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, facecolor="white", metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--clusters", nargs="+", choices=list(CLUSTERS), default=list(CLUSTERS))
    parser.add_argument("--order", choices=["pair", "post"], default="pair")
    parser.add_argument("--overhead", type=float, default=0.0, metavar="S", help="seconds a message that a rank spends")
    parser.add_argument("--mpi", action="store_true", help="over Open MPI, here")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/simgrid"), metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    parser.add_argument("--svg", metavar="FILE", help="draw the exchange times (needs matplotlib)")
    parser.add_argument("--read", metavar="FILE", help="simulate nothing: print or draw what --json wrote")
    args = parser.parse_args()
    if args.svg and importlib.util.find_spec("matplotlib") is None:
        parser.error("--svg needs matplotlib: pip install matplotlib, or leave it out")
    if args.mpi:
        records = measure_mpi(args.build, 15)
        print(markdown_mpi(records))
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump(records, file, indent=1)
        return
    if args.read:
        with open(args.read, encoding="utf-8") as file:
            records = json.load(file)
    else:
        records, begin = [], time.time()
        turns = [(c, h) for c in args.clusters for h in args.hosts]
        for i, (cluster, hosts) in enumerate(turns):
            print(f"{cluster}, {hosts} hosts ({i} of {len(turns)} done, {time.time() - begin:.0f} s)", file=sys.stderr,
                  flush=True)
            records += measure(args.build, cluster, hosts, args.order, args.overhead)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)
    print(markdown(records))
    if args.svg:
        draw(records, args.svg)


if __name__ == "__main__":
    main()
