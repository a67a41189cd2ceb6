// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "laws/compositions.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Random tables, batches and gradients for all ranks: a pure function of a seed, so that every rank knows everything.

namespace laws {

/// How the bags of a batch are given.
enum class BagForm { lengths, offsets, single };

/// The axes that are values.
struct Case {
    sw::Topology topology;
    std::uint64_t seed = 1;
    BagForm form = BagForm::lengths;
    bool wide_ids = true;
    bool weighted = false;
    int ahead = 0;  ///< how many batches' ids travel before a batch is looked up
    int steps = 3;
    int towers = 0;  ///< tables are placed in so many towers; 0: on all ranks
    bool random_progress = false;
    bool by_names = false;  ///< the layer is made by the names of its policies, not by their types
    // replica groups
    int groups = 1;
    bool inside = false;     ///< copies are neighbours on a host; else groups are
    int sync_every = 1;      ///< steps
    bool all_rows = false;   ///< a sync moves all rows, not those that were touched
    bool sync_last = false;  ///< one more when all steps are done
    float moment_scale = 0;  ///< 0: as many as groups
    bool learns = true;      ///< so that copies are synced

    [[nodiscard]] sw::GroupOptions group_options() const {
        sw::GroupOptions options{.count = groups};
        if (groups == 1) return options;
        if (inside || seed % 2 == 0)
            options.placement = inside ? sw::GroupPlacement::inside_hosts : sw::GroupPlacement::across_hosts;
        if (!learns) return options;
        if (sync_every != 1 || seed % 3 == 0) options.sync_every = sync_every;
        if (all_rows || seed % 5 == 0) options.rows = all_rows ? sw::SyncRows::all : sw::SyncRows::touched;
        return options;
    }
    /// The hosts and ranks of one group.
    [[nodiscard]] sw::Topology group_topology() const {
        if (inside) return {.hosts = topology.hosts, .ranks_per_host = topology.ranks_per_host / groups};
        if (topology.hosts % groups == 0)
            return {.hosts = topology.hosts / groups, .ranks_per_host = topology.ranks_per_host};
        return {.hosts = 1, .ranks_per_host = topology.ranks() / groups};
    }
    /// The i-th rank of a group, and which group a rank is in.
    [[nodiscard]] int rank_of(int group, int index) const {
        return inside ? index * groups + group : group * (topology.ranks() / groups) + index;
    }
    [[nodiscard]] int group_of(int rank) const { return inside ? rank % groups : rank / (topology.ranks() / groups); }
    /// Its batches of a step's.
    template <class Batches>
    [[nodiscard]] Batches of_group(int group, const Batches& all) const {
        Batches some;
        for (int index = 0; index < topology.ranks() / groups; ++index)
            some.push_back(all[static_cast<std::size_t>(rank_of(group, index))]);
        return some;
    }

    [[nodiscard]] std::string name() const {
        return std::to_string(topology.hosts) + "x" + std::to_string(topology.ranks_per_host) + " seed " +
               std::to_string(seed) +
               (form == BagForm::single    ? " single"
                : form == BagForm::offsets ? " offsets"
                                           : "") +
               (wide_ids ? "" : " 32-bit") + (weighted ? " weighted" : "") + " ahead " + std::to_string(ahead) +
               (towers == 0 ? "" : " towers " + std::to_string(towers)) + (by_names ? " by names" : "") +
               (groups == 1 ? ""
                            : " groups " + std::to_string(groups) + (inside ? " inside" : " across") + " sync " +
                                  std::to_string(sync_every) + (all_rows ? " all" : "") + (sync_last ? " last" : "") +
                                  (moment_scale == 0 ? "" : " scale " + std::to_string(moment_scale)));
    }
};

/// One rank's part of one step.
struct RankBatch {
    std::int64_t samples = 0;
    std::vector<std::int64_t> ids;
    std::vector<std::int32_t> narrow_ids;
    std::vector<std::int32_t> lengths;  // (feature, sample)
    std::vector<std::int64_t> offsets;
    std::vector<float> weights;
    std::vector<float> gradient;  // pooled: (samples, width); sequences: (ids, dim) feature by feature

    [[nodiscard]] Batch view(const Case& c, std::int64_t features) const {
        Batch batch;
        batch.wide = c.wide_ids;
        const auto fill = [&](auto& view, const auto& values) {
            view.samples = samples;
            view.features = features;
            view.values = values;
            if (c.form == BagForm::lengths) view.lengths = lengths;
            if (c.form == BagForm::offsets) view.offsets = offsets;
            view.weights = weights;
        };
        if (c.wide_ids) {
            fill(batch.wide_view, ids);
        } else {
            fill(batch.narrow_view, narrow_ids);
        }
        return batch;
    }
};

/// What a table has of its own, as the reference knows it.
struct OwnSettings {
    float rate = 0.0F;  // 0: the layer's
    float l2 = 0.0F;
    float weight_decay = 0.0F;
    float clip_value = 0.0F;
    bool constant = false;  // initial values: all of them `initial`
    float initial = 0.0F;
    bool listed = false;  // in the layer's list
};

/// Tables, and the batches of all ranks for all steps.
struct Scenario {
    std::vector<sw::TableConfig> tables;
    std::vector<OwnSettings> settings;  // (table)
    float clip_norm = 0.0F;
    std::vector<int> table_of;                  // (feature)
    std::vector<int> tower_of;                  // (table)
    int width = 0;                              // columns of a pooled result
    std::vector<std::vector<RankBatch>> steps;  // (step, rank)
    sw::RowPlan rows;                           // of tiered layers; without tables where there is none
    std::vector<bool> hot;                      // (step): every rank has all rows of the batches

    /// As a layer is told them.
    [[nodiscard]] const sw::RowPlan* row_plan() const { return rows.tables.empty() ? nullptr : &rows; }
    [[nodiscard]] std::int64_t features() const { return static_cast<std::int64_t>(table_of.size()); }
    /// As a layer is told them.
    [[nodiscard]] sw::Towers towers(const Case& c) const {
        sw::Towers all(static_cast<std::size_t>(c.towers));
        for (std::size_t t = 0; c.towers != 0 && t < tables.size(); ++t)
            for (const std::string& feature : tables[t].features)
                all[static_cast<std::size_t>(tower_of[t])].push_back(feature);
        return all;
    }
    /// Of the features of a tower together.
    [[nodiscard]] int columns_of(int tower) const {
        int columns = 0;
        for (std::size_t f = 0; f < table_of.size(); ++f)
            if (tower_of[static_cast<std::size_t>(table_of[f])] == tower)
                columns += dim_of(static_cast<std::int64_t>(f));
        return columns;
    }
    [[nodiscard]] int dim_of(std::int64_t feature) const {
        return tables[static_cast<std::size_t>(table_of[static_cast<std::size_t>(feature)])].dim;
    }
};

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_{seed} {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    float number() { return static_cast<float>(below(2001) - 1000) / 1000.0F * (one_in(4) ? 37.0F : 0.7F); }
    template <class T>
    T pick(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
    }

  private:
    std::mt19937_64 engine_;
};

/// Weights that the laws set to -0.0 before they begin: an update by +0.0 keeps it, one by -0.0 does not.
inline bool starts_at_negative_zero(std::int64_t row, std::int64_t column) {
    return (row + column) % 5 == 0;
}

/// Rows in tiers: the most used ones (see make_scenario) in any of them, in the order of their numbers or any other;
/// some tiers have all rows, some none, some layers no plan.
inline sw::RowPlan make_row_plan(const std::vector<sw::TableConfig>& tables, const std::vector<std::string>& tiers,
                                 std::uint64_t seed) {
    Dice dice{seed * 31 + 7};
    sw::RowPlan plan{.tiers = tiers, .tables = {}};
    if (dice.one_in(12)) return plan;
    for (const sw::TableConfig& table : tables) {
        sw::TableRowPlan& one = plan.tables.emplace_back(sw::all_in_last_tier(table.name, table.rows, tiers.size()));
        for (std::size_t tier = 0; tier + 1 < tiers.size(); ++tier) {
            std::int64_t& left = one.tiers.back();
            const bool none = dice.one_in(6) && (tier != 0 || seed % 4 == 0);
            const std::int64_t rows = none             ? 0
                                      : dice.one_in(6) ? left
                                                       : dice.below(std::min<std::int64_t>(left, 9) + 1);
            one.tiers[tier] = tier == 0 && seed % 4 != 0 ? std::max<std::int64_t>(1, rows) : rows;
            left -= one.tiers[tier];
        }
        if (dice.one_in(3)) one.reduction = dice.one_in(3) ? sw::RowReduction::touched : sw::RowReduction::dense;
        for (std::size_t tier = 0; tier < tiers.size() && seed % 2 == 0; ++tier) {
            const std::int64_t most = one.tiers[tier];
            const auto touched = [&] { return dice.one_in(2) ? most : dice.below(most + 1); };
            one.touches.push_back({.rank = touched(), .host = touched(), .world = touched()});
        }
        const std::int64_t replicated = table.rows - one.tiers.back();
        if (dice.one_in(3)) continue;  // the first rows, in order
        for (std::int64_t row = 0; row < table.rows; ++row)
            one.replicated.push_back(row);
        for (std::size_t i = one.replicated.size(); i > 1; --i)
            std::swap(one.replicated[i - 1],
                      one.replicated[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(i)))]);
        one.replicated.resize(static_cast<std::size_t>(replicated));
        for (std::int64_t row = 0; row < table.rows; ++row)
            one.unseen.push_back(dice.one_in(5));
        for (const std::int64_t row : one.replicated)  // those were seen
            one.unseen[static_cast<std::size_t>(row)] = false;
    }
    return plan;
}

/// Turns some steps of a tiered scenario into hot ones, with rows of the first tier alone, where every table has some.
inline void heat(Scenario& s, const Case& c) {
    std::vector<std::vector<std::int64_t>> rows;  // (table): of the first tier
    for (const sw::TableRowPlan& table : s.rows.tables) {
        rows.emplace_back(static_cast<std::size_t>(table.tiers[0]));
        std::iota(rows.back().begin(), rows.back().end(), std::int64_t{0});
        if (!table.replicated.empty()) std::copy_n(table.replicated.begin(), table.tiers[0], rows.back().begin());
        if (rows.back().empty()) return;
    }
    for (std::size_t step = 0; step < s.steps.size() && !rows.empty(); ++step) {
        s.hot[step] = (c.seed / 2 + step) % 3 != 0;
        for (RankBatch& batch : s.steps[step]) {
            std::size_t bag = 0;
            for (std::size_t f = 0; s.hot[step] && f < s.table_of.size(); ++f) {
                const auto& of_table = rows[static_cast<std::size_t>(s.table_of[f])];
                const std::size_t end = bag + static_cast<std::size_t>(batch.samples);
                for (auto id = batch.offsets[bag]; id < batch.offsets[end]; ++id) {
                    std::int64_t& row = batch.ids[static_cast<std::size_t>(id)];
                    row = of_table[static_cast<std::size_t>(row) % of_table.size()];
                }
                bag = end;
            }
            batch.narrow_ids.assign(batch.ids.begin(), batch.ids.end());
        }
    }
}

/// Small tables and skewed ids, so that rows are shared by samples, ranks and hosts, and every shard and tier is hot;
/// some ranks have no samples, some many, some own no rows, some bags are empty, some long, some gradients are zero of
/// either sign, some weighted rows too small for anything but -0.0.
/// \param policies  tables choose among them in turn, or, tiered, have rows in each
/// \param modules  every tower has a table, and a module with one output and half as many as its inputs
inline Scenario make_scenario(const Case& c, const std::vector<std::string>& policies, bool pooled,
                              bool modules = false, bool tiered = false) {
    Dice dice{c.seed};
    Scenario s;
    std::int64_t tables = policies.size() > 1 ? 3 + dice.below(3) : 1 + dice.below(3);
    if (modules) tables += c.towers - 1;
    for (std::int64_t t = 0; t < tables; ++t) {
        sw::TableConfig table{.name = "t" + std::to_string(t),
                              .rows = dice.pick<std::int64_t>({1, 2, 5, 17, 64, 300}),
                              .dim = dice.pick<int>({1, 3, 4, 8, 16, 17, 32, 40, 64, 128}),
                              .features = {},
                              .sharding = policies[static_cast<std::size_t>(t) % policies.size()],
                              .load = static_cast<float>(1 + t % 3)};
        const std::int64_t features = dice.one_in(3) ? 2 : 1;
        for (std::int64_t f = 0; f < features; ++f) {
            table.features.push_back(table.name + "f" + std::to_string(f));
            s.table_of.push_back(static_cast<int>(t));
            s.width += table.dim;
        }
        s.tables.push_back(table);
        const std::uint64_t step = modules && t < c.towers ? 1 : 1 + c.seed % 2;
        s.tower_of.push_back(c.towers == 0 ? 0 : static_cast<int>((c.seed / 3 + t * step) % c.towers));
    }
    if (modules) {
        s.width = 0;
        for (int tower = 0; tower < c.towers; ++tower)
            s.width += 1 + s.columns_of(tower) / 2;
    }
    for (int step = 0; step < c.steps; ++step) {
        std::vector<RankBatch> ranks;
        const bool nobody = step > 0 && dice.one_in(8);
        for (int rank = 0; rank < c.topology.ranks(); ++rank) {
            RankBatch b;
            b.samples = nobody || dice.one_in(5) ? 0 : 1 + dice.below(dice.one_in(16) ? 40 : 6);
            b.offsets.push_back(0);
            for (std::int64_t f = 0; f < s.features(); ++f) {
                const std::int64_t rows =
                    s.tables[static_cast<std::size_t>(s.table_of[static_cast<std::size_t>(f)])].rows;
                const bool ones = c.form == BagForm::single || dice.one_in(4);
                const std::int64_t lengths = dice.one_in(4) ? 24 : 6;
                for (std::int64_t i = 0; i < b.samples; ++i) {
                    const auto length = static_cast<std::int32_t>(ones ? 1 : dice.below(lengths));
                    b.lengths.push_back(length);
                    for (std::int32_t k = 0; k < length; ++k) {
                        b.ids.push_back(dice.one_in(2) ? dice.below(std::min<std::int64_t>(rows, 4))
                                                       : dice.below(rows));
                        if (c.weighted)
                            b.weights.push_back(dice.one_in(6)   ? 0.0F
                                                : dice.one_in(6) ? std::numeric_limits<float>::denorm_min()
                                                                 : dice.number());
                    }
                    b.offsets.push_back(static_cast<std::int64_t>(b.ids.size()));
                }
            }
            b.narrow_ids.assign(b.ids.begin(), b.ids.end());
            std::int64_t numbers = pooled ? b.samples * s.width : 0;
            if (!pooled) {
                std::size_t bag = 0;
                for (std::int64_t f = 0; f < s.features(); ++f)
                    for (std::int64_t i = 0; i < b.samples; ++i)
                        numbers += b.lengths[bag++] * s.dim_of(f);
            }
            for (std::int64_t i = 0; i < numbers; ++i)
                b.gradient.push_back(dice.one_in(9) ? (dice.one_in(2) ? -0.0F : 0.0F) : dice.number());
            ranks.push_back(std::move(b));
        }
        s.steps.push_back(std::move(ranks));
    }
    s.hot.assign(s.steps.size(), false);
    s.settings.resize(s.tables.size());
    Dice own{c.seed * 7919 + 3};
    for (std::size_t t = 0; t < s.tables.size() && c.seed % 2 == 1; ++t) {
        OwnSettings& settings = s.settings[t];
        settings.listed = !own.one_in(4);
        if (!settings.listed) continue;
        if (own.one_in(2)) settings.rate = 0.25F;
        if (own.one_in(2)) settings.l2 = 0.125F;
        if (own.one_in(2)) settings.weight_decay = 0.5F;
        if (own.one_in(2)) settings.clip_value = 0.75F;
        settings.constant = own.one_in(3);
        settings.initial = settings.constant ? 0.375F : 0.0F;
    }
    if (tiered) s.rows = make_row_plan(s.tables, policies, c.seed);
    if (tiered && policies[0] == sw::DP::name) heat(s, c);
    return s;
}

}  // namespace laws
