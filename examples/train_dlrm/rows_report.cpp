// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rows_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shardwise/core/at.hpp"

namespace train_dlrm {

namespace {

using nlohmann::json;

void add(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& numbers, int sign) {
    to.resize(std::max(to.size(), numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        to[i] += sign * numbers[i];
}

/// How evenly ranks look up rows: "1.004 (dp 1.000, row 1.012)".
std::string balance_text(const RowsReport& report) {
    std::string tiers;
    for (const RowTier& tier : report.tiers)
        if (std::isfinite(max_over_mean(tier.looked_up)))
            tiers += fmt::format("{}{} {:.3f}", tiers.empty() ? "" : ", ", tier.name, max_over_mean(tier.looked_up));
    return fmt::format("{:.3f}{}", max_over_mean(report.looked_up), tiers.empty() ? "" : " (" + tiers + ")");
}

/// Of coalesced requests: how many of the look-ups travelled.
std::string requests_text(const RowsReport& report, const std::string& head) {
    if (!report.distinct) return "";
    return fmt::format(
        "{}{} look-ups of {} distinct rows: each travelled once for {:.2f} look-ups\n", head, report.asked,
        *report.distinct,
        static_cast<double>(report.asked) / static_cast<double>(std::max<std::int64_t>(*report.distinct, 1)));
}

/// "12.34%"; of nothing at all "none".
std::string percent_text(double percent, const char* sign = "%") {
    return std::isfinite(percent) ? fmt::format("{:.2f}{}", percent, sign) : "none";
}

/// Calls use(feature, id) for every id of a batch.
template <class Use>
void for_ids(const sw::JaggedView<std::int64_t>& batch, Use use) {
    const std::int64_t* id = batch.values.data();
    for (std::int64_t bag = 0; bag < batch.bags(); ++bag)
        for (std::int64_t left = batch.length(bag); left > 0; --left)
            use(static_cast<int>(bag / batch.samples), *id++);
}

/// The feature of a layer's plans that a feature of the layer is for them: coalesced, the one of its table.
int feature_of_plans(const sw::LayerBlueprint& layer, int feature) {
    const auto& tables = layer.coalesced_tables().tables;
    for (std::size_t t = 0; t < tables.size(); ++t)
        if (feature >= tables[t].first && feature < tables[t].end) return static_cast<int>(t);
    return feature;
}
/// Calls use(feature of the plans, id) for every id that a batch asks for: coalesced, each of a table once.
template <class Use>
void for_requests(const sw::LayerBlueprint& layer, const sw::JaggedView<std::int64_t>& batch, Use use) {
    std::set<std::pair<int, std::int64_t>> before;
    for_ids(batch, [&](int f, std::int64_t id) {
        const int feature = feature_of_plans(layer, f);
        if (!layer.traits().coalesced || before.emplace(feature, id).second) use(feature, id);
    });
}

/// Adds the rows that each rank's tables look up for the ids of `rank` that are in the part, in number `tier`.
void look_up(const sw::LayerBlueprint& layer, std::size_t part, int rank, const sw::JaggedView<std::int64_t>& batch,
             RowsReport& report) {
    const sw::Placement& placement = layer.parts()[part].placement;
    const sw::RowTiers& tiers = layer.row_tiers();
    const std::size_t tier = tiers.tiers == 0 ? 0 : tiers.tier_of(part, layer.parts().size());
    std::vector<const sw::FeaturePlacement*> placed(layer.features().names.size());
    for (const sw::FeaturePlacement& feature : placement.features)
        sw::at(placed, feature.feature) = &feature;
    for_requests(layer, batch, [&](int f, std::int64_t id) {
        const sw::FeaturePlacement* feature = sw::at(placed, f);
        if (feature == nullptr) return;
        if (tiers.tiers != 0 && sw::at(tiers.features, f).map->tier(id) != static_cast<int>(tier)) return;
        const sw::TablePlacement& table = sw::at(placement.tables, feature->table);
        const int shard = placement.splits == sw::Splits::rows ? table.map->place(id).shard : -1;
        for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
            if (shard != -1 && s != shard) continue;
            const int owner = placement.owner(rank, sw::at(table.shards, s));
            ++sw::at(report.looked_up, owner);
            if (!report.tiers.empty()) ++sw::at(report.tiers[tier].looked_up, owner);
        }
    });
}

}  // namespace

LookUps& LookUps::operator+=(const LookUps& more) {
    add(by_tier, more.by_tier, 1);
    unseen += more.unseen;
    distinct += more.distinct;
    add(looked_up, more.looked_up, 1);
    return *this;
}

LookUps& LookUps::operator-=(const LookUps& less) {
    add(by_tier, less.by_tier, -1);
    unseen -= less.unseen;
    distinct -= less.distinct;
    add(looked_up, less.looked_up, -1);
    return *this;
}

LookUps look_ups_of(const sw::LayerBase& layer) {
    const sw::RowCounts& counts = layer.row_counts();
    return {.by_tier = counts.lookups,
            .unseen = counts.unseen,
            .distinct = layer.request_counts().distinct,
            .looked_up = layer.looked_up_rows()};
}

double RowsReport::coverage(const RowTier& tier) const {
    std::int64_t all = 0;
    for (const RowTier& one : tiers)
        all += one.lookups;
    return 100 * static_cast<double>(tier.lookups) / static_cast<double>(all);
}

double max_over_mean(const std::vector<std::int64_t>& looked_up) {
    if (looked_up.empty()) return 0;
    const auto sum = static_cast<double>(std::accumulate(looked_up.begin(), looked_up.end(), std::int64_t{0}));
    return static_cast<double>(*std::max_element(looked_up.begin(), looked_up.end())) *
           static_cast<double>(looked_up.size()) / sum;
}

bool RowsReport::as_predicted() const {
    std::int64_t sum = 0;
    for (const RowTier& tier : tiers) {
        if (tier.payload != tier.predicted_payload) return false;
        sum += tier.payload;
    }
    return tiers.empty() || sum == payload;
}

RowsReport rows_of(const sw::RowPlan& plan) {
    RowsReport report;
    const std::vector<double> expected = sw::expected_coverage(plan);
    for (std::size_t tier = 0; tier < plan.tiers.size(); ++tier) {
        RowTier& row = report.tiers.emplace_back();
        row.name = plan.tiers[tier];
        for (const sw::TableRowPlan& table : plan.tables)
            row.rows += table.tiers[tier];
        if (!expected.empty()) row.expected = 100 * expected[tier];
    }
    return report;
}

RowsReport rows_of_batches(const sw::LayerBase& layer, const sw::RowPlan* plan,
                           const std::vector<sw::JaggedView<std::int64_t>>& batches, const sw::LayerCost& cost) {
    RowsReport report;
    if (plan != nullptr) report = rows_of(*plan);
    const sw::LayerBlueprint& blueprint = layer.blueprint();
    report.map_bytes = blueprint.row_map_bytes();
    report.looked_up.resize(batches.size());
    for (RowTier& tier : report.tiers)
        tier.looked_up.resize(batches.size());
    for (int rank = 0; rank < static_cast<int>(batches.size()); ++rank) {
        const sw::JaggedView<std::int64_t>& batch = sw::at(batches, rank);
        report.asked += std::ssize(batch.values);
        if (blueprint.traits().coalesced)
            for_requests(blueprint, batch,
                         [&](int, std::int64_t) { report.distinct = report.distinct.value_or(0) + 1; });
        for (std::size_t part = 0; part < blueprint.parts().size(); ++part)
            look_up(blueprint, part, rank, batch, report);
        if (report.tiers.empty()) continue;
        ByTier payload = {};
        add_by_part(blueprint.predict_payload(cost, rank), report.tiers.size(), payload);
        for (std::size_t tier = 0; tier < report.tiers.size(); ++tier)
            report.tiers[tier].predicted_payload += payload[tier];
        for_ids(batch, [&](int f, std::int64_t id) {
            const sw::RowMap& map = *sw::at(blueprint.row_tiers().features, feature_of_plans(blueprint, f)).map;
            ++sw::at(report.tiers, map.tier(id)).lookups;
            report.unseen += map.unseen(id) ? 1 : 0;
        });
    }
    return report;
}

void add_by_part(const std::vector<std::int64_t>& by_part, std::size_t tiers, ByTier& to) {
    for (std::size_t part = 0; part < by_part.size(); ++part)
        to[part / (by_part.size() / tiers)] += by_part[part];
}

json tiers_json(const RowsReport& report) {
    if (report.tiers.empty()) return nullptr;
    json rows = json::object();
    for (const RowTier& tier : report.tiers)
        rows[tier.name] = {{"rows", tier.rows},
                           {"lookups", tier.lookups},
                           {"coverage", number_json(report.coverage(tier))},
                           {"predicted_coverage", tier.expected ? json(*tier.expected) : json()},
                           {"payload", tier.payload},
                           {"predicted_payload", tier.predicted_payload},
                           {"looked_up_rows", looked_up_json(tier.looked_up)}};
    rows["unseen_lookups"] = report.unseen;
    return rows;
}

json number_json(double value) {
    return std::isfinite(value) ? json(value) : json();
}

json requests_json(const RowsReport& report) {
    return {{"lookups", report.asked},
            {"distinct", report.distinct ? json(*report.distinct) : json()},
            {"rows_read", std::accumulate(report.looked_up.begin(), report.looked_up.end(), std::int64_t{0})}};
}

json looked_up_json(const std::vector<std::int64_t>& looked_up) {
    return {{"by_rank", looked_up}, {"max_over_mean", number_json(max_over_mean(looked_up))}};
}

std::string explain_rows(const RowsReport& report) {
    std::string text;
    if (!report.tiers.empty())
        text += fmt::format("\n{:<14}{:>14}{:>14}{:>14}{:>16}\n", "rows in tier", "rows", "profile", "first batch",
                            "payload, bytes");
    for (const RowTier& tier : report.tiers)
        text += fmt::format("  {:<12}{:>14}{:>14}{:>14}{:>16}\n", tier.name, tier.rows,
                            tier.expected ? percent_text(*tier.expected) : "not known",
                            percent_text(report.coverage(tier)), tier.predicted_payload);
    if (!report.tiers.empty())
        text += fmt::format("look-ups of rows that the plan's profile never saw: {}; row map: {} bytes a rank\n",
                            report.unseen, report.map_bytes);
    text += requests_text(report, "requests: ");
    if (std::isfinite(max_over_mean(report.looked_up)))
        text += fmt::format("looked-up rows of a rank: {} times the mean at most\n", balance_text(report));
    return text;
}

std::string rows_text(const RowsReport& report) {
    std::string text;
    for (const RowTier& tier : report.tiers)
        text += fmt::format("  rows of tier {:<9}{}, which took {} of the look-ups{}\n", tier.name, tier.rows,
                            percent_text(report.coverage(tier), " %"),
                            tier.expected ? fmt::format(", and {:.2f} % in the plan's profile", *tier.expected) : "");
    if (report.unseen != 0)
        text += fmt::format("  {:<22}{}, of rows that the plan's profile never saw\n", "look-ups", report.unseen);
    if (!report.tiers.empty()) text += fmt::format("  {:<22}{} bytes a rank\n", "row map", report.map_bytes);
    text += requests_text(report, fmt::format("  {:<22}", "requests"));
    if (std::isfinite(max_over_mean(report.looked_up)))
        text += fmt::format("  {:<22}{} times the mean on the rank with the most\n", "looked-up rows",
                            balance_text(report));
    return text;
}

}  // namespace train_dlrm
