// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "expected_rounds.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/dot.hpp"
#include "shardwise/tower/parameters.hpp"

/// \file
/// Writes the rounds of a training step on a cluster that need not be there, as the cost reader predicts them:
/// who sends how many bytes to whom. `replay` sends them. Of batches that are drawn here, or with laws of batches that
/// nobody draws, in expectation.

namespace {

namespace sw = shardwise;

struct Arguments {
    sw::Topology topology{.hosts = 2, .ranks_per_host = 8};
    std::int64_t batch = 16384;
    int features = 26;
    int dim = 128;
    int bag = 1;
    std::int64_t rows = 1'000'000;
    std::string collective = "flat";
    std::string sharding = "col4";
    int compression = 1;
    std::string out;
    exchange_schedule::LawArguments law;  // what has no effect on drawn batches
    bool apart = false;
    int groups = 1;
    std::string group_placement = "across";
    std::int64_t sync_every = 1;
    std::string sync = "touched";

    [[nodiscard]] sw::GroupOptions group_options() const {
        if (groups == 1) return {};
        return {.count = groups,
                .placement =
                    group_placement == "inside" ? sw::GroupPlacement::inside_hosts : sw::GroupPlacement::across_hosts,
                .sync_every = sync_every,
                .rows = sync == "all" ? sw::SyncRows::all : sw::SyncRows::touched};
    }
};

using Make = sw::LayerBlueprint (*)(const Arguments&);

std::vector<sw::TableConfig> tables_of(const Arguments& a) {
    std::vector<sw::TableConfig> tables;
    for (int f = 0; f < a.features; ++f)
        tables.push_back({.name = fmt::format("C{}", f + 1), .rows = a.rows, .dim = a.dim});
    return tables;
}

template <class S, class C>
sw::LayerBlueprint passing(const Arguments& a) {
    return sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Optimizer<sw::Sgd>>::blueprint(
        a.topology, tables_of(a), {.groups = a.group_options()});
}
template <class S>
sw::LayerBlueprint compressing(const Arguments& a) {
    return sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<sw::Hierarchical>, sw::Optimizer<sw::Sgd>,
                              sw::Tower<sw::Dot>>::blueprint(a.topology, tables_of(a), {.groups = a.group_options()},
                                                             {},
                                                             {.per_feature = 1,
                                                              .per_tower = 0,
                                                              .dimension = a.dim / a.compression});
}

const std::map<std::string, Make>& compositions() {
    static const std::map<std::string, Make> all{
        {"flat/table", &passing<sw::Table, sw::Flat>},
        {"flat/row", &passing<sw::Row, sw::Flat>},
        {"flat/col", &passing<sw::Col<>, sw::Flat>},
        {"flat/col2", &passing<sw::Col<2>, sw::Flat>},
        {"flat/col4", &passing<sw::Col<4>, sw::Flat>},
        {"flat/col8", &passing<sw::Col<8>, sw::Flat>},
        {"flat/col16", &passing<sw::Col<16>, sw::Flat>},
        {"two_stage/row", &passing<sw::Row, sw::TwoStage>},
        {"hierarchical/table", &passing<sw::Table, sw::Hierarchical>},
        {"hierarchical/row", &passing<sw::Row, sw::Hierarchical>},
        {"hierarchical/col", &passing<sw::Col<>, sw::Hierarchical>},
        {"hierarchical/col4", &passing<sw::Col<4>, sw::Hierarchical>},
        {"hierarchical/col8", &passing<sw::Col<8>, sw::Hierarchical>},
        {"hierarchical/col16", &passing<sw::Col<16>, sw::Hierarchical>},
        {"modules/table", &compressing<sw::Table>},
        {"modules/row", &compressing<sw::Row>},
        {"modules/col", &compressing<sw::Col<>>},
    };
    return all;
}

/// A batch a rank: `samples` with ids drawn uniformly, `times` times over.
std::vector<sw::JaggedBatch<std::int64_t>> batches(const Arguments& a, std::int64_t samples, int times) {
    std::vector<sw::JaggedBatch<std::int64_t>> all;
    for (int rank = 0; rank < a.topology.ranks(); ++rank) {
        auto& batch = all.emplace_back();
        batch.samples = samples * times;
        batch.features = a.features;
        for (int f = 0; f < a.features; ++f)
            for (int time = 0; time < times; ++time) {
                sw::KeyedRandom random{7, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(f)};
                for (std::int64_t i = 0; i < samples * a.bag; ++i)
                    batch.values.push_back(random.below(a.rows));
                if (a.bag != 1)
                    batch.lengths.insert(batch.lengths.end(), static_cast<std::size_t>(samples),
                                         static_cast<std::int32_t>(a.bag));
            }
    }
    return all;
}

sw::LayerCost predict(const sw::LayerBlueprint& layer, const Arguments& a, std::int64_t samples, int times) {
    const auto all = batches(a, samples, times);
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const auto& batch : all)
        views.push_back(batch.view());
    return layer.predict_cost(views);
}

/// The rounds of a step with `a.batch` samples a rank. What all ranks send is linear in the number of samples where
/// their ids repeat, so two short batches say it. Where rows are split, few ids fall unevenly: 1024 samples then.
std::vector<sw::SegmentCost> rounds(const sw::LayerBlueprint& layer, const Arguments& a) {
    const std::int64_t few = a.sharding == "row" ? std::min<std::int64_t>(1024, a.batch) : 64;
    const sw::LayerCost once = predict(layer, a, few, 1);
    sw::LayerCost twice = predict(layer, a, few, 2);
    const auto stretch = [&](std::int64_t one, std::int64_t two) { return one + (two - one) * (a.batch - few) / few; };
    for (std::size_t i = 0; i < once.segments.size(); ++i)
        for (int from = 0; from < a.topology.ranks(); ++from)
            for (int to = 0; to < a.topology.ranks(); ++to) {
                const sw::TierTraffic& one = once.segments[i].traffic.at(from, to);
                sw::TierTraffic& cell = twice.segments[i].traffic.at(from, to);
                cell.payload = stretch(one.payload, cell.payload);
                cell.control = stretch(one.control, cell.control);
            }
    return std::move(twice.segments);
}

/// "ids", "vectors" or "gradients".
std::string kind_of(const sw::LayerBlueprint& layer, const sw::SegmentCost& round) {
    const std::string name = layer.traits().program.segments[round.segment].posts.front().name;
    for (const auto& [part, kind] :
         std::map<std::string, std::string>{{"Ids", "ids"}, {"Vectors", "vectors"}, {"Gradients", "gradients"}})
        if (name.find(part) != std::string::npos) return kind;
    return "other";
}

nlohmann::json tier(const sw::TierTraffic& t) {
    return {{"payload", t.payload}, {"control", t.control}, {"messages", t.messages}};
}

using exchange_schedule::Round;

/// Of a step, and of its rounds.
nlohmann::json summary_of(const Arguments& a, const std::vector<Round>& rounds) {
    const sw::Cluster a100{};
    const sw::Cluster h100{.host = {.latency = 2e-6, .bandwidth = 450e9},
                           .cross_host = {.latency = 5e-6, .bandwidth = 50e9}};
    nlohmann::json all{{"hosts", a.topology.hosts},
                       {"ranks_per_host", a.topology.ranks_per_host},
                       {"batch", a.batch},
                       {"groups", a.groups},
                       {"rounds", nlohmann::json::array()}};
    for (const Round& round : rounds) {
        const sw::Traffic total = round.traffic.total();
        nlohmann::json& one = all["rounds"].emplace_back(nlohmann::json{
            {"kind", round.kind},
            {"host", tier(total.host)},
            {"cross_host", tier(total.cross_host)},
            {"predicted_us",
             {{"A100", 1e6 * sw::seconds(round.traffic, a100)}, {"H100", 1e6 * sw::seconds(round.traffic, h100)}}}});
        if (!round.tier.empty()) one["tier"] = round.tier;
    }
    return all;
}

/// What `replay` reads; a tier's rounds are called TIER/KIND.
void write(const Arguments& a, const std::vector<Round>& rounds) {
    if (a.out.empty()) return;
    std::ofstream file{a.out};
    file << a.topology.ranks() << " " << rounds.size() << "\n";
    for (const Round& round : rounds) {
        file << (round.tier.empty() ? "" : round.tier + "/") << round.kind << "\n";
        for (int from = 0; from < a.topology.ranks(); ++from)
            for (int to = 0; to < a.topology.ranks(); ++to) {
                const sw::TierTraffic& cell = round.traffic.at(from, to);
                file << cell.payload + cell.control << (to + 1 == a.topology.ranks() ? "\n" : " ");
            }
    }
    if (!file.flush()) throw sw::BadInput{a.out + ": cannot be written"};
}

/// Of the model that the paper measures: bottom 512-256-D, top 1024-1024-512-256-1, with modules 1024-512-256-1.
double mflops(const sw::LayerBlueprint& layer, const Arguments& a) {
    const int dim = a.dim / a.compression;
    sw::DlrmConfig model{.dense_features = 13,
                         .dimension = dim,
                         .features = layer.features().width / dim,
                         .bottom = {512, 256, dim},
                         .top = {1024, 1024, 512, 256, 1}};
    if (layer.has_modules()) model.top.erase(model.top.begin());
    double flops = static_cast<double>(sw::DlrmDense::flops(model));
    for (const sw::TowerShape& shape : layer.towers().shapes)
        flops += static_cast<double>(sw::Dot::flops({.per_feature = 1, .per_tower = 0, .dimension = dim}, shape));
    return 1e-6 * flops;
}

/// Ids that are drawn uniformly, as a workload.
sw::Workload uniform(const Arguments& a) {
    const auto rows = static_cast<double>(a.rows);
    sw::Workload workload{.samples = a.batch, .weighted = false, .tables = {}, .lengths = {}};
    for (const sw::TableConfig& table : tables_of(a)) {
        workload.tables.push_back({.table = table.name,
                                   .runs = {{.p = a.bag / rows, .q = sw::chance_of(1 / rows, a.bag), .rows = a.rows}},
                                   .rows = {}});
        workload.lengths.push_back(sw::BagLengths::fixed(a.bag));
    }
    return workload;
}

int run(const Arguments& a) {
    const std::string name = a.collective + "/" + a.sharding;
    const auto found = compositions().find(name);
    if (found == compositions().end()) {
        std::vector<std::string> known;
        for (const auto& [key, make] : compositions())
            known.push_back(key);
        throw sw::BadInput{fmt::format("--collective and --sharding {}: give one of {}", name, fmt::join(known, ", "))};
    }
    if (a.batch % 64 != 0) throw sw::BadInput{fmt::format("--batch {}: give a multiple of 64", a.batch)};
    if (a.compression < 1 || a.dim % a.compression != 0)
        throw sw::BadInput{fmt::format("--compression {}: give a divisor of --dim {}", a.compression, a.dim)};
    if (a.collective != "modules" && a.compression != 1)
        throw sw::BadInput{"--compression without --collective modules has no effect: leave it out"};
    const sw::LayerBlueprint layer = found->second(a);
    std::vector<Round> all;
    for (sw::SegmentCost& round : rounds(layer, a))
        all.push_back({.tier = "", .kind = kind_of(layer, round), .traffic = std::move(round.traffic)});
    if (a.groups > 1)
        for (Round& round : exchange_schedule::sync_rounds(layer, layer.expect_cost(uniform(a))))
            all.push_back(std::move(round));
    nlohmann::json summary = summary_of(a, all);
    summary["composition"] = name;
    summary["compression"] = a.compression;
    summary["mflops"] = mflops(layer, a);
    write(a, all);
    fmt::print("{}\n", summary.dump());
    return 0;
}

/// The same of laws.
int run_law(const Arguments& a) {
    exchange_schedule::LawArguments law = a.law;
    law.topology = a.topology;
    law.batch = a.batch;
    law.dim = a.dim;
    law.collective = a.collective;
    law.sharding = a.sharding;
    law.groups = a.group_options();
    exchange_schedule::ExpectedRounds expected = exchange_schedule::expected_rounds(law);
    std::vector<Round> all = std::move(expected.rounds);
    if (a.apart) std::move(expected.apart.begin(), expected.apart.end(), std::back_inserter(all));
    nlohmann::json summary = summary_of(a, all);
    summary["composition"] = a.collective + "/" + a.sharding;
    summary["pooling"] = law.pooling;
    summary["lookups"] = expected.lookups;
    summary["tiers"] = nlohmann::ordered_json::object();
    for (const exchange_schedule::PlannedTier& tier : expected.tiers)
        summary["tiers"][tier.name] = {
            {"rows", tier.rows},
            {"coverage", 100.0 * tier.coverage},
            {"touched", {{"rank", tier.touched_rank}, {"host", tier.touched_host}, {"world", tier.touched_world}}}};
    write(a, all);
    fmt::print("{}\n", summary.dump());
    return 0;
}

/// \throws BadInput for an option that would change nothing
void check_effects(const CLI::App& app, const Arguments& a) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    const bool law = given("--law");
    for (const char* flag : {"--features", "--rows", "--bag", "--compression"})
        if (law && given(flag))
            throw sw::BadInput{
                fmt::format("{} has no effect with --law: each law is a table of one feature with its own "
                            "rows and look-ups, so leave it out",
                            flag)};
    for (const char* flag : {"--tiers", "--cut", "--pooling", "--reduction", "--apart"})
        if (!law && given(flag))
            throw sw::BadInput{fmt::format("{} has no effect without --law: give a law a table", flag)};
    for (const char* flag : {"--tiers", "--cut", "--reduction", "--apart"})
        if (law && a.sharding != "tiered" && given(flag))
            throw sw::BadInput{fmt::format("{} has no effect with --sharding {}: it is of tiers", flag, a.sharding)};
    for (const char* flag : {"--group-placement", "--sync-every", "--sync"})
        if (a.groups == 1 && given(flag))
            throw sw::BadInput{fmt::format("{} without --groups has no effect: give both, or leave it out", flag)};
    if (a.group_placement != "across" && a.group_placement != "inside")
        throw sw::BadInput{fmt::format("--group-placement '{}': give across or inside", a.group_placement)};
    if (a.sync != "touched" && a.sync != "all")
        throw sw::BadInput{fmt::format("--sync '{}': give touched or all", a.sync)};
    if (given("--cut") && a.law.tiers == "dp,row")
        throw sw::BadInput{"--cut has no effect with --tiers dp,row: it says where DP ends and Flex begins"};
    if (!law && (a.sharding == "tiered" || a.sharding == "flex" || a.sharding == "dp"))
        throw sw::BadInput{fmt::format("--sharding {} needs --law: give a law a table", a.sharding)};
    if (law && a.collective == "modules")
        throw sw::BadInput{"--collective modules does not go with --law: give flat, two_stage or hierarchical"};
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CLI::App app{
        "Writes the rounds of a training step of embedding tables on a cluster, as the cost reader predicts them:\n"
        "ranks and rounds; then of each round its kind, and the bytes from each rank to each rank. Prints a summary "
        "as JSON.\n"
        "Ids are drawn uniformly; with --law none are drawn, and bytes are those expected of the law.",
        "exchange_schedule"};
    app.option_defaults()->always_capture_default();
    app.add_option("--hosts", a.topology.hosts, "Hosts")->check(CLI::Range(1, 64));
    app.add_option("--ranks-per-host", a.topology.ranks_per_host, "Ranks a host")->check(CLI::Range(1, 64));
    app.add_option("--batch", a.batch, "Samples a rank")->check(CLI::Range(1, 1 << 20));
    app.add_option("--features", a.features, "Tables, one feature each")->check(CLI::Range(1, 1000));
    app.add_option("--dim", a.dim, "Columns of a table")->check(CLI::Range(1, 4096));
    app.add_option("--bag", a.bag, "Ids a feature and sample")->check(CLI::Range(1, 1000));
    app.add_option("--rows", a.rows, "Rows of a table")->check(CLI::Range(1, 1 << 30));
    app.add_option("--collective", a.collective, "flat, two_stage, hierarchical, or modules: hierarchical with Dot");
    app.add_option("--sharding", a.sharding,
                   "table, row, col (a block of columns a rank) or col<blocks a table>; with --law: row, flex, dp, "
                   "table, col, col1 to col16 (placed by load), or tiered: rows of each table by FlexShard's plan, in "
                   "as much memory as row");
    app.add_option("--compression", a.compression, "With modules: how many times as wide their input is");
    app.add_option("--law", a.law.laws,
                   "A table and how often its rows are looked up, as plan_rows --law; once a table. In place of "
                   "--features, --rows and --bag")
        ->default_str("")
        ->type_name("LAW");
    app.add_option("--tiers", a.law.tiers, "With tiered: dp,flex,row or dp,row");
    app.add_option("--cut", a.law.cut,
                   "With tiers dp,flex,row: rows in dp end where they would take more memory than in row, or in flex");
    app.add_option("--reduction", a.law.reduction,
                   "With tiered: sums of replicated rows travel as touched rows, dense, or auto: whichever is less");
    app.add_option("--pooling", a.law.pooling, "With --law: sum, mean, or none for sequences");
    app.add_flag("--apart", a.apart,
                 "With tiered: behind all rounds the same bytes again, each tier's by itself, as TIER/KIND");
    app.add_option("--groups", a.groups,
                   "Replica groups: exchanges inside each, and behind them a sync of copies, as sync_rows (who touched "
                   "which), sync_copies and sync_means; of touched rows in expectation")
        ->check(CLI::Range(1, 4096));
    app.add_option("--group-placement", a.group_placement, "across or inside hosts");
    app.add_option("--sync-every", a.sync_every, "Steps from one sync to the next")->check(CLI::Range(1, 1 << 30));
    app.add_option("--sync", a.sync, "Rows that a sync moves: touched or all");
    app.add_option("--out", a.out, "File for the rounds")->default_str("");
    try {
        app.parse(argc, argv);
        check_effects(app, a);
        return a.law.laws.empty() ? run(a) : run_law(a);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "exchange_schedule: {}\n", error.what());
    } catch (const std::exception& error) {
        fmt::print(stderr, "exchange_schedule: {}\n", error.what());
    }
    return 2;
}
