// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "expected_rounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "shardwise/core/error.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/plan/expect.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/scaling.hpp"
#include "shardwise/planning/table_balance.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/row_plan.hpp"

namespace exchange_schedule {

namespace {

namespace sw = shardwise;

/// What a word stands for. \throws BadInput for any other
template <class Value>
Value one_of(const char* flag, const std::string& word, const std::map<std::string, Value>& meanings) {
    const auto found = meanings.find(word);
    if (found != meanings.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, value] : meanings)
        known.push_back(name);
    throw sw::BadInput{fmt::format("{} {}: give one of {}", flag, word, fmt::join(known, "; "))};
}

/// The library's, and blocks of columns placed by load.
sw::KnownPolicies policies() {
    sw::KnownPolicies known;
    known.add_sharding<sw::Col<1>>().add_sharding<sw::Col<2>>().add_sharding<sw::Col<4>>();
    return known.add_sharding<sw::Col<8>>().add_sharding<sw::Col<16>>();
}

std::string table_name(std::size_t table) {
    return fmt::format("T{}", table + 1);
}

struct Planned {
    sw::RowPlan rows;
    sw::TableTiers total;
};

Planned plan_of(const LawArguments& a, const std::vector<sw::RowDistribution>& laws, bool flex) {
    std::vector<sw::RowTable> tables;
    for (std::size_t t = 0; t < laws.size(); ++t)
        tables.push_back({.name = table_name(t), .distribution = laws[t], .dim = a.dim});
    const sw::Scaling scaling{.topology = a.topology, .batch = a.batch};
    const auto cut =
        one_of<sw::FlexShardCut>("--cut", a.cut, {{"row", sw::FlexShardCut::row}, {"flex", sw::FlexShardCut::flex}});
    const sw::MergedRows rows{std::move(tables), a.topology.ranks()};
    const sw::FlexShardOptions options{.flex = flex, .cut = cut};
    const sw::FlexShardPlan plan = sw::plan_flexshard(rows, scaling, sw::paper_row_memory(scaling), options);
    return {.rows = sw::plan_in_order(rows, plan, options, scaling), .total = plan.total()};
}

std::string kind_of(const std::string& step) {
    constexpr std::array<std::pair<const char*, const char*>, 6> kinds{{{"Ids", "ids"},
                                                                        {"Vectors", "vectors"},
                                                                        {"Gradients", "gradients"},
                                                                        {"Agree", "agree"},
                                                                        {"Norms", "norms"},
                                                                        {"Row", "sums"}}};
    for (const auto& [part, kind] : kinds)
        if (step.find(part) != std::string::npos) return kind;
    return "others";
}

/// A round, and each tier's part of it.
void add_round(ExpectedRounds& all, const sw::LayerBlueprint& layer, const std::vector<std::string>& tiers,
               const sw::SegmentCost& cost) {
    const std::vector<sw::Instruction>& posts = layer.traits().program.segments[cost.segment].posts;
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < posts.size(); ++i) {
        const std::string kind = kind_of(posts[i].name);
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
        if (!tiers.empty())
            all.apart.push_back({.tier = tiers[posts[i].branch.front()], .kind = kind, .traffic = cost.steps[i]});
    }
    all.rounds.push_back({.tier = "", .kind = fmt::format("{}", fmt::join(kinds, "+")), .traffic = cost.traffic});
}

}  // namespace

std::vector<Round> sync_rounds(const sw::LayerBlueprint& layer, const sw::ExpectedLayerCost& cost) {
    const std::map<std::string, std::string> kinds{
        {"TellTouched", "sync_rows"}, {"GatherCopies", "sync_copies"}, {"SpreadMeans", "sync_means"}};
    std::vector<Round> rounds;
    for (sw::SegmentCost& round : sw::rounded(cost.sync_segments))
        rounds.push_back({.tier = "",
                          .kind = kinds.at(layer.groups().sync.segments[round.segment].posts.front().name),
                          .traffic = std::move(round.traffic)});
    return rounds;
}

ExpectedRounds expected_rounds(const LawArguments& a) {
    std::vector<sw::RowDistribution> laws;
    std::vector<sw::TableConfig> tables;
    ExpectedRounds all;
    for (const std::string& law : a.laws) {
        laws.push_back(sw::row_law(law));
        tables.push_back({.name = table_name(tables.size()), .rows = laws.back().rows(), .dim = a.dim});
        all.lookups += laws.back().lookups();
    }
    const bool tiered = a.sharding == "tiered";
    const auto tiers = one_of<std::vector<std::string>>(
        "--tiers", a.tiers, {{"dp,flex,row", {"dp", "flex", "row"}}, {"dp,row", {"dp", "row"}}});
    const auto reduction = one_of<std::optional<sw::RowReduction>>(
        "--reduction", a.reduction,
        {{"auto", std::nullopt}, {"touched", sw::RowReduction::touched}, {"dense", sw::RowReduction::dense}});
    const sw::Workload workload = sw::workload_of(laws, tables, a.batch);
    sw::set_loads(tables, workload);
    const sw::LayerNames names{.shardings = tiered ? tiers : std::vector{a.sharding},
                               .tiered = tiered,
                               .collective = a.collective,
                               .optimizer = "sgd",
                               .pooling = a.pooling};
    sw::RowPlan rows;
    if (tiered) {
        Planned plan = plan_of(a, laws, tiers.size() == 3);
        rows = std::move(plan.rows);
        for (sw::TableRowPlan& table : rows.tables)
            table.reduction = reduction;
        const sw::TableTiers& total = plan.total;
        for (const std::string& tier : tiers) {
            const sw::TierRows& of = tier == "dp" ? total.dp : tier == "flex" ? total.flex : total.row;
            all.tiers.push_back({.name = tier, .rows = of.rows, .coverage = of.lookups / all.lookups});
        }
    } else {
        all.tiers.push_back({.name = a.sharding, .rows = 0, .coverage = 1.0});
        for (const sw::TableConfig& table : tables)
            all.tiers[0].rows += table.rows;
    }
    const sw::LayerBlueprint layer =
        sw::draw_layer(a.topology, tables, names, {.groups = a.groups, .rows = tiered ? &rows : nullptr}, policies());
    const sw::ExpectedLayerCost cost = layer.expect_cost(workload);
    for (std::size_t part = 0; part < cost.touched.size(); ++part)
        for (const auto& touched : cost.touched[part]) {
            all.tiers[part].touched_rank += touched.rank;
            all.tiers[part].touched_host += touched.host;
            all.tiers[part].touched_world += touched.world;
        }
    for (const sw::SegmentCost& round : sw::rounded(cost.segments))
        add_round(all, layer, tiered ? tiers : std::vector<std::string>{}, round);
    for (Round& round : sync_rounds(layer, cost))
        all.rounds.push_back(std::move(round));
    return all;
}

}  // namespace exchange_schedule
