// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "shardwise/core/error.hpp"
#include "shardwise/topology/topology.hpp"

namespace plan_rows {

namespace {

/// One of the values that a word may have. \throws BadInput that lists them
template <class T, std::size_t Count>
T one_of(const char* flag, const std::string& word, const std::array<std::pair<const char*, T>, Count>& values) {
    std::string known;
    for (const auto& [name, value] : values) {
        if (word == name) return value;
        known += known.empty() ? name : fmt::format(" or {}", name);
    }
    throw sw::BadInput{fmt::format("{} '{}': give {}", flag, word, known)};
}

/// Options that would change nothing. \throws BadInput for the first that was given
void refuse_what_has_no_effect(const CLI::App& app, const Options& o) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    if (given("--reduction") && o.out.empty())
        throw sw::BadInput{"--reduction has no effect without --out FILE: it is written into the plan"};
    if (given("--cut") && !(o.plan.dp && o.plan.flex))
        throw sw::BadInput{fmt::format("--cut has no effect with --tiers {}: it says where DP ends and Flex begins",
                                       tiers_text(o.plan))};
    if (o.plan.goal == sw::FlexShardGoal::memory) {
        if (given("--cut"))
            throw sw::BadInput{"--cut has no effect with --goal memory: each row goes where it takes least memory"};
        if (given("--budget"))
            throw sw::BadInput{"--budget has no effect with --goal memory: it already takes the least memory"};
    }
    if (o.plan.goal == sw::FlexShardGoal::communication && given("--cut") && !given("--budget"))
        throw sw::BadInput{
            "--cut has no effect with --goal communication unless there is a --budget: each row goes where it "
            "communicates least"};
}

}  // namespace

std::string tiers_text(const sw::FlexShardOptions& plan) {
    return fmt::format("{}{}row", plan.dp ? "dp," : "", plan.flex ? "flex," : "");
}

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    int hosts = o.scaling.topology.hosts;
    int ranks = o.scaling.topology.ranks();
    std::string tiers = "dp,flex,row";
    std::string cut = "row";
    std::string goal = "neutral";
    std::string reduction = "auto";
    std::string model = "paper";
    double budget = 0;
    CLI::App app{
        "Plans which rows of embedding tables to replicate on every rank (dp), which on every host (flex), and which "
        "to\n"
        "split over all ranks (row), by how often each is looked up: FlexShard, for tables whose look-ups stay single\n"
        "vectors (sequences). Prints the plan, its memory and its communication.\n"
        "Exit status: 0 done; 2 bad usage or bad input.",
        "plan_rows"};
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    row_tables::add_options(app, o.tables, {256});
    app.add_option("--hosts", hosts, "Hosts");
    app.add_option("--ranks", ranks, "Ranks, of all hosts together");
    app.add_option("--batch", o.scaling.batch, "Samples a rank");
    app.add_option("--tiers", tiers, "dp,flex,row, dp,row or flex,row");
    app.add_option("--cut", cut,
                   "Rows go no further in dp when they take more memory there than in row, or than in flex");
    app.add_option("--chunk", o.chunk,
                   "Rows of a table that stay together: counts are multiples of it. Unless given, "
                   "the number of ranks")
        ->default_str("");
    app.add_option("--multiplier", o.scaling.multiplier,
                   "Bytes that a replicated weight takes on a rank, over those of the weight, in the paper's model");
    app.add_option("--model", model,
                   "Memory that a row takes. paper: as FlexShard has it; library: in a tiered layer of this library, "
                   "sequences under row-wise Adagrad, with its buffers of expected sizes");
    app.add_option("--goal", goal,
                   "neutral: the least communication at no more memory than with all rows in row (or --budget more); "
                   "memory: the least memory; communication: the least communication, at any memory (or --budget)");
    app.add_option("--budget", budget,
                   "Bytes that a rank may take above what it takes with all rows in row; negative: below")
        ->type_name("BYTES")
        ->default_str("");
    auto& bandwidths = o.scaling.bandwidths;
    struct Bandwidth {
        const char* flag;
        const char* text;
        std::optional<double>* to;
        double value = 0;
    };
    std::array<Bandwidth, 4> links{{
        {"--a2a-global", "all-to-all of all ranks", &bandwidths.all_to_all_global},
        {"--a2a-intra", "all-to-all inside each host", &bandwidths.all_to_all_intra},
        {"--ar-global", "all-reduce of all ranks", &bandwidths.all_reduce_global},
        {"--ar-cross", "all-reduce across hosts, of a host's ranks together", &bandwidths.all_reduce_cross},
    }};
    for (Bandwidth& link : links)
        app.add_option(link.flag, link.value,
                       fmt::format("GB/s of a rank: {}. Not given: memory alone ends a tier", link.text))
            ->type_name("GB/S")
            ->default_str("");
    app.add_option("--out", o.out,
                   "File for the plan: which rows of the tables are in which tier, as trainers take it (--plan) and "
                   "read_row_plan reads it. Those of --distribution and --law are numbered by how often they are "
                   "looked up: row 0 is the hottest")
        ->type_name("FILE");
    app.add_option(
        "--reduction", reduction,
        "How gradients of replicated rows are summed: touched (rows that a step touched, with their "
        "numbers), dense (all rows, and a bit a row), or auto: each table and level whichever is expected to "
        "move fewer bytes");
    app.add_option("--svg", o.svg,
                   "File for a picture (SVG): what replication of a row costs by p, and what "
                   "replicating ever more of these rows does")
        ->type_name("FILE");
    app.add_option("--json", o.json, "File for the plan and all figures (JSON)")->type_name("FILE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (plan_rows --help shows all options)"};
    }
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    row_tables::finish(o.tables);
    o.scaling.topology = sw::Topology::of(ranks, hosts);
    if (o.scaling.batch < 1) throw sw::BadInput{fmt::format("--batch {}: give at least 1", o.scaling.batch)};
    if (!(o.scaling.multiplier >= 1) || !std::isfinite(o.scaling.multiplier))
        throw sw::BadInput{
            fmt::format("--multiplier {}: give at least 1, which is the weights alone", o.scaling.multiplier)};
    if (!given("--chunk")) o.chunk = ranks;
    if (o.chunk < 1) throw sw::BadInput{fmt::format("--chunk {}: give at least 1", o.chunk)};
    for (const Bandwidth& link : links) {
        if (!given(link.flag)) continue;
        if (!(link.value > 0) || !std::isfinite(link.value))
            throw sw::BadInput{fmt::format("{} {}: give a number of GB/s above 0", link.flag, link.value)};
        *link.to = 1e9 * link.value;
    }
    std::tie(o.plan.dp, o.plan.flex) = one_of<std::pair<bool, bool>, 3>(
        "--tiers", tiers, {{{"dp,flex,row", {true, true}}, {"dp,row", {true, false}}, {"flex,row", {false, true}}}});
    o.plan.cut =
        one_of<sw::FlexShardCut, 2>("--cut", cut, {{{"row", sw::FlexShardCut::row}, {"flex", sw::FlexShardCut::flex}}});
    o.plan.goal = one_of<sw::FlexShardGoal, 3>("--goal", goal,
                                               {{{"neutral", sw::FlexShardGoal::neutral},
                                                 {"memory", sw::FlexShardGoal::memory},
                                                 {"communication", sw::FlexShardGoal::communication}}});
    o.reduction = one_of<std::optional<sw::RowReduction>, 3>(
        "--reduction", reduction,
        {{{"auto", std::nullopt}, {"touched", sw::RowReduction::touched}, {"dense", sw::RowReduction::dense}}});
    o.library = one_of<bool, 2>("--model", model, {{{"paper", false}, {"library", true}}});
    if (given("--budget")) {
        if (!(std::abs(budget) <= 1e18)) throw sw::BadInput{fmt::format("--budget {}: give a number of bytes", budget)};
        o.plan.budget = budget;
    }
    refuse_what_has_no_effect(app, o);
    return o;
}

}  // namespace plan_rows
