// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "result.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/library_memory.hpp"
#include "shardwise/planning/row_distribution.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"

namespace plan_rows {

namespace {

using nlohmann::ordered_json;
using OptionalNumber = std::optional<double>;

struct Tier {
    sw::Strategy strategy;
    sw::TierRows sw::TableTiers::*rows;
};

std::vector<Tier> tiers_of(const Options& o) {
    std::vector<Tier> tiers;
    if (o.plan.dp) tiers.push_back({sw::Strategy::dp, &sw::TableTiers::dp});
    if (o.plan.flex) tiers.push_back({sw::Strategy::flex, &sw::TableTiers::flex});
    tiers.push_back({sw::Strategy::row, &sw::TableTiers::row});
    return tiers;
}

double percent(double part, double all) {
    return all == 0 ? 0 : 100.0 * part / all;
}

/// Adds the cost of a table. What is not known of one is not known of all.
void add(sw::StrategyCost& to, const sw::StrategyCost& cost) {
    const auto sum = [](OptionalNumber& a, const OptionalNumber& b) {
        if (a) a = b ? OptionalNumber{*a + *b} : std::nullopt;
    };
    to.static_bytes += cost.static_bytes;
    to.elements_accessed += cost.elements_accessed;
    to.dynamic_bytes += cost.dynamic_bytes;
    to.ids += cost.ids;
    sum(to.dynamic_seconds, cost.dynamic_seconds);
    sum(to.static_seconds, cost.static_seconds);
}

/// Bytes of vectors that a sample's look-ups in a tier make.
double volume(const sw::MergedRows& rows, const sw::FlexShardPlan& plan, sw::TierRows sw::TableTiers::*tier) {
    double sum = 0;
    for (std::size_t t = 0; t < plan.tables.size(); ++t)
        sum += (plan.tables[t].*tier).lookups * rows.tables()[t].dim;
    return sum;
}

ordered_json number(const OptionalNumber& value) {
    return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json();
}

ordered_json tiers_json(const sw::TableTiers& tiers, double lookups, const Options& o) {
    ordered_json all;
    for (const Tier& tier : tiers_of(o))
        all[name_of(tier.strategy)] = {{"rows", (tiers.*tier.rows).rows},
                                       {"coverage", percent((tiers.*tier.rows).lookups, lookups)}};
    return all;
}

ordered_json point_json(const std::optional<sw::CurvePoint>& point, double lookups) {
    if (!point) return {};
    return {{"rows", point->rows},
            {"net_bytes", point->net_bytes},
            {"coverage", percent(point->lookups, lookups)},
            {"net_seconds", number(point->net_seconds)}};
}

ordered_json config_json(const Options& o) {
    const auto gigabytes = [](const OptionalNumber& bandwidth) {
        return number(bandwidth ? OptionalNumber{*bandwidth / 1e9} : std::nullopt);
    };
    const auto& b = o.scaling.bandwidths;
    constexpr std::array goals{"neutral", "memory", "communication"};
    return {{"distributions", o.tables.distributions},
            {"laws", o.tables.laws},
            {"profile", o.tables.profile},
            {"names", o.tables.names},
            {"dims", o.tables.dims},
            {"hosts", o.scaling.topology.hosts},
            {"ranks", o.scaling.topology.ranks()},
            {"batch", o.scaling.batch},
            {"tiers", tiers_text(o.plan)},
            {"cut", o.plan.cut == sw::FlexShardCut::row ? "row" : "flex"},
            {"chunk", o.chunk},
            {"model", o.library ? "library" : "paper"},
            {"multiplier", o.scaling.multiplier},
            {"goal", goals[static_cast<std::size_t>(o.plan.goal)]},
            {"budget", number(o.plan.budget)},
            {"reduction", !o.reduction                              ? "auto"
                          : *o.reduction == sw::RowReduction::dense ? "dense"
                                                                    : "touched"},
            {"a2a_global", gigabytes(b.all_to_all_global)},
            {"a2a_intra", gigabytes(b.all_to_all_intra)},
            {"ar_global", gigabytes(b.all_reduce_global)},
            {"ar_cross", gigabytes(b.all_reduce_cross)}};
}

std::string p_text(const OptionalNumber& p) {
    return !p ? "not known" : std::isinf(*p) ? "never" : *p == 0 ? "always" : fmt::format("p >= {:.6g}", *p);
}

std::string milliseconds_text(const OptionalNumber& seconds) {
    return seconds ? fmt::format("{:.2f}", 1e3 * *seconds) : "-";
}

void print_tiers(const std::string& name, const sw::TableTiers& tiers, const sw::RowDistribution* table,
                 const Result& r, const Options& o) {
    const double rows = static_cast<double>(table == nullptr ? r.rows.rows() : table->rows());
    const double lookups = table == nullptr ? r.rows.lookups() : table->lookups();
    fmt::print("{:<44} {:>14} {:>9} {:>10}\n", name, "rows", "of rows", "coverage");
    for (const Tier& tier : tiers_of(o)) {
        const sw::TierRows& of = tiers.*tier.rows;
        fmt::print("  {:<42} {:>14} {:>8.3f}% {:>9.2f}%\n", name_of(tier.strategy), of.rows,
                   percent(static_cast<double>(of.rows), rows), percent(of.lookups, lookups));
    }
}

}  // namespace

std::string bytes_text(double bytes) {
    for (const auto& [unit, size] : {std::pair{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}})
        if (std::abs(bytes) >= size) return fmt::format("{:.2f} {}", bytes / size, unit);
    return fmt::format("{:.0f} B", bytes);
}

double dp_over_row_memory(const Result& r, const Options& o, double alpha) {
    const double dim = o.tables.dims.front();
    return r.memory.bytes(sw::Strategy::dp, dim, alpha) / r.memory.bytes(sw::Strategy::row, dim, alpha);
}

sw::RowPlan row_plan(const Result& r, const Options& o) {
    if (o.tables.profile.empty()) return sw::plan_in_order(r.rows, r.plan, o.plan, o.scaling);
    sw::RowPlan rows = sw::plan_by_frequency(o.tables.access, r.plan, o.plan);
    sw::expect_touches(rows, sw::use_of(o.tables.access), o.scaling.batch, o.scaling.topology);
    return rows;
}

Result plan(const Options& o) {
    const std::vector<int>& dims = o.tables.dims;
    std::vector<sw::RowTable> tables;
    for (row_tables::Table& table : row_tables::read(o.tables))
        tables.push_back({std::move(table.name), std::move(table.distribution), dims[tables.size()]});
    for (const sw::TableAccess& table : o.tables.access.tables)
        tables.push_back(sw::row_table(table, o.tables.access.samples, dims[tables.size()]));
    Result r{.rows = sw::MergedRows{std::move(tables), o.chunk},
             .memory = o.library ? sw::library_row_memory(o.scaling) : sw::paper_row_memory(o.scaling),
             .plan = {},
             .models = {},
             .neutral = {},
             .points = {},
             .seconds = {},
             .cost = {}};
    r.plan = sw::plan_flexshard(r.rows, o.scaling, r.memory, o.plan);
    for (const bool library : {false, true}) {
        const sw::RowMemory other = library ? sw::library_row_memory(o.scaling) : sw::paper_row_memory(o.scaling);
        r.models[library ? 1 : 0] = {.name = other.name,
                                     .net_bytes = sw::net_bytes(r.rows, r.plan, other),
                                     .neutral = sw::neutral_points(o.scaling, other, o.tables.dims.front())};
    }
    r.neutral = r.models[o.library ? 1 : 0].neutral;
    r.points = sw::curve_points(r.rows, o.scaling, r.memory);
    r.seconds = sw::plan_seconds(r.rows, o.scaling, r.plan);
    for (std::size_t i = 0; i < strategies.size(); ++i)
        for (const sw::RowTable& table : r.rows.tables())
            add(r.cost[i], sw::cost_of(strategies[i], o.scaling, static_cast<double>(table.distribution.rows()),
                                       table.dim, table.distribution.lookups()));
    return r;
}

void print(const Result& r, const Options& o) {
    const sw::Topology& topology = o.scaling.topology;
    const ByModel& other = r.models[o.library ? 0 : 1];
    fmt::print("{} rows in {} table{}, {:.6g} look-ups a sample; {} hosts of {} ranks, {} samples a rank\n\n",
               r.rows.rows(), r.rows.tables().size(), r.rows.tables().size() == 1 ? "" : "s", r.rows.lookups(),
               topology.hosts, topology.ranks_per_host, o.scaling.batch);
    print_tiers("plan", r.plan.total(), nullptr, r, o);
    fmt::print("  memory of a rank against all rows in row, by the {}'s model {:+.0f} bytes ({}), by the {}'s {}\n\n",
               r.memory.name, r.plan.net_bytes, bytes_text(r.plan.net_bytes), other.name, bytes_text(other.net_bytes));
    if (r.plan.tables.size() > 1)
        for (std::size_t t = 0; t < r.plan.tables.size(); ++t)
            print_tiers(fmt::format("{}, dim {}", r.rows.tables()[t].name, r.rows.tables()[t].dim), r.plan.tables[t],
                        &r.rows.tables()[t].distribution, r, o);

    const auto print_neutral = [&](const char* name, double sw::NeutralPoints::*memory,
                                   OptionalNumber sw::NeutralPoints::*communication) {
        fmt::print("  {:<22} {:>20} {:>22} {:>20}\n", name, p_text(r.models[0].neutral.*memory),
                   p_text(r.models[1].neutral.*memory), p_text(r.neutral.*communication));
    };
    fmt::print("{:<24} {:>20} {:>22} {:>20}\n", fmt::format("a row of {} pays where", o.tables.dims.front()),
               "in memory: paper", "in memory: library", "in communication");
    print_neutral("dp instead of row", &sw::NeutralPoints::memory_dp_row, &sw::NeutralPoints::communication_dp_row);
    print_neutral("dp instead of flex", &sw::NeutralPoints::memory_dp_flex, &sw::NeutralPoints::communication_dp_flex);
    print_neutral("flex instead of row", &sw::NeutralPoints::memory_flex_row,
                  &sw::NeutralPoints::communication_flex_row);
    fmt::print("\n");

    fmt::print("{:<44} {:>14} {:>10} {:>14} {:>12}\n", "dp instead of row, ever more rows", "rows", "coverage",
               "memory", "ms a step");
    const auto print_point = [&](const char* name, const std::optional<sw::CurvePoint>& point, const char* none) {
        if (point)
            fmt::print("  {:<42} {:>14} {:>9.2f}% {:>14} {:>12}\n", name, point->rows,
                       percent(point->lookups, r.rows.lookups()), bytes_text(point->net_bytes),
                       milliseconds_text(point->net_seconds));
        else
            fmt::print("  {:<42} {}\n", name, none);
    };
    print_point("A, the least memory", r.points.a, "does not exist: no row saves memory");
    print_point("B, memory as with all rows in row", r.points.b,
                r.points.a ? "does not exist: all rows together save memory" : "does not exist: no row saves memory");
    print_point("C, the least communication", r.points.c,
                knows_seconds(o.scaling, false) ? "does not exist: no row saves communication"
                                                : "not known: give --a2a-global and --ar-global");
    print_point("D, all rows", r.points.d, "");

    fmt::print("\n{:<12} {:>12} {:>12} {:>14} {:>14} {:>18} {:>18}\n", "all rows in", "static", "dynamic",
               "elements read", "ids sent", "ms, one direction", "ms of gradients");
    for (std::size_t i = 0; i < strategies.size(); ++i) {
        const sw::StrategyCost& cost = r.cost[i];
        fmt::print("  {:<10} {:>12} {:>12} {:>14.4g} {:>14.4g} {:>18} {:>18}\n", name_of(strategies[i]),
                   bytes_text(cost.static_bytes), bytes_text(cost.dynamic_bytes), cost.elements_accessed, cost.ids,
                   milliseconds_text(cost.dynamic_seconds), milliseconds_text(cost.static_seconds));
    }
    const OptionalNumber hidden = r.seconds.speedup(true);
    const OptionalNumber exposed = r.seconds.speedup(false);
    if (hidden || exposed)
        fmt::print(
            "\nms a step: all-to-all {} global (all rows in row: {}), {} inside hosts; all-reduce {} global, {} across "
            "hosts\n",
            milliseconds_text(r.seconds.all_to_all_global), milliseconds_text(r.seconds.row_only),
            milliseconds_text(r.seconds.all_to_all_intra), milliseconds_text(r.seconds.all_reduce_global),
            milliseconds_text(r.seconds.all_reduce_cross));
    if (hidden) fmt::print("{:.2f} times as fast as all rows in row, the all-reduce across hosts hidden\n", *hidden);
    if (exposed)
        fmt::print("{:.2f} times as fast as all rows in row, the all-reduce across hosts not hidden\n", *exposed);
}

ordered_json to_json(const Result& r, const Options& o) {
    const double lookups = r.rows.lookups();
    ordered_json tiers = tiers_json(r.plan.total(), lookups, o);
    double all = 0;
    for (const Tier& tier : tiers_of(o))
        all += volume(r.rows, r.plan, tier.rows);
    for (const Tier& tier : tiers_of(o))
        tiers[name_of(tier.strategy)]["volume"] = percent(volume(r.rows, r.plan, tier.rows), all);
    ordered_json tables = ordered_json::array();
    for (std::size_t t = 0; t < r.plan.tables.size(); ++t) {
        const sw::RowTable& table = r.rows.tables()[t];
        tables.push_back({{"name", table.name},
                          {"rows", table.distribution.rows()},
                          {"dim", table.dim},
                          {"lookups_per_sample", table.distribution.lookups()},
                          {"tiers", tiers_json(r.plan.tables[t], table.distribution.lookups(), o)}});
    }
    ordered_json cost;
    for (std::size_t i = 0; i < strategies.size(); ++i)
        cost[name_of(strategies[i])] = {{"static_bytes", r.cost[i].static_bytes},
                                        {"dynamic_bytes", r.cost[i].dynamic_bytes},
                                        {"elements_accessed", r.cost[i].elements_accessed},
                                        {"ids", r.cost[i].ids},
                                        {"dynamic_seconds", number(r.cost[i].dynamic_seconds)},
                                        {"static_seconds", number(r.cost[i].static_seconds)}};
    ordered_json ratios = ordered_json::array();
    for (int exponent = -6; exponent <= 0; ++exponent) {
        const double alpha = std::pow(10.0, exponent);
        ratios.push_back({{"alpha", alpha},
                          {"memory", dp_over_row_memory(r, o, alpha)},
                          {"communication", number(sw::dp_over_row(o.scaling, alpha).communication)}});
    }
    ordered_json models;
    for (const ByModel& model : r.models)
        models[model.name] = {{"net_bytes", model.net_bytes},
                              {"memory_dp_row", number(model.neutral.memory_dp_row)},
                              {"memory_dp_flex", number(model.neutral.memory_dp_flex)},
                              {"memory_flex_row", number(model.neutral.memory_flex_row)}};
    return {{"config", config_json(o)},
            {"rows", r.rows.rows()},
            {"lookups_per_sample", lookups},
            {"tiers", tiers},
            {"tables", tables},
            {"net_bytes", r.plan.net_bytes},
            {"models", models},
            {"neutral",
             {{"memory_dp_row", number(r.neutral.memory_dp_row)},
              {"memory_dp_flex", number(r.neutral.memory_dp_flex)},
              {"memory_flex_row", number(r.neutral.memory_flex_row)},
              {"communication_dp_row", number(r.neutral.communication_dp_row)},
              {"communication_dp_flex", number(r.neutral.communication_dp_flex)},
              {"communication_flex_row", number(r.neutral.communication_flex_row)}}},
            {"points",
             {{"A", point_json(r.points.a, lookups)},
              {"B", point_json(r.points.b, lookups)},
              {"C", point_json(r.points.c, lookups)},
              {"D", point_json(r.points.d, lookups)}}},
            {"cost", cost},
            {"dp_over_row", ratios},
            {"seconds",
             {{"row_only", number(r.seconds.row_only)},
              {"all_to_all_global", number(r.seconds.all_to_all_global)},
              {"all_to_all_intra", number(r.seconds.all_to_all_intra)},
              {"all_reduce_global", number(r.seconds.all_reduce_global)},
              {"all_reduce_cross", number(r.seconds.all_reduce_cross)}}},
            {"speedup",
             {{"cross_hidden", number(r.seconds.speedup(true))}, {"cross_exposed", number(r.seconds.speedup(false))}}}};
}

}  // namespace plan_rows
