// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output_files.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/compose/policies.hpp"
#include "shardwise/sharding/col.hpp"

namespace plan_groups {

namespace {

/// As the command line has them: GB are 10^9 bytes.
struct Flags {
    std::vector<int> groups;
    std::string placement = "both";
    std::vector<std::int64_t> sync_every{1};
    std::string sync = "touched";
    double host_bandwidth = 300;
    double cross_bandwidth = 25;
    double host_latency = 2;
    double cross_latency = 5;
    double compute = 0;
    double lookup_rate = 100;
    double memory = 0;
    double other_memory = 0;
    bool prefetch = false;
};

void require(bool good, const char* flag, const std::string& given, const char* what) {
    if (!good) throw sw::BadInput{fmt::format("{} {}: give {}", flag, given, what)};
}

/// The ways to cut the cluster that are asked for, by number of groups, then placement, then steps between syncs.
std::vector<sw::GroupOptions> ways_of(const Options& o, const Flags& flags) {
    using Placement = sw::GroupPlacement;
    std::vector<Placement> placements;
    if (flags.placement != "inside") placements.push_back(Placement::across_hosts);
    if (flags.placement != "across") placements.push_back(Placement::inside_hosts);
    const std::set<std::int64_t> steps{flags.sync_every.begin(), flags.sync_every.end()};
    std::set<std::tuple<int, Placement>> numbers;
    for (const Placement placement : placements)
        for (const int count : flags.groups.empty() ? sw::numbers_of_groups(o.topology, placement) : flags.groups)
            if (count == 1)
                numbers.insert({1, Placement::across_hosts});
            else if (placements.size() == 1 || sw::has_groups(o.topology, count, placement))
                numbers.insert({count, placement});
            else if (std::none_of(placements.begin(), placements.end(),
                                  [&](Placement other) { return sw::has_groups(o.topology, count, other); }))
                numbers.insert({count, Placement::across_hosts});  // says which there are
    std::vector<sw::GroupOptions> ways;
    for (const auto& [count, placement] : numbers)
        for (const std::int64_t every : steps) {
            ways.push_back({.count = count});
            if (count == 1) break;
            ways.back().placement = placement;
            ways.back().sync_every = every;
            ways.back().rows = flags.sync == "all" ? sw::SyncRows::all : sw::SyncRows::touched;
        }
    return ways;
}

void read(const CLI::App& app, Options& o, const Flags& flags) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    if (o.names.collective == sw::BoundedLag<>::name)
        throw sw::BadInput{
            "--collective bounded_lag is for inference, and groups are chosen for training: give flat, "
            "two_stage or hierarchical"};
    if (!given("--batch")) throw sw::BadInput{"--batch is not given: say how many samples a rank has in a step"};
    require(o.batch >= 1, "--batch", std::to_string(o.batch), "at least 1");
    constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max();
    require(o.batch <= most_samples, "--batch", std::to_string(o.batch),
            fmt::format("at most {}", most_samples).c_str());
    require(flags.placement == "both" || flags.placement == "across" || flags.placement == "inside",
            "--group-placement", flags.placement, "across, inside or both");
    require(flags.sync == "touched" || flags.sync == "all", "--sync", flags.sync, "touched or all");
    for (const int count : flags.groups)
        require(count >= 1, "--groups", std::to_string(count), "at least 1");
    for (const std::int64_t every : flags.sync_every)
        require(every >= 1, "--sync-every", std::to_string(every), "at least 1");
    for (const auto& [flag, value] : {std::pair{"--host-bandwidth", flags.host_bandwidth},
                                      {"--cross-bandwidth", flags.cross_bandwidth},
                                      {"--lookup-rate", flags.lookup_rate}})
        require(value > 0 && std::isfinite(value), flag, fmt::format("{}", value), "a number above 0");
    for (const auto& [flag, value] : {std::pair{"--host-latency", flags.host_latency},
                                      {"--cross-latency", flags.cross_latency},
                                      {"--compute", flags.compute},
                                      {"--other-memory", flags.other_memory}})
        require(value >= 0 && std::isfinite(value), flag, fmt::format("{}", value), "0 or more");
    if (given("--memory")) require(flags.memory > 0, "--memory", fmt::format("{}", flags.memory), "a number above 0");
    o.topology = sw::Topology::checked(o.topology);
    o.setting.cluster = {
        .host = {.latency = 1e-6 * flags.host_latency, .bandwidth = 1e9 * flags.host_bandwidth},
        .cross_host = {.latency = 1e-6 * flags.cross_latency, .bandwidth = 1e9 * flags.cross_bandwidth}};
    o.setting.compute = 1e-3 * flags.compute;
    o.setting.lookup_rate = 1e9 * flags.lookup_rate;
    o.setting.flights = flags.prefetch ? 2 : 1;
    o.setting.other_bytes = 1e9 * flags.other_memory;
    if (given("--memory")) o.setting.room = 1e9 * flags.memory;
    o.ways = ways_of(o, flags);
    const bool alone = std::all_of(o.ways.begin(), o.ways.end(), [](const auto& way) { return way.count == 1; });
    for (const char* flag : {"--group-placement", "--sync-every", "--sync"})
        if (alone && given(flag))
            throw sw::BadInput{fmt::format("{} with one group alone has no effect: leave it out", flag)};
}

}  // namespace

sw::KnownPolicies policies() {
    sw::KnownPolicies known;
    known.add_sharding<sw::Col<1>>().add_sharding<sw::Col<2>>().add_sharding<sw::Col<4>>();
    return known.add_sharding<sw::Col<8>>().add_sharding<sw::Col<16>>();
}

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    Flags flags;
    o.names.shardings = {"col4"};
    CLI::App app{
        "Into how many replica groups to cut a cluster (two-dimensional sparse parallelism): for each number that "
        "there "
        "is,\n"
        "the memory of a rank, how evenly look-ups are spread, and the time of a step by its parts, in expectation. No "
        "rank\n"
        "has to be there. Times are of the slowest rank, and nothing overlaps.\n"
        "Exit status: 0 done; 2 bad usage or bad input.",
        "plan_groups"};
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    row_tables::add_options(app, o.tables, {64});
    const char* cluster = "Cluster";
    app.add_option("--hosts", o.topology.hosts, "Hosts")->group(cluster);
    app.add_option("--ranks-per-host", o.topology.ranks_per_host, "Ranks a host")->group(cluster);
    app.add_option("--host-bandwidth", flags.host_bandwidth, "Of a rank inside its host, GB/s in a direction")
        ->group(cluster);
    app.add_option("--cross-bandwidth", flags.cross_bandwidth, "Of a rank across hosts, GB/s")->group(cluster);
    app.add_option("--host-latency", flags.host_latency, "Of a message inside a host, microseconds")->group(cluster);
    app.add_option("--cross-latency", flags.cross_latency, "Of a message across hosts, microseconds")->group(cluster);
    app.add_option("--memory", flags.memory, "That a rank has, GB. Unless given: enough")
        ->default_str("")
        ->group(cluster);
    const char* step = "Step";
    app.add_option("--batch", o.batch, "Samples a rank")->default_str("")->group(step);
    app.add_option("--compute", flags.compute, "Milliseconds of a step beside the embedding layer")->group(step);
    app.add_option("--lookup-rate", flags.lookup_rate, "GB of rows that a rank looks up and updates in a second")
        ->group(step);
    app.add_option("--other-memory", flags.other_memory, "GB of a rank beside the embedding layer")->group(step);
    app.add_flag("--prefetch", flags.prefetch, "Two batches are under way at a time")->group(step);
    const char* layer = "Embedding layer";
    app.add_option("--sharding", o.names.shardings[0],
                   fmt::format("{}; those with a number cut each table into so many blocks of columns and place "
                               "them by load",
                               fmt::join(policies().names("sharding"), ", ")))
        ->group(layer);
    app.add_option("--collective", o.names.collective, "flat, two_stage or hierarchical")->group(layer);
    app.add_option("--optimizer", o.names.optimizer, "Whose moments are held and synced")->group(layer);
    app.add_option("--pooling", o.names.pooling, "sum, mean, or none for sequences")->group(layer);
    app.add_option("--requests", o.names.requests, "raw or coalesced")->group(layer);
    const char* groups = "Replica groups";
    app.add_option("--groups", flags.groups, "Numbers of groups. Unless given: all that the placements have")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("M,...")
        ->default_str("")
        ->group(groups);
    app.add_option("--group-placement", flags.placement,
                   "across (a group is whole hosts, or an equal part of one), inside (copies lie on one host) or both")
        ->group(groups);
    app.add_option("--sync-every", flags.sync_every, "Steps from one sync of the copies to the next")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("N,...")
        ->default_str("1")
        ->group(groups);
    app.add_option("--sync", flags.sync, "Rows that a sync moves: touched or all")->group(groups);
    app.add_option("--svg", o.svg, "File for a picture (SVG): memory, and the step by its parts")->type_name("FILE");
    app.add_option("--json", o.json, "File for all figures (JSON)")->type_name("FILE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (plan_groups --help shows all options)"};
    }
    row_tables::finish(o.tables);
    read(app, o, flags);
    for (const std::string* path : {&o.json, &o.svg})
        if (!path->empty()) output_files::check_writable(*path, false);
    return o;
}

}  // namespace plan_groups
