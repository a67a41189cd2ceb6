// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>

#include "shardwise/embedding/lanes/expectation.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// What the shard of a feature is told of a batch of `all` bags, where each id is there with probability `share`.
class ExpectedBags {
  public:
    ExpectedBags(const BagLengths& of, std::int64_t bags, double there)
        : lengths_{of}, all_{bags}, share_{there}, without_{of.without(there)}, with_one_{of.with_one(there)} {}

    /// All bags are of a kind that has this share of them.
    [[nodiscard]] double all_are(double kind) const { return std::pow(kind, static_cast<double>(all_)); }
    [[nodiscard]] double bags(double kind) const { return kind * static_cast<double>(all_); }

    [[nodiscard]] ExpectedCount ids() const { return {bags(share_ * lengths_.mean()), told_by_bags(1, 0)}; }
    [[nodiscard]] ExpectedCount with_ids() const {
        return {bags(with_), Remainders::once(with_, without_).times(all_)};
    }
    /// Those that have ids, unless all of them have.
    [[nodiscard]] ExpectedCount with_ids_unless_all() const {
        const double all_have = all_are(with_);
        return {bags(with_ - all_have), with_ids().remainders.plus(-all_have, all_).plus(all_have, 0)};
    }

    /// What the owner is told of bags that have ids there.
    /// \param id  bytes of an id and its weight \param alone  nobody asks whose bags they are
    [[nodiscard]] TierTrafficOf<ExpectedCount> told(std::int64_t id, bool alone) const {
        const double at_most_one = without_ + with_one_;
        const double of_single =
            all_ == 0 ? 0.0 : bags(with_one_) * std::pow(at_most_one, static_cast<double>(all_ - 1));
        const double with_lengths = bags(with_) - of_single;
        const double with_numbers = alone ? 0.0 : bags(with_ - all_are(with_));
        // Lengths stay away where each bag has one id (`single`), numbers where all bags have ids. First as if neither
        // were so; then what differs where it is.
        const std::int64_t number = alone ? 0 : 4;
        const auto single = [&](std::int64_t bag) {
            return Remainders{}.plus(without_, 0).plus(with_one_, id + bag).times(all_);
        };
        const auto full = [&](std::int64_t bag) { return told_by_bag(id, bag, 0.0).times(all_); };
        const auto both = [&](std::int64_t bag) { return Remainders{}.plus(with_one_, id + bag).times(all_); };
        const Remainders bytes = told_by_bags(id, 4 + number)
                                     .plus(1.0, single(number))
                                     .plus(-1.0, single(4 + number))
                                     .plus(1.0, full(4))
                                     .plus(-1.0, full(4 + number))
                                     .plus(1.0, both(0))
                                     .plus(-1.0, both(number))
                                     .plus(-1.0, both(4))
                                     .plus(1.0, both(4 + number));
        return traffic(id, 4.0 * (with_lengths + with_numbers), bytes);
    }
    /// What it is told of all bags: their lengths, unless none has an id or, where `may_be_single`, each has one.
    [[nodiscard]] TierTrafficOf<ExpectedCount> told_of_all(std::int64_t id, bool may_be_single) const {
        const double none = all_are(without_);
        const double single = may_be_single ? all_are(with_one_) : 0.0;
        const std::int64_t length = 4 * all_;
        const Remainders bytes = (told_by_bags(id, 0) * Remainders::of(length))
                                     .plus(none, 0)
                                     .plus(-none, length)
                                     .plus(single, id * all_)
                                     .plus(-single, id * all_ + length);
        return traffic(id, static_cast<double>(length) * (1.0 - none - single), bytes);
    }

  private:
    /// Bytes of a bag: of each id there, and of each bag that has one. \param empty  probability of one without
    [[nodiscard]] Remainders told_by_bag(std::int64_t id, std::int64_t bag, double empty) const {
        Remainders of_bag;
        for (const BagLengths::Share& of : lengths_.shares) {
            const double none = std::pow(1.0 - share_, static_cast<double>(of.length));
            const Remainders ids =
                Remainders::once(share_, 1.0 - share_).times(of.length).plus(-none, 0).multiplied(id);
            of_bag = of_bag.plus(of.share, ids * Remainders::of(bag));
        }
        return of_bag.plus(empty, 0);
    }
    [[nodiscard]] Remainders told_by_bags(std::int64_t id, std::int64_t bag) const {
        return told_by_bag(id, bag, without_).times(all_);
    }
    [[nodiscard]] TierTrafficOf<ExpectedCount> traffic(std::int64_t id, double control, const Remainders& bytes) const {
        return {.payload = {ids().mean * static_cast<double>(id), Remainders::of(0)},
                .control = {8.0 + control, bytes},
                .messages = 0};
    }

    const BagLengths& lengths_;
    std::int64_t all_;
    double share_;
    double without_;   // share of bags without an id there
    double with_one_;  // with exactly one
    double with_ = 1.0 - without_;
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

SHARDWISE_INLINE ExpectedBatch ExpectedBatch::of_distinct(std::vector<ExpectedCount> values) {
    ExpectedBatch batch;
    batch.samples_ = 1;
    batch.values_ = std::move(values);
    return batch;
}

SHARDWISE_INLINE void EmbeddingExpectation::begin(const Workload& of, int tier) {
    workload = &of;
    const Topology& topology = placement->topology;
    const auto ranks = [&](int count) { return Touches{.samples = of.samples * count}; };
    std::vector<Touches> all = {ranks(1), ranks(topology.ranks_per_host), ranks(topology.ranks()),
                                ranks(placement->home.size)};
    all.insert(all.end(), asked.begin(), asked.end());
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
                          all);
    }
    std::vector<int> numbers;
    std::vector<double> shares;
    for (const FeaturePlacement& feature : placement->features) {
        numbers.push_back(feature.feature);
        shares.push_back(at(rows, feature.table).share());
    }
    if (!pooling->distinct) {
        expected_batch = ExpectedBatch{of, numbers, shares, of.weighted && pooling->pooled};
        return;
    }
    std::vector<ExpectedCount> distinct;
    for (const FeaturePlacement& feature : placement->features)
        distinct.emplace_back(at(rows, feature.table).touched(of.samples), Remainders::even());
    expected_batch = ExpectedBatch::of_distinct(std::move(distinct));
}

SHARDWISE_INLINE void EmbeddingExpectation::begin_distinct(const Workload& of) {
    if (placement != nullptr) return begin(of);
    workload = &of;
    expected_batch = ExpectedBatch::of_distinct(distinct_ids(0));
}

SHARDWISE_INLINE std::vector<ExpectedCount> EmbeddingExpectation::distinct_ids(int) const {
    std::vector<ExpectedCount> by_table;
    for (const TableUse& table : workload->tables)
        by_table.emplace_back(table.distinct_rows(workload->samples), Remainders::even());
    return by_table;
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
    if (pooling->distinct) {
        const TouchedBy all{.residues = std::vector<char>(static_cast<std::size_t>(placement->copies()), 1),
                            .samples = workload->samples};
        const ExpectedCount ids = at(rows, placed.table).touched(shard, all);
        return {.ids = ids,
                .bags = ids,
                .bytes = {.payload = {4 * ids.mean, Remainders::of(0)},
                          .control = {8.0, ids.remainders.multiplied(4)},
                          .messages = 0}};
    }
    const detail::ExpectedBags bags{at(workload->lengths, placed.feature), samples(0),
                                    at(rows, placed.table).share(shard)};
    const std::int64_t id = expected_batch.weighted() ? 8 : 4;
    if (pooling->every_bag)
        return {
            .ids = bags.ids(), .bags = samples(0), .bytes = bags.told_of_all(id, placement->splits != Splits::rows)};
    return {.ids = bags.ids(), .bags = bags.with_ids(), .bytes = bags.told(id, placed.alone)};
}

SHARDWISE_INLINE ExpectedCount EmbeddingExpectation::elements_of(std::span<const Block> blocks) const {
    const Head& head = blocks.front().head;
    if (blocks.size() > 1 && !pooling->pooled && !pooling->distinct &&
        placement->splits == Splits::rows) {  // each id is in one of them
        const FeaturePlacement& placed = at(placement->features, head.feature);
        double share = 0.0;
        for (const Block& block : blocks)
            share += at(rows, placed.table).share(block.head.shard);
        const detail::ExpectedBags bags{at(workload->lengths, placed.feature), samples(0), std::min(1.0, share)};
        return bags.ids() * head.dim;
    }
    if (placement->splits == Splits::rows) return elements({blocks.begin(), blocks.end()});
    std::int64_t dims = 0;  // of columns, which have as many vectors each
    for (const Block& block : blocks)
        dims += block.head.dim;
    return blocks.front().n * dims;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
