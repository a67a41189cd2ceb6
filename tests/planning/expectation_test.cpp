// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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
    sw::GroupOptions groups;
    sw::LayerNames names;
    std::vector<sw::TableConfig> tables;
    sw::Towers towers;
    sw::RowPlan rows;
    std::vector<std::vector<double>> weights;  // (table, row): proportional to p
    sw::Workload workload;

    [[nodiscard]] sw::LayerBlueprint blueprint() const {
        return sw::draw_layer(topology, tables, names,
                              {.towers = towers, .groups = groups, .rows = names.tiered ? &rows : nullptr});
    }
    [[nodiscard]] sw::ReplicaGroups ranks() const {
        return sw::replica_groups(topology, groups.count, groups.placement.value_or(sw::GroupPlacement::across_hosts));
    }
    [[nodiscard]] std::string name() const {
        std::string text = std::to_string(topology.hosts) + "x" + std::to_string(topology.ranks_per_host);
        for (const std::string& sharding : names.shardings)
            text += (&sharding == names.shardings.data() ? " " : names.tiered ? " > " : " + ") + sharding;
        for (const std::string& word : {names.collective, names.pooling, names.requests, names.optimizer, names.order,
                                        names.forward_wire + "-" + names.backward_wire})
            text += "/" + word;
        if (groups.count != 1)
            text += ", " + std::to_string(groups.count) + " groups " + name_of(*groups.placement) + ", sync of " +
                    name_of(*groups.rows) + " every " + std::to_string(*groups.sync_every);
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
        setting.names.requests = dice.pick(known.names("requests"));
        setting.names.ids = dice.pick<std::string>({"at_sample", "at_sample", "at_owner"});
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
    if (dice.one_in(2)) {
        const auto placement =
            dice.pick<sw::GroupPlacement>({sw::GroupPlacement::across_hosts, sw::GroupPlacement::inside_hosts});
        std::vector<int> counts;
        for (int count = 2; count <= setting.topology.ranks(); ++count)
            if (sw::has_groups(setting.topology, count, placement)) counts.push_back(count);
        if (!counts.empty())
            setting.groups = {.count = dice.pick(counts),
                              .placement = placement,
                              .sync_every = 1 + dice.below(2),
                              .rows = dice.one_in(4) ? sw::SyncRows::all : sw::SyncRows::touched};
        if (setting.names.optimizer == "frozen") setting.groups.sync_every = {};
        if (setting.names.optimizer == "frozen") setting.groups.rows = {};
    }
    const int hosts = setting.ranks().inside_group().hosts;
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
            setting.towers.resize(static_cast<std::size_t>(hosts == 4 ? 2 : hosts));
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

/// Distinct (table, row) of the batches of so many neighbours in a group, in the mean over all such.
double distinct(const Setting& setting, const std::vector<sw::JaggedBatch<std::int64_t>>& batches, std::size_t ranks) {
    double sum = 0.0;
    const sw::ReplicaGroups groups = setting.ranks();
    for (std::size_t first = 0; first < batches.size(); first += ranks) {
        std::set<std::pair<std::size_t, std::int64_t>> rows;
        for (std::size_t number = first; number < first + ranks; ++number) {
            const int in_group = groups.group.size;
            const auto rank = static_cast<std::size_t>(
                groups.rank_of(static_cast<int>(number) / in_group, static_cast<int>(number) % in_group));
            std::size_t bag = 0;
            std::size_t id = 0;
            for (std::size_t t = 0; t < setting.tables.size(); ++t) {
                const auto bags =
                    setting.tables[t].features.size() * static_cast<std::size_t>(setting.workload.samples);
                for (std::size_t i = 0; i < bags; ++i, ++bag)
                    for (int k = batches[rank].lengths.empty() ? 1 : batches[rank].lengths[bag]; k > 0; --k)
                        rows.emplace(t, batches[rank].values[id++]);
            }
        }
        sum += static_cast<double>(rows.size());
    }
    return sum / static_cast<double>(batches.size() / ranks);
}

/// How closely a number has to be known.
enum class Kind { whole, total, pair };

/// A number of each batch: its mean and how well that is known.
struct Sampled {
    std::string name = {};
    Kind kind = Kind::whole;
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

/// Every number of bytes and messages that both readers give: by direction and link, by segment and link, by segment
/// and pair of ranks.
template <class Cost, class Add>
void each_number(const Cost& cost, const sw::Topology& topology, Add add) {
    const auto total_of = [&](const std::string& at, Kind kind, const auto& traffic) {
        auto total = traffic.total();
        for (const auto tier : {sw::Tier::host, sw::Tier::cross_host}) {
            const std::string link = at + (tier == sw::Tier::host ? ", host, " : ", cross_host, ");
            add(link + "payload", kind, static_cast<double>(total.of(tier).payload));
            add(link + "control", kind, static_cast<double>(total.of(tier).control));
            add(link + "messages", kind, static_cast<double>(total.of(tier).messages));
        }
    };
    total_of("forward", Kind::whole, cost.forward);
    total_of("backward", Kind::whole, cost.backward);
    for (const auto& segment : cost.segments) {
        const std::string at = "segment " + std::to_string(segment.segment);
        total_of(at, Kind::total, segment.traffic);
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to) {
                const std::string pair = at + ", " + std::to_string(from) + " to " + std::to_string(to) + ", ";
                add(pair + "payload", Kind::pair, static_cast<double>(segment.traffic.at(from, to).payload));
                add(pair + "control", Kind::pair, static_cast<double>(segment.traffic.at(from, to).control));
            }
    }
}

class Comparison {
  public:
    explicit Comparison(const Setting& setting) : setting_{setting}, layer_{setting.blueprint()} {
        sw::MemoryTally tally;
        sw::MemoryTally sync_tally;
        const sw::ExpectedLayerCost expected = layer_.expect_cost(setting.workload, &tally, 0, &sync_tally);
        each_number(expected, setting.topology, [&](const std::string& name, Kind kind, double value) {
            numbers_.push_back({.name = name, .kind = kind, .expected = value});
        });
        const auto touched = expected.all_touched();
        numbers_.push_back({.name = "rows of a rank", .kind = Kind::whole, .expected = touched.rank});
        numbers_.push_back({.name = "rows of a host", .kind = Kind::whole, .expected = touched.host});
        numbers_.push_back({.name = "rows of the world", .kind = Kind::whole, .expected = touched.world});
        memory_.expected = static_cast<double>(tally.bytes());
        each_of_sync(expected, [&](const std::string& name, Kind kind, double value) {
            syncs_.push_back({.name = name, .kind = kind, .expected = value});
        });
        sync_memory_ = static_cast<double>(sync_tally.bytes());
        const sw::Topology group = layer_.topology();
        for (const auto& [name, looked_up] : looked_up_by(expected.looked_up))
            numbers_.push_back({.name = name, .kind = Kind::pair, .expected = looked_up});
        neighbours_ = {1, group.ranks_per_host, group.ranks()};
    }
    void add(const std::vector<sw::JaggedBatch<std::int64_t>>& batches) {
        std::size_t next = 0;
        sw::MemoryTally tally;
        const bool synced = layer_.groups().syncs_at(syncing_.steps() + 1);
        const sw::LayerCost cost = layer_.predict_cost(views(batches), &tally, 0, sw::BatchKind::any, &syncing_);
        each_number(cost, setting_.topology,
                    [&](const std::string&, Kind, double value) { numbers_.at(next++).add(value); });
        for (const int ranks : neighbours_)
            numbers_.at(next++).add(distinct(setting_, batches, static_cast<std::size_t>(ranks)));
        for (const auto& [name, looked_up] : looked_up_by(cost.looked_up))
            numbers_.at(next++).add(looked_up);
        memory_.add(static_cast<double>(tally.bytes()));
        if (!synced) return;
        std::size_t of_sync = 0;
        each_of_sync(cost, [&](const std::string&, Kind, double value) { syncs_.at(of_sync++).add(value); });
    }
    /// A number of what a step moves of which four standard errors are more than one part in a hundred; empty: none.
    [[nodiscard]] std::string hardly_known() const {
        for (const auto* numbers : {&numbers_, &syncs_})
            for (const Sampled& of : *numbers)
                if (of.kind == Kind::whole && 4 * of.standard_error() > 0.01 * of.expected) return text(of);
        return "";
    }
    void check() const {
        for (const Sampled& of : numbers_) {
            const double off = std::abs(of.mean() - of.expected);
            if (of.kind == Kind::whole) {
                EXPECT_LE(off, 0.01 * of.expected) << text(of);
            }
            // 4 bytes of all bags travel or do not: where that happened in none of the batches, its error is not known
            const double rare =
                of.kind == Kind::pair ? 6.0 * 4.0 * static_cast<double>(setting_.workload.samples) / of.count : 0.0;
            EXPECT_LE(off, 5 * of.standard_error() + 0.001 * of.expected + rare) << text(of);
        }
        for (const Sampled& of : syncs_)
            EXPECT_LE(std::abs(of.mean() - of.expected), (of.kind == Kind::whole ? 0.01 : 0.05) * of.expected)
                << text(of);
        EXPECT_NEAR(memory_.mean(), memory_.expected, 0.05 * memory_.expected) << setting_.name() << ": memory";
        if (setting_.groups.count != 1) {  // the most of many syncs, in eighths of powers of two
            EXPECT_GE(static_cast<double>(syncing_.memory().bytes()), 0.9 * sync_memory_) << setting_.name();
            EXPECT_LE(static_cast<double>(syncing_.memory().bytes()), 1.8 * sync_memory_ + 256) << setting_.name();
        }
    }

  private:
    /// Of a sync, by round, and by link: rows are dealt evenly among copies in the mean over many, not each.
    template <class Cost, class Add>
    static void each_of_sync(const Cost& cost, Add add) {
        for (const auto& segment : cost.sync_segments) {
            const std::string round = "sync, segment " + std::to_string(segment.segment);
            const auto total = segment.traffic.total();
            add(round + ", payload", Kind::whole, static_cast<double>(total.host.payload + total.cross_host.payload));
            add(round + ", messages", Kind::whole,
                static_cast<double>(total.host.messages + total.cross_host.messages));
            add(round + ", host, payload", Kind::total, static_cast<double>(total.host.payload));
            add(round + ", cross_host, payload", Kind::total, static_cast<double>(total.cross_host.payload));
        }
    }
    /// Bytes that each rank's tables look up.
    template <class Number>
    static std::vector<std::pair<std::string, double>> looked_up_by(const std::vector<Number>& by_rank) {
        std::vector<std::pair<std::string, double>> all;
        for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
            all.emplace_back("bytes looked up by rank " + std::to_string(rank), static_cast<double>(by_rank[rank]));
        return all;
    }

    [[nodiscard]] std::string text(const Sampled& of) const {
        return setting_.name() + ": " + of.name + " " + std::to_string(of.mean()) + " +- " +
               std::to_string(of.standard_error()) + ", expected " + std::to_string(of.expected);
    }

    const Setting& setting_;
    sw::LayerBlueprint layer_;
    std::vector<int> neighbours_;
    std::vector<Sampled> numbers_;
    std::vector<Sampled> syncs_;
    Sampled memory_;
    sw::SyncTally syncing_;
    double sync_memory_ = 0;
};

TEST(Expectation, IsTheMeanOverBatches) {
    const int cases = std::getenv("SHARDWISE_FULL") != nullptr ? 400 : 24;
    for (int number = 0; number < cases; ++number) {
        Dice dice{static_cast<std::uint64_t>(number)};
        const Setting setting = any_setting(dice);
        SCOPED_TRACE("case " + std::to_string(number));
        Comparison comparison{setting};
        Batches batches{setting};
        for (int drawn = 0; drawn < 200 || (drawn < 20000 && !comparison.hardly_known().empty()); drawn += 50)
            for (int i = 0; i < 50; ++i)
                comparison.add(batches.draw(dice.engine));
        ASSERT_EQ(comparison.hardly_known(), "") << setting.name();
        comparison.check();
    }
}

/// Where no batch differs from another, nothing is left to chance: neither bytes nor memory.
RC_GTEST_PROP(Expectation, IsExactWhereNothingDiffers, ()) {
    Dice dice{*rc::gen::arbitrary<std::uint64_t>()};
    Setting setting = any_setting(dice);
    const bool alone = dice.one_in(2);  // on one rank nothing moves
    if (alone) setting.topology = {};
    if (alone) setting.groups = {};
    setting.names.tiered = false;
    setting.names.requests = "raw";  // distinct ids differ
    setting.names.shardings = {dice.pick<std::string>(alone ? std::vector<std::string>{"row", "col", "table", "dp"}
                                                            : std::vector<std::string>{"col", "table"})};
    if (setting.names.shardings[0] == "col")  // no norms of rows
        setting.names.optimizer = dice.pick<std::string>({"sgd", "adagrad", "adam"});
    for (sw::TableConfig& table : setting.tables)
        table.sharding.clear();
    RC_PRE(sw::KnownPolicies{}.refusal(setting.names).empty());
    if (alone) setting.towers = {};
    setting.workload.tables.clear();
    setting.workload.lengths.clear();
    const bool single = dice.one_in(2);
    for (const sw::TableConfig& table : setting.tables) {
        double ids = 0.0;
        for (std::size_t f = 0; f < table.features.size(); ++f) {
            setting.workload.lengths.push_back(sw::BagLengths::fixed(single ? 1 : dice.below(4)));
            ids += setting.workload.lengths.back().mean();
        }
        const double p = ids / static_cast<double>(table.rows);
        setting.workload.tables.push_back(
            {.table = table.name, .runs = {{.p = p, .q = 0.0, .rows = table.rows}}, .rows = {}});
    }
    const sw::LayerBlueprint layer = setting.blueprint();
    const auto drawn = Batches{setting}.draw(dice.engine);
    sw::MemoryTally counted;
    sw::MemoryTally foreseen;
    const sw::LayerCost cost = layer.predict_cost(views(drawn), &counted, 0);
    const sw::ExpectedLayerCost expected = layer.expect_cost(setting.workload, &foreseen, 0);
    std::vector<double> numbers;
    each_number(cost, setting.topology, [&](const std::string&, Kind, double value) { numbers.push_back(value); });
    std::size_t next = 0;
    each_number(expected, setting.topology, [&](const std::string& name, Kind, double value) {
        if (std::abs(value - numbers.at(next)) > 1e-9 * value) RC_FAIL(setting.name() + ": " + name);
        ++next;
    });
    RC_ASSERT(next == numbers.size());
    if (setting.names.shardings[0] != "dp")  // which keeps sums of touched rows
        RC_ASSERT(foreseen.bytes() == counted.bytes());
    const std::vector<sw::SegmentCost> whole = sw::rounded(expected.segments);
    RC_ASSERT(whole.size() == cost.segments.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        RC_ASSERT(whole[i].traffic == cost.segments[i].traffic);
        RC_ASSERT(whole[i].steps == cost.segments[i].steps);
    }
}

/// The message of the BadInput that expecting a workload throws.
std::string refusal(const sw::LayerBlueprint& layer, const sw::Workload& workload, int rank = 0) {
    try {
        static_cast<void>(layer.expect_cost(workload, nullptr, rank));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(Expectation, SaysWhatIsWrong) {
    const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 10, .dim = 4}};
    const sw::LayerBlueprint layer = sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, tables, {});
    const sw::Workload good{.samples = 8,
                            .weighted = false,
                            .tables = {{.table = "a", .runs = {{.p = 0.1, .q = 0.1, .rows = 10}}, .rows = {}}},
                            .lengths = {sw::BagLengths::fixed(1)}};
    EXPECT_EQ(refusal(layer, good), "");
    EXPECT_EQ(refusal(layer, good, 2), "rank 2 of 2: ranks are numbered from 0");
    const auto with = [&](auto change) {
        sw::Workload workload = good;
        change(workload);
        return refusal(layer, workload);
    };
    const std::string of_a = "the workload of table 'a': ";
    const auto unlisted = [](int listed, int rows) {
        return "it lists " + std::to_string(listed) + " rows, and its runs have " + std::to_string(rows) +
               ": list all, or all but the last run's where these are all others of the table";
    };
    EXPECT_EQ(with([](auto& w) { w.samples = -1; }), "a workload of -1 samples a rank: give a number from 0 on");
    EXPECT_EQ(with([](auto& w) { w.tables.clear(); }), "a workload of 0 tables for a layer of 1");
    EXPECT_EQ(with([](auto& w) { w.lengths.clear(); }), "a workload with bag lengths of 0 features for a layer of 1");
    EXPECT_EQ(with([](auto& w) { w.tables[0].table = "b"; }),
              of_a + "it is called 'b' there: give the layer's tables in their order");
    EXPECT_EQ(with([](auto& w) { w.tables[0].runs[0].p = -1; }),
              of_a + "rows with -1.000000 look-ups a sample: give finite numbers that are not negative");
    EXPECT_EQ(with([](auto& w) { w.tables[0].runs[0].q = 0.5; }),
              of_a +
                  "rows in a share of 0.500000 of the samples, with 0.100000 look-ups a sample: give shares from 0 "
                  "to 1, and no more than look-ups");
    EXPECT_EQ(with([](auto& w) { w.tables[0].runs[0].rows = 11; }),
              of_a + "a run of 11 rows after 0 others: give at least 1, and no more than the table's 10 together");
    EXPECT_EQ(with([](auto& w) { w.tables[0].rows = {1}; }), of_a + unlisted(1, 10));
    EXPECT_EQ(with([](auto& w) { w.tables[0].runs.push_back(w.tables[0].runs[0]); }),
              of_a + "a run of 10 rows after 10 others: give at least 1, and no more than the table's 10 together");
    EXPECT_EQ(with([](auto& w) {  // the 8 of the last run are not all others
                  w.tables[0].runs = {{.p = 0.2, .q = 0.2, .rows = 1}, {.p = 0.1, .q = 0.1, .rows = 8}};
                  w.tables[0].rows = {7};
              }),
              of_a + unlisted(1, 9));
    EXPECT_EQ(with([](auto& w) {
                  w.tables[0].runs = {{.p = 0.1, .q = 0.1, .rows = 1}, {.p = 0.1, .q = 0.1, .rows = 9}};
                  w.tables[0].rows = {7};
              }),
              "");
    EXPECT_EQ(with([](auto& w) { w.tables[0].rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10}; }),
              of_a + "row 10 is not one of its rows, 0 to 9");
    EXPECT_EQ(with([](auto& w) { w.tables[0].rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8}; }), of_a + "row 8 stands twice");
    EXPECT_EQ(with([](auto& w) { w.lengths[0].shares[0].share = 0.5; }),
              "the workload of feature 'a': the shares of its bags' lengths add up to 0.500000: give shares that add "
              "up to 1");
    EXPECT_EQ(with([](auto& w) { w.lengths[0] = sw::BagLengths::fixed(2); }),
              of_a +
                  "its features look up 2.000000 ids a sample, and its rows are looked up 1.000000 times: give "
                  "lengths of bags that fit");
    EXPECT_THROW(static_cast<void>(sw::BagLengths::fixed(-1)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::BagLengths::near(std::nan(""))), sw::BadInput);

    const sw::LayerBlueprint sequences = sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, tables, {.pooling = "none"});
    sw::Workload weighted = good;
    weighted.weighted = true;
    EXPECT_NE(refusal(sequences, weighted), "");
    EXPECT_EQ(refusal(sequences, good), "");
}

}  // namespace
