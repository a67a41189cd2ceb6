// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>

#include "shardwise/embedding/lanes/expectation.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// What the shard of a feature is told of a batch of `all` bags, where each id is there with probability `share`.
struct ExpectedBags {
    const BagLengths& lengths;
    std::int64_t all;
    double share;
    double without = lengths.without(share);
    double with_one = lengths.with_one(share);
    double with = 1.0 - without;

    /// All bags are of a kind that has this share of them.
    [[nodiscard]] double all_are(double kind) const { return std::pow(kind, static_cast<double>(all)); }
    [[nodiscard]] double bags(double kind) const { return kind * static_cast<double>(all); }

    [[nodiscard]] ExpectedCount ids() const {
        Remainders of_bag;
        for (const BagLengths::Share& of : lengths.shares)
            of_bag = of_bag.plus(of.share, Remainders::once(share, 1.0 - share).times(of.length));
        return {bags(share * lengths.mean()), of_bag.times(all)};
    }
    [[nodiscard]] ExpectedCount with_ids() const { return {bags(with), Remainders::once(with, without).times(all)}; }
    /// Those that have ids, unless all of them have.
    [[nodiscard]] ExpectedCount with_ids_unless_all() const {
        const double all_have = all_are(with);
        return {bags(with - all_have), with_ids().remainders.plus(-all_have, all).plus(all_have, 0)};
    }
    /// Those that have ids, unless each of them has one.
    [[nodiscard]] ExpectedCount with_ids_unless_single() const {
        const double none_has_more = all_are(without + with_one);
        const double single =
            all == 0 ? 0.0 : bags(with_one) * std::pow(without + with_one, static_cast<double>(all - 1));
        return {
            bags(with) - single,
            with_ids().remainders.plus(-1.0, Remainders::once(with_one, without).times(all)).plus(none_has_more, 0)};
    }
    /// All bags, unless none has an id or, where `may_be_single`, each has one.
    [[nodiscard]] ExpectedCount all_unless_none(bool may_be_single) const {
        const double none = all_are(without) + (may_be_single ? all_are(with_one) : 0.0);
        return ExpectedCount{1.0 - none, Remainders::once(1.0 - none, none)} * all;
    }
};

}  // namespace detail

SHARDWISE_INLINE ExpectedBatch::ExpectedBatch(const Workload& workload, std::span<const int> features,
                                              std::span<const double> shares, bool weighted)
    : samples_{workload.samples},
      weighted_{weighted},
      bytes_{workload.single() ? 0 : 4 * std::ssize(workload.lengths) * workload.samples} {
    for (std::size_t i = 0; i < features.size(); ++i) {
        const detail::ExpectedBags bags{at(workload.lengths, features[i]), samples_, shares[i]};
        values_.push_back(bags.ids());
        told_bags_.push_back(bags.with_ids_unless_all());
    }
}

SHARDWISE_INLINE void EmbeddingExpectation::begin(const Workload& of, int tier) {
    workload = &of;
    const Topology& topology = placement->topology;
    const std::int64_t home = of.samples * placement->home.size;
    rows.clear();
    for (const TablePlacement& table : placement->tables) {
        const RowMap* map = nullptr;
        for (std::size_t f = 0; tier >= 0 && map == nullptr && f < placement->features.size(); ++f)
            if (placement->table_of(static_cast<int>(f)).table == table.table)
                map = at(tiers->features, placement->features[f].feature).map.get();
        rows.emplace_back(at(of.tables, table.table),
                          ExpectedRows::Where{.map = table.map.get(),
                                              .shards = placement->splits == Splits::rows ? table.map->shards() : 1,
                                              .copies = placement->copies(),
                                              .tiers = map,
                                              .tier = tier},
                          std::vector<std::int64_t>{of.samples, of.samples * topology.ranks_per_host,
                                                    of.samples * topology.ranks(), home});
    }
    std::vector<int> numbers;
    std::vector<double> shares;
    for (const FeaturePlacement& feature : placement->features) {
        numbers.push_back(feature.feature);
        shares.push_back(at(rows, feature.table).share());
    }
    expected_batch = ExpectedBatch{of, numbers, shares, of.weighted && pooling->pooled};
}

SHARDWISE_INLINE void EmbeddingExpectation::count_blocks() {
    counts.clear();
    of_key.clear();
    for (int f = 0; f < static_cast<int>(placement->features.size()); ++f)
        for (int s = 0; s < static_cast<int>(placement->table_of(f).shards.size()); ++s) {
            of_key.emplace_back(at(placement->features, f).table, placement->splits == Splits::rows ? s : 0);
            counts.push_back(count_of(f, of_key.back().second));
        }
}

SHARDWISE_INLINE EmbeddingExpectation::Count EmbeddingExpectation::count_of(int feature, int shard) const {
    const FeaturePlacement& placed = at(placement->features, feature);
    const detail::ExpectedBags bags{at(workload->lengths, placed.feature), samples(0),
                                    at(rows, placed.table).share(shard)};
    if (pooling->every_bag)
        return {.ids = bags.ids(),
                .bags = samples(0),
                .with_lengths = bags.all_unless_none(placement->splits != Splits::rows),
                .with_numbers = 0};
    return {.ids = bags.ids(),
            .bags = bags.with_ids(),
            .with_lengths = bags.with_ids_unless_single(),
            .with_numbers = bags.with_ids_unless_all()};
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
