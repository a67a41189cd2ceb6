// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "laws/mix.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/planning/row_distribution.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// The expectation reader against the cost reader: what is expected of a law is the mean over batches drawn from it.

namespace {

namespace sw = shardwise;

/// A layer on paper, how often its rows are looked up, and how long bags are.
struct Setting {
    sw::Topology topology;
    sw::LayerNames names;
    std::vector<sw::TableConfig> tables;
    sw::Towers towers;
    sw::RowPlan rows;
    std::vector<std::vector<double>> weights;  // (table, row): proportional to p
    sw::Workload workload;

    [[nodiscard]] sw::LayerBlueprint blueprint() const {
        return sw::draw_layer(topology, tables, names, towers, {}, names.tiered ? &rows : nullptr);
    }
    [[nodiscard]] std::string name() const {
        std::string text = std::to_string(topology.hosts) + "x" + std::to_string(topology.ranks_per_host);
        for (const std::string& sharding : names.shardings)
            text += (&sharding == names.shardings.data() ? " " : names.tiered ? " > " : " + ") + sharding;
        for (const std::string& word : {names.collective, names.pooling, names.optimizer, names.order,
                                        names.forward_wire + "-" + names.backward_wire})
            text += "/" + word;
        return text + (names.module != nullptr ? "/mix" : "") + (workload.weighted ? " weighted" : "") + ", " +
               std::to_string(workload.samples) + " samples";
    }
};

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine{seed} {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n)); }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    template <class T>
    T pick(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(below(std::ssize(values)))];
    }
    std::mt19937_64 engine;
};

sw::BagLengths any_lengths(Dice& dice) {
    switch (dice.below(5)) {
        case 0:
        case 1:
            return sw::BagLengths::fixed(1);
        case 2:
            return sw::BagLengths::fixed(2 + dice.below(4));
        case 3:
            return sw::BagLengths::near(0.5 + static_cast<double>(dice.below(40)) / 10.0);
        default:
            return {{{.length = 0, .share = 0.3}, {.length = 1, .share = 0.4}, {.length = 7, .share = 0.3}}};
    }
}

/// The most used rows of each table in the first tiers, in any order.
sw::RowPlan any_plan(const std::vector<sw::TableConfig>& tables, const std::vector<std::string>& tiers, Dice& dice) {
    sw::RowPlan plan{.tiers = tiers, .tables = {}};
    for (const sw::TableConfig& table : tables) {
        sw::TableRowPlan& one = plan.tables.emplace_back(sw::all_in_last_tier(table.name, table.rows, tiers.size()));
        for (std::size_t tier = 0; tier + 1 < tiers.size(); ++tier) {
            one.tiers[tier] = dice.below(std::min<std::int64_t>(one.tiers.back(), 30) + 1);
            one.tiers.back() -= one.tiers[tier];
        }
        if (dice.one_in(2)) continue;
        for (std::int64_t row = 0; row < table.rows; ++row)
            one.replicated.push_back(row);
        std::shuffle(one.replicated.begin(), one.replicated.end(), dice.engine);
        one.replicated.resize(static_cast<std::size_t>(table.rows - one.tiers.back()));
    }
    return plan;
}

/// How often each row is looked up, and that in the mean of many samples.
void set_use(Setting& setting, Dice& dice) {
    setting.workload = {.samples = 24 + dice.below(40), .weighted = false, .tables = {}, .lengths = {}};
    for (const sw::TableConfig& table : setting.tables) {
        std::vector<sw::BagLengths> lengths;
        double ids = 0.0;
        for (std::size_t f = 0; f < table.features.size(); ++f) {
            lengths.push_back(any_lengths(dice));
            ids += lengths.back().mean();
        }
        std::vector<double> weights;
        double all = 0.0;
        const double slope = static_cast<double>(dice.below(16)) / 10.0;
        for (std::int64_t row = 0; row < table.rows; ++row) {
            weights.push_back(std::pow(static_cast<double>(row + 1), -slope));
            all += weights.back();
        }
        std::vector<sw::RowRun> runs;
        for (const double weight : weights)
            runs.push_back({.p = weight / all * ids, .rows = 1});
        setting.workload.tables.push_back(sw::use_of(table.name, sw::RowDistribution{runs}, lengths));
        if (dice.one_in(2)) {  // in another order
            std::vector<std::int64_t>& order = setting.workload.tables.back().rows;
            for (std::int64_t row = 0; row < table.rows; ++row)
                order.push_back(row);
            std::shuffle(order.begin(), order.end(), dice.engine);
            const std::vector<double> sorted = weights;
            for (std::size_t i = 0; i < order.size(); ++i)
                weights[static_cast<std::size_t>(order[i])] = sorted[i];
        }
        setting.weights.push_back(std::move(weights));
        setting.workload.lengths.insert(setting.workload.lengths.end(), lengths.begin(), lengths.end());
    }
}

/// Some composition that is not refused.
Setting any_setting(Dice& dice) {
    Setting setting;
    const sw::KnownPolicies known;
    using Shardings = std::vector<std::string>;
    do {
        setting.names.tiered = dice.one_in(3);
        setting.names.shardings =
            setting.names.tiered
                ? dice.pick<Shardings>({{"dp", "flex", "row"}, {"dp", "row"}, {"flex", "row"}})
                : dice.pick<Shardings>(
                      {{"row"}, {"col"}, {"table"}, {"dp"}, {"flex"}, {"dp", "table", "row"}, {"flex", "col"}});
        setting.names.collective = dice.pick<std::string>({"flat", "flat", "two_stage", "hierarchical"});
        setting.names.optimizer = dice.pick(known.names("optimizer"));
        setting.names.pooling = dice.pick(known.names("pooling"));
        setting.names.order = dice.pick(known.names("order"));
        setting.names.forward_wire = dice.pick(known.names("wire"));
        setting.names.backward_wire = dice.pick(known.names("wire"));
        setting.names.module =
            setting.names.collective == "hierarchical" && dice.one_in(2) ? sw::module_policy<laws::Mix>({}) : nullptr;
    } while (!known.refusal(setting.names).empty());
    setting.topology = dice.pick<sw::Topology>({{.hosts = 1, .ranks_per_host = 4},
                                                {.hosts = 4, .ranks_per_host = 1},
                                                {.hosts = 2, .ranks_per_host = 2},
                                                {.hosts = 2, .ranks_per_host = 3},
                                                {.hosts = 3, .ranks_per_host = 2},
                                                {.hosts = 2, .ranks_per_host = 4}});
    const std::int64_t tables = 3 + dice.below(2);
    for (std::int64_t t = 0; t < tables; ++t) {
        sw::TableConfig& table = setting.tables.emplace_back();
        table.name = "t" + std::to_string(t);
        table.rows = dice.pick<std::int64_t>({1, 7, 60, 150, 400});
        table.dim = dice.pick<int>({3, 4, 5, 8, 16});
        table.features = {table.name};
        if (dice.one_in(3)) table.features.push_back(table.name + "b");
        if (setting.names.shardings.size() > 1 && !setting.names.tiered)
            table.sharding = setting.names.shardings[static_cast<std::size_t>(t) % setting.names.shardings.size()];
        if (setting.names.pooling == "by_table") table.pooling = dice.pick<std::string>({"sum", "mean", "none"});
    }
    if (setting.names.tiered) setting.rows = any_plan(setting.tables, setting.names.shardings, dice);
    if (setting.names.module != nullptr)
        for (std::size_t t = 0; t < setting.tables.size(); ++t) {
            setting.towers.resize(static_cast<std::size_t>(setting.topology.hosts == 4 ? 2 : setting.topology.hosts));
            for (const std::string& feature : setting.tables[t].features)
                setting.towers[t % setting.towers.size()].push_back(feature);
        }
    set_use(setting, dice);
    setting.workload.weighted =
        setting.names.pooling != "none" && setting.names.pooling != "by_table" && dice.one_in(2);
    return setting;
}

/// Batches of all ranks, drawn from a setting's law.
class Batches {
  public:
    explicit Batches(const Setting& setting) : setting_{setting} {
        for (const auto& weights : setting.weights)
            ids_.emplace_back(weights.begin(), weights.end());
        for (const sw::BagLengths& lengths : setting.workload.lengths) {
            std::vector<double> shares;
            for (const auto& of : lengths.shares)
                shares.push_back(of.share);
            lengths_.emplace_back(shares.begin(), shares.end());
        }
    }
    std::vector<sw::JaggedBatch<std::int64_t>> draw(std::mt19937_64& random) {
        std::vector<sw::JaggedBatch<std::int64_t>> all(static_cast<std::size_t>(setting_.topology.ranks()));
        for (auto& batch : all) {
            batch.samples = setting_.workload.samples;
            batch.features = std::ssize(lengths_);
            std::size_t feature = 0;
            for (std::size_t t = 0; t < ids_.size(); ++t)
                for (std::size_t f = 0; f < setting_.tables[t].features.size(); ++f, ++feature)
                    for (std::int64_t i = 0; i < batch.samples; ++i) {
                        const auto& shares = setting_.workload.lengths[feature].shares;
                        const std::int64_t length = shares[lengths_[feature](random)].length;
                        batch.lengths.push_back(static_cast<std::int32_t>(length));
                        for (std::int64_t k = 0; k < length; ++k)
                            batch.values.push_back(static_cast<std::int64_t>(ids_[t](random)));
                    }
            if (setting_.workload.single()) batch.lengths.clear();
            if (setting_.workload.weighted) batch.weights.assign(batch.values.size(), 0.5F);
        }
        return all;
    }

  private:
    const Setting& setting_;
    std::vector<std::discrete_distribution<std::size_t>> ids_;      // (table)
    std::vector<std::discrete_distribution<std::size_t>> lengths_;  // (feature)
};

std::vector<sw::JaggedView<std::int64_t>> views(const std::vector<sw::JaggedBatch<std::int64_t>>& batches) {
    std::vector<sw::JaggedView<std::int64_t>> all;
    for (const auto& batch : batches)
        all.push_back(batch.view());
    return all;
}

/// Distinct (table, row) of some ranks' batches.
double distinct(const Setting& setting, const std::vector<sw::JaggedBatch<std::int64_t>>& batches, std::size_t first,
                std::size_t count) {
    std::set<std::pair<std::size_t, std::int64_t>> rows;
    for (std::size_t rank = first; rank < first + count; ++rank) {
        std::size_t bag = 0;
        std::size_t id = 0;
        for (std::size_t t = 0; t < setting.tables.size(); ++t)
            for (std::size_t i = 0;
                 i < setting.tables[t].features.size() * static_cast<std::size_t>(setting.workload.samples); ++i, ++bag)
                for (int k = batches[rank].lengths.empty() ? 1 : batches[rank].lengths[bag]; k > 0; --k)
                    rows.emplace(t, batches[rank].values[id++]);
    }
    return static_cast<double>(rows.size());
}

/// A number of each batch: its mean and how well that is known.
struct Sampled {
    std::string name;
    double expected = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    double count = 0.0;

    void add(double value) {
        sum += value;
        squares += value * value;
        ++count;
    }
    [[nodiscard]] double mean() const { return sum / count; }
    [[nodiscard]] double standard_error() const {
        return std::sqrt(std::max(0.0, squares / count - mean() * mean()) / (count - 1));
    }
};

/// Every number that both readers give: by segment and link in total, by segment and pair of ranks, touched rows.
template <class Segments, class Add>
void each_number(const Segments& segments, const sw::Topology& topology, Add add) {
    for (const auto& segment : segments) {
        const std::string at = "segment " + std::to_string(segment.segment);
        auto total = segment.traffic.total();
        for (const auto tier : {sw::Tier::host, sw::Tier::cross_host}) {
            const std::string link = at + (tier == sw::Tier::host ? ", host, " : ", cross_host, ");
            add(link + "payload", true, static_cast<double>(total.of(tier).payload));
            add(link + "control", true, static_cast<double>(total.of(tier).control));
            add(link + "messages", true, static_cast<double>(total.of(tier).messages));
        }
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to) {
                const std::string pair = at + ", " + std::to_string(from) + " to " + std::to_string(to) + ", ";
                add(pair + "payload", false, static_cast<double>(segment.traffic.at(from, to).payload));
                add(pair + "control", false, static_cast<double>(segment.traffic.at(from, to).control));
            }
    }
}

class Comparison {
  public:
    explicit Comparison(const Setting& setting) : setting_{setting}, layer_{setting.blueprint()} {
        sw::MemoryTally tally;
        const sw::ExpectedLayerCost expected = layer_.expect_cost(setting.workload, &tally, 0);
        each_number(expected.segments, setting.topology, [&](const std::string& name, bool total, double value) {
            numbers_.push_back({.name = name, .expected = value});
            totals_.push_back(total);
        });
        for (const double rows :
             {expected.all_touched().rank, expected.all_touched().host, expected.all_touched().world}) {
            numbers_.push_back({.name = "touched rows", .expected = rows});
            totals_.push_back(true);
        }
        memory_.expected = static_cast<double>(tally.bytes());
    }
    void add(const std::vector<sw::JaggedBatch<std::int64_t>>& batches) {
        std::size_t next = 0;
        sw::MemoryTally tally;
        const sw::LayerCost cost = layer_.predict_cost(views(batches), &tally, 0);
        each_number(cost.segments, setting_.topology,
                    [&](const std::string&, bool, double value) { numbers_.at(next++).add(value); });
        const auto per_host = static_cast<std::size_t>(setting_.topology.ranks_per_host);
        numbers_.at(next++).add(distinct(setting_, batches, batches.size() - 1, 1));
        numbers_.at(next++).add(distinct(setting_, batches, batches.size() - per_host, per_host));
        numbers_.at(next++).add(distinct(setting_, batches, 0, batches.size()));
        memory_.add(static_cast<double>(tally.bytes()));
    }
    /// Four standard errors of every total are less than one part in a hundred.
    [[nodiscard]] bool is_well_known() const {
        for (std::size_t i = 0; i < numbers_.size(); ++i)
            if (totals_[i] && numbers_[i].expected > 0 &&
                4 * numbers_[i].standard_error() > 0.01 * numbers_[i].expected)
                return false;
        return true;
    }
    void check() {
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            const Sampled& of = numbers_[i];
            const double off = std::abs(of.mean() - of.expected);
            if (totals_[i] && of.expected > 0) {
                worst = std::max(worst, (off - 4 * of.standard_error()) / of.expected);
                EXPECT_LT(off, std::max(0.01 * of.expected, 4 * of.standard_error()) + 1e-6)
                    << setting_.name() << ": " << of.name << " " << of.mean() << " +- " << of.standard_error()
                    << ", expected " << of.expected;
            }
            EXPECT_LE(off, 6 * of.standard_error() + 0.005 * of.expected + (totals_[i] ? 0.0 : 1.0) + 1e-6)
                << setting_.name() << ": " << of.name << " " << of.mean() << " +- " << of.standard_error()
                << ", expected " << of.expected;
        }
        EXPECT_NEAR(memory_.mean(), memory_.expected, 0.06 * memory_.expected) << setting_.name() << ": memory";
        memory_off = std::abs(memory_.mean() / memory_.expected - 1.0);
    }
    double worst = 0.0;
    double memory_off = 0.0;

  private:
    const Setting& setting_;
    sw::LayerBlueprint layer_;
    std::vector<Sampled> numbers_;
    std::vector<bool> totals_;
    Sampled memory_;
};

TEST(Expectation, IsTheMeanOverBatches) {
    const char* const more = std::getenv("SHARDWISE_EXPECTATION_CASES");
    const int cases = more == nullptr ? 40 : std::atoi(more);
    const char* const first = std::getenv("SHARDWISE_EXPECTATION_FIRST");
    double worst = 0.0;
    double memory = 0.0;
    int well_known = 0;
    int begin = first == nullptr ? 0 : std::atoi(first);
    for (int number = begin; number < begin + cases; ++number) {
        Dice dice{static_cast<std::uint64_t>(number)};
        const Setting setting = any_setting(dice);
        SCOPED_TRACE("case " + std::to_string(number));
        Comparison comparison{setting};
        Batches batches{setting};
        int drawn = 0;
        for (; drawn < 400 && (drawn % 50 != 0 || drawn == 0 || !comparison.is_well_known()); ++drawn)
            comparison.add(batches.draw(dice.engine));
        well_known += comparison.is_well_known() ? 1 : 0;
        comparison.check();
        worst = std::max(worst, comparison.worst);
        memory = std::max(memory, comparison.memory_off);
    }
    RecordProperty("worst", std::to_string(worst));
    std::printf("worst %g, memory %g, %d well known\n", worst, memory, well_known);
}

}  // namespace
