#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler takes: headers (the front end alone), the library's own translation units, and users' programs.

    compile_time.py                              every public header
    compile_time.py core/ shardwise.hpp          those whose path contains one of these
    compile_time.py --units                      every translation unit of the examples, the benchmarks and the bodies
    compile_time.py --units benchmarks/          those whose path contains one of these
    compile_time.py --programs                   what a user's program adds: layers by types and by names, and a
                                                 policy of its own; with headers alone and in the compiled form
    compile_time.py --all --markdown             all of it, as tables of Markdown

Seconds are those of one processor, in the compiler and all that it starts: other programs do not count, but a busy
machine has slower processors. The commands are those of a configured build tree (`cmake --preset release`, -O3), without
the compiler launcher; headers need a tree with tests (`--build build/test`). Exits with 1 where a budget is missed:
2 s for the umbrella header, declarations only; 45 s and 2 GiB for a unit; half a second for a typed composition beyond
the first of its family; and for a policy of a user's own, by name, no more than its own bodies take.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

MARKER = "_verify_interface_header_sets/"
UNITS = ["examples/", "benchmarks/", "shardwise_compiled/"]
UMBRELLA = "shardwise/shardwise.hpp"
BUDGET_MIB = 2048
WITH_ARGUMENT = {"-o", "-MT", "-MF", "-MQ"}
ALONE = {"-MD", "-MMD"}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Users' programs. A composition is a layer that is made, looked up and learnt from.
TYPED = """#include "shardwise/shardwise.hpp"
namespace sw = shardwise;
template <class... Policies>
void run(sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables, const sw::JaggedView<int>& batch) {
    sw::EmbeddingLayer<Policies...> layer{comm, std::move(tables)};
    layer.backward(layer.forward(batch));
}
"""
NAMED = """#include "shardwise/embedding/make_layer.hpp"
namespace sw = shardwise;
std::unique_ptr<sw::LayerBase> make(sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables,
                                    const sw::LayerNames& names) {
    sw::KnownPolicies known;
%s    return sw::make_layer(comm, std::move(tables), names, {}, known);
}
"""
OWN_RULE = """#include "shardwise/embedding/tables/row_rule.hpp"
namespace sw = shardwise;
template <int N>
struct Momentum {
    static constexpr char name[] = {'m', 'o', 'm', 'e', 'n', 't', 'u', 'm', '0' + N, 0};
    static constexpr int element_slots = 1;
    static constexpr int row_slots = 0;
    static constexpr bool needs_row_norm = false;
    float decay = 0.9F;
    struct Row {
        float step;
    };
    Row row(const sw::UpdateStep& step, float*, double, int) const { return {step.learning_rate}; }
    void element(const Row& row, float& weight, float gradient, float& velocity) const {
        velocity = decay * velocity + gradient;
        weight -= row.step * velocity;
    }
};
"""
OWN_RULES = 8  # told from none: one is too little to be seen
COMPOSITIONS = [f"sw::Sharding<sw::{s}>, sw::Pooling<sw::{p}>, sw::Order<sw::{o}>"
                for s, p, o in [("Row", "Sum", "Tree"), ("Row", "Mean", "Tree"), ("Row", "None", "Tree"),
                                ("Table", "Sum", "Tree"), ("Table", "Mean", "Sample"), ("Row", "Mean", "Sample"),
                                ("DP", "Sum", "Tree"), ("DP", "Mean", "WideTree"), ("Table", "None", "Sample")]]


def typed(count):
    lines = [f"template void run<{c}>(sw::CommunicatorRef, std::vector<sw::TableConfig>, const sw::JaggedView<int>&);\n"
             for c in COMPOSITIONS[:count]]
    return TYPED + "".join(lines)


def budget_seconds(name):
    """The budget of the umbrella header, of a translation unit, or None: any other header has none of its own."""
    if name == UMBRELLA:
        return 2.0
    return None if name.endswith((".hpp", ".cuh")) else 45.0


def compiler_of(command):
    """A compile command without the launcher, its output and its dependency files."""
    given = shlex.split(command)
    words = iter(given[1:] if os.path.basename(given[0]) == "ccache" else given)
    kept = []
    for word in words:
        if word in WITH_ARGUMENT:
            next(words)
        elif word not in ALONE:
            kept.append(word)
    return kept


def commands(build, units):
    """Name -> (command, folder) of headers, or of translation units; no command writes anything yet."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        path = entry["file"]
        if (MARKER in path) == units:
            continue
        name = path.split(MARKER)[-1].removesuffix(".cxx")
        for folder in (os.path.abspath(build), ROOT):
            name = name.removeprefix(folder + "/")
        found[name] = (compiler_of(entry["command"]), entry["directory"])
    return found


def measure(command, folder):
    """Seconds of one processor and peak MiB of the compiler, or None where it fails."""
    # wait4 reports the times of all processes below, and the largest of them: the compiler proper under the driver.
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure_all(build, units, parts, repetitions):
    """A row a header or translation unit, the slowest first."""
    rows = []
    for name, (command, folder) in sorted(commands(build, units).items()):
        if parts and not any(part in name for part in parts):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            goal = ["-o", os.path.join(temporary, "unit.o")] if units else ["-fsyntax-only"]
            runs = [measure(command + goal, folder) for _ in range(repetitions)]
        if None in runs:
            print(f"does not compile: {name}", file=sys.stderr)
            continue
        seconds, mebibytes = min(runs)
        budget = budget_seconds(name)
        over = (budget is not None and seconds > budget) or mebibytes > BUDGET_MIB
        rows.append({"name": name, "seconds": seconds, "peak_mib": mebibytes, "budget": budget, "over": over})
    return sorted(rows, key=lambda row: -row["seconds"])


def measure_programs(build, repetitions):
    """What users' programs take: a row each, and what is told from two of them as a difference."""
    compiler = next(command for name, (command, _) in commands(build, True).items() if name.startswith("examples/"))[0]
    base = [compiler, "-std=c++20", "-O2", "-DNDEBUG", "-I", os.path.join(ROOT, "include"), "-c"]
    use = "void use(std::vector<std::shared_ptr<const sw::RowRule>>& all) {\n%s}\n"
    add = "".join(f"    known.add_optimizer(Momentum<{n}>{{}});\n" for n in range(OWN_RULES))
    make = "".join(f"    all.push_back(sw::make_row_rule(Momentum<{n}>{{}}));\n" for n in range(OWN_RULES))
    with open(os.path.join(ROOT, "tests/docs/readme.cpp"), encoding="utf-8") as file:
        readme = file.read()
    programs = {
        "README's program": readme,
        "one layer by types": typed(1),
        "nine layers by types": typed(len(COMPOSITIONS)),
        "layers by names": NAMED % "",
        "layers by names, and optimizers": OWN_RULE + NAMED % add,
        "no optimizer": OWN_RULE + use % "    all.push_back(nullptr);\n",
        "optimizers": OWN_RULE + use % make,
    }
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for form, macros in (("compiled form", ["-DSHARDWISE_COMPILED"]), ("headers alone", [])):
            seconds = {name: [] for name in programs}
            peak = dict.fromkeys(programs, 0.0)
            for _ in range(repetitions):  # in turns: differences are of neighbours
                for number, (name, text) in enumerate(programs.items()):
                    path = os.path.join(temporary, f"program{number}.cpp")
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    result = measure(base + macros + [path, "-o", path + ".o"], temporary)
                    if result is None:
                        sys.exit(f"does not compile: {name}, {form}")
                    seconds[name].append(result[0])
                    peak[name] = max(peak[name], result[1])
            best = {name: min(values) for name, values in seconds.items()}
            extra = (best["nine layers by types"] - best["one layer by types"]) / (len(COMPOSITIONS) - 1)
            bodies = (best.pop("optimizers") - best.pop("no optimizer")) / OWN_RULES
            by_name = (best.pop("layers by names, and optimizers") - best["layers by names"]) / OWN_RULES
            for name, value in best.items():
                rows.append({"name": f"{name}, {form}", "seconds": value, "peak_mib": peak[name], "budget": None,
                             "over": False})
            rows.append({"name": f"a layer by types beyond the first, {form}", "seconds": extra, "peak_mib": None,
                         "budget": 0.5, "over": extra > 0.5})
            rows.append({"name": f"an optimizer of one's own: its bodies, {form}", "seconds": bodies, "peak_mib": None,
                         "budget": None, "over": False})
            rows.append({"name": f"an optimizer of one's own, by name, {form}", "seconds": by_name, "peak_mib": None,
                         "budget": bodies, "over": by_name > bodies})
    return rows


def peak_of(row):
    return "" if row["peak_mib"] is None else f"{row['peak_mib']:.0f}"


def text_table(rows):
    print(f"{'seconds':>8} {'peak MiB':>9}")
    for row in rows:
        note = f"  (budget {row['budget']:.2f} s)" if row["budget"] not in (None, 45.0) else ""
        print(f"{row['seconds']:8.2f} {peak_of(row):>9}  {row['name']}{note}{'  OVER BUDGET' if row['over'] else ''}")


def markdown_table(rows, title):
    print(f"| {title} | seconds | peak MiB | budget |\n| --- | ---: | ---: | --- |")
    for row in rows:
        budget = f"{row['budget']:.4g} s" if row["budget"] else ""
        name = f"`{row['name']}`" if "/" in row["name"] else row["name"]
        print(f"| {name} | {row['seconds']:.2f} | {peak_of(row)} | {'**over** ' if row['over'] else ''}{budget} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="only paths that contain one of these")
    parser.add_argument("--units", action="store_true", help="translation units, compiled, instead of headers")
    parser.add_argument("--programs", action="store_true", help="users' programs, compiled, instead of headers")
    parser.add_argument("--all", action="store_true", help="headers, then translation units, then users' programs")
    parser.add_argument("--build", help="the configured build tree (default: build/test for headers, else build/release)")
    parser.add_argument("--repetitions", type=int, default=1, help="the fastest of so many runs (default: %(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print tables of Markdown")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    arguments = parser.parse_args()

    asked = {"header": arguments.all or not (arguments.units or arguments.programs),
             "translation unit": arguments.all or arguments.units, "program": arguments.all or arguments.programs}
    everything = []
    for title in (title for title, wanted in asked.items() if wanted):
        build = arguments.build or ("build/test" if title == "header" else "build/release")
        if title == "program":
            rows = measure_programs(build, arguments.repetitions)
        else:
            units = title != "header"
            rows = measure_all(build, units, arguments.parts or (UNITS if units else []), arguments.repetitions)
        everything += rows
        if arguments.markdown:
            markdown_table(rows, title)
        else:
            text_table(rows)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
            file.write("\n")
    sys.exit(1 if any(row["over"] for row in everything) else 0)


if __name__ == "__main__":
    main()
