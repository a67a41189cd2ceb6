// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>

#include "shardwise/embedding/lanes/expectation.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// Ids of so many bags of a feature, of which a share is meant.
SHARDWISE_INLINE ExpectedCount expected_ids(const BagLengths& lengths, double share, std::int64_t bags) {
    const auto most = std::llround(lengths.mean());
    if (share == 0.0 || lengths.all_are(0)) return 0;
    if (share == 1.0 && lengths.all_are(most)) return most * bags;
    return ExpectedCount::random(share * lengths.mean() * static_cast<double>(bags));
}
/// A probability within rounding of 0 or 1 is certain.
inline constexpr double rounding = 1e-12;

/// A count of at most `most`, that share of it in the mean, and a multiple of `step`.
SHARDWISE_INLINE ExpectedCount some_of(std::int64_t most, double probability, std::int64_t step) {
    if (probability <= rounding) return 0;
    if (probability >= 1.0 - rounding) return most;
    return ExpectedCount::random(probability * static_cast<double>(most), step);
}
SHARDWISE_INLINE ExpectedCount all_or_none(std::int64_t most, double probability) {
    return some_of(most, probability, most);
}
SHARDWISE_INLINE ExpectedCount at_random(double mean) {
    return mean <= 1e-9 ? ExpectedCount{} : ExpectedCount::random(mean);
}
/// Of so many bags, each with an id with some probability: those that have one, and those unless all have one.
SHARDWISE_INLINE ExpectedCount bags_with(std::int64_t bags, double probability) {
    return some_of(bags, probability, 1);
}
SHARDWISE_INLINE ExpectedCount bags_with_unless_all(std::int64_t bags, double probability) {
    const auto all = static_cast<double>(bags);
    return at_random(all * (probability - std::pow(probability, all)));
}

}  // namespace detail

SHARDWISE_INLINE ExpectedBatch::ExpectedBatch(const Workload& workload, std::span<const int> features,
                                              std::span<const double> shares, bool weighted)
    : samples_{workload.samples},
      weighted_{weighted},
      bytes_{workload.single() ? 0 : 4 * std::ssize(workload.lengths) * workload.samples} {
    for (std::size_t i = 0; i < features.size(); ++i) {
        const BagLengths& lengths = at(workload.lengths, features[i]);
        values_.push_back(detail::expected_ids(lengths, shares[i], samples_));
        told_bags_.push_back(detail::bags_with_unless_all(samples_, 1.0 - lengths.without(shares[i])));
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
    const BagLengths& lengths = at(workload->lengths, placed.feature);
    const std::int64_t bags = samples(0);
    const auto all = static_cast<double>(bags);
    const double share = at(rows, placed.table).share(shard);
    const double without = lengths.without(share);
    const double with_one = lengths.with_one(share);
    const double none_has = std::pow(without, all);
    Count count;
    count.ids = detail::expected_ids(lengths, share, bags);
    if (pooling->every_bag) {
        count.bags = bags;
        const double one_each = placement->splits == Splits::rows ? 0.0 : std::pow(with_one, all);
        count.with_lengths = detail::all_or_none(bags, 1.0 - one_each - none_has);
        return count;
    }
    // a bag that the shard is told of has one id there, and so has each other one
    const double one_each = all * with_one * std::pow(std::min(1.0, without + with_one), all - 1.0);
    count.bags = detail::bags_with(bags, 1.0 - without);
    count.with_lengths = detail::at_random((1.0 - without) * all - one_each);
    count.with_numbers = detail::bags_with_unless_all(bags, 1.0 - without);
    return count;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
