// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output_files.hpp"
#include "shardwise/core/error.hpp"

namespace plan_cache {

namespace {

/// A run's samples a rank, and the bytes that they take on the rank with the most: flights, sums, and the dense part.
struct Run {
    double batch = 0;
    double bytes = 0;
};

Run read_run(const std::string& file) {
    std::ifstream in{file};
    if (!in) throw sw::BadInput{fmt::format("--runs: {} cannot be read", file)};
    try {
        const nlohmann::json report = nlohmann::json::parse(in);
        const nlohmann::json& memory = report.at("memory");
        const nlohmann::json& embedding = memory.at("measured").at("dynamic").at("by_rank");
        const nlohmann::json& dense = memory.at("dense").at("dynamic").at("by_rank");
        Run run{.batch = report.at("config").at("batch").get<double>(), .bytes = 0};
        for (std::size_t rank = 0; rank < embedding.size(); ++rank)
            run.bytes = std::max(run.bytes, embedding.at(rank).get<double>() + dense.at(rank).get<double>());
        return run;
    } catch (const nlohmann::json::exception&) {
        throw sw::BadInput{
            fmt::format("--runs: {} is no report of a trainer: give files that train_dlrm --json wrote", file)};
    }
}

/// What a sample takes, in elements of 4 bytes: two runs tell it from what any batch takes.
double measured_activation(const std::vector<std::string>& runs) {
    if (runs.size() != 2)
        throw sw::BadInput{fmt::format("--runs: {} files; give two, of runs with different --batch", runs.size())};
    const std::array of{read_run(runs[0]), read_run(runs[1])};
    if (of[0].batch == of[1].batch)
        throw sw::BadInput{
            fmt::format("--runs: both had batches of {} samples; give two of different --batch", of[0].batch)};
    const double bytes = (of[1].bytes - of[0].bytes) / (of[1].batch - of[0].batch);
    if (!(bytes > 0))
        throw sw::BadInput{
            fmt::format("--runs: batches of {} and {} samples take {} and {} bytes; give two whose "
                        "larger batch takes more",
                        of[0].batch, of[1].batch, of[0].bytes, of[1].bytes)};
    return bytes / 4;
}

/// Which options are of what the command does, and whether those it needs are there.
void check_usage(const CLI::App& app, const Options& o) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    const auto refuse = [&](std::initializer_list<const char*> flags, const char* why) {
        for (const char* flag : flags)
            if (given(flag)) throw sw::BadInput{fmt::format("{} has no effect {}", flag, why)};
    };
    const auto need = [&](const char* flag, const char* why) {
        if (!given(flag)) throw sw::BadInput{fmt::format("{} is not given: {}", flag, why)};
    };
    if (given("--batch") && o.batch < 1) throw sw::BadInput{fmt::format("--batch {}: give at least 1", o.batch)};
    constexpr std::array sizing{"--memory", "--activation", "--runs", "--samples", "--least-batch",
                                "--cached", "--out",        "--svg",  "--ranks",   "--hosts"};
    if (!o.replay.empty()) {
        refuse({"--distribution", "--law", "--profile", "--names", "--dim"}, "with --replay: the trace is the table");
        for (const char* flag : sizing)
            refuse({flag}, "with --replay: it tells what caches of --sizes hit");
        need("--sizes", "say how many rows the caches have, as N,...");
        return;
    }
    refuse({"--sizes", "--seed"}, "without --replay FILE");
    if (!given("--out")) refuse({"--ranks", "--hosts"}, "without --out FILE: they are written into the plan");
    if (!given("--ranks")) refuse({"--hosts"}, "without --ranks");
    if (!given("--memory")) {
        for (const char* flag : sizing)
            refuse({flag}, "without --memory M, which rows and batches share");
        need("--batch", "give it for the distinct rows of a batch, or --memory M to size a cache");
        return;
    }
    need("--dim", "say how many elements a row has");
    if (given("--activation") == given("--runs"))
        throw sw::BadInput{given("--runs") ? "--activation has no effect with --runs, which measure it: give one"
                                           : "--activation is not given: say what a sample takes, or give --runs of "
                                             "two trainings, which measure it"};
}

/// Distributions of this command are of single ids: probabilities.
void check_probabilities(const row_tables::Table& table) {
    const sw::RowRun& hottest = table.distribution.runs().front();
    if (hottest.p > 1)
        throw sw::BadInput{fmt::format("{}: a row has a probability of {}; give 0 to 1", table.name, hottest.p)};
    if (std::abs(table.distribution.lookups() - 1) > 1e-6)
        throw sw::BadInput{
            fmt::format("{}: the probabilities of its rows sum to {}; give some that sum to 1, within "
                        "one part in a million",
                        table.name, table.distribution.lookups())};
}

}  // namespace

std::vector<sw::CacheTable> tables_of(const Options& o) {
    std::vector<sw::CacheTable> tables;
    const auto dim = [&] { return o.tables.dims[tables.size()]; };
    for (const row_tables::Table& table : row_tables::read(o.tables)) {
        if (!table.law) check_probabilities(table);
        tables.push_back(sw::cache_table(table.name, table.distribution, dim()));
    }
    for (const sw::TableAccess& table : o.tables.access.tables)
        tables.push_back(sw::cache_table(table, o.tables.access.samples, dim()));
    return tables;
}

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    sw::CacheSetting setting;
    std::int64_t cached = 0;
    int ranks = 0;
    int hosts = 1;
    CLI::App app{
        "Sizes a cache of embedding rows, one that every rank has, by how often rows are looked up (SCARS): the "
        "number\n"
        "of rows with the least expected traffic an epoch, where cached rows and batches share one memory. With "
        "--batch\n"
        "alone it says how many distinct rows a batch is expected to look up; with --replay, what caches would have "
        "hit\n"
        "on look-ups that were recorded.\n"
        "Exit status: 0 done; 2 bad usage or bad input.",
        "plan_cache"};
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    row_tables::add_options(app, o.tables, {});
    app.add_option("--batch", o.batch, "Samples of a batch, whose distinct rows are expected; of a window of --replay")
        ->default_str("");
    app.add_option("--memory", setting.memory,
                   "M: elements of 4 bytes that cached rows and a batch have together, on a rank")
        ->type_name("M")
        ->default_str("");
    app.add_option("--activation", setting.activation, "a: elements that a sample of a batch takes")
        ->type_name("a")
        ->default_str("");
    app.add_option(
           "--runs", o.runs,
           "Instead of --activation, two reports (train_dlrm --json) of short runs with different --batch: what "
           "a sample takes in flights, sums and the dense part, measured")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("FILE,FILE")
        ->default_str("");
    app.add_option("--samples", setting.samples, "Q: samples of an epoch, whose traffic is told")
        ->type_name("Q")
        ->default_str("1");
    app.add_option("--least-batch", setting.least_batch, "Samples that a batch has at least")
        ->type_name("N")
        ->default_str("1");
    auto* cached_option =
        app.add_option("--cached", cached, "Cache so many rows, instead of the number with the least traffic")
            ->type_name("C")
            ->default_str("");
    app.add_option("--out", o.out,
                   "File for a row plan of tiers dp (the cached rows) and row, as trainers take it (--plan). Rows of "
                   "--distribution and --law are numbered by how often they are looked up: row 0 is the hottest")
        ->type_name("FILE");
    app.add_option("--ranks", ranks,
                   "Ranks that take the plan of --out, with batches of that size: it then says how many rows a step is "
                   "expected to touch, by which a layer chooses how their gradients are summed")
        ->default_str("");
    app.add_option("--hosts", hosts, "Hosts that they are on")->default_str("1");
    app.add_option("--replay", o.replay,
                   "File with a row number a line, in the order of time: what caches of --sizes hit, of the hottest "
                   "rows and of those used last, and with --batch the distinct rows of windows")
        ->type_name("FILE");
    app.add_option("--sizes", o.sizes, "Rows of the caches to replay")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("N,...")
        ->default_str("");
    app.add_option("--seed", o.seed, "Of the random order that --replay compares with")->default_str("0");
    app.add_option("--svg", o.svg, "File for a picture (SVG): traffic and batch by cached rows")->type_name("FILE");
    app.add_option("--json", o.json, "File for all figures (JSON)")->type_name("FILE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (plan_cache --help shows all options)"};
    }
    if (o.replay.empty()) row_tables::finish(o.tables);
    check_usage(app, o);
    o.dims_given = app.get_option("--dim")->count() != 0;
    o.least_batch_given = app.get_option("--least-batch")->count() != 0;
    if (!o.runs.empty()) setting.activation = measured_activation(o.runs);
    if (app.get_option("--memory")->count() != 0) o.setting = setting;
    if (cached_option->count() != 0) o.cached = cached;
    if (app.get_option("--ranks")->count() != 0) o.topology = sw::Topology::of(ranks, hosts);
    for (const std::string* path : {&o.json, &o.svg, &o.out})
        if (!path->empty()) output_files::check_writable(*path, path == &o.out);
    return o;
}

}  // namespace plan_cache
