// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/table_balance.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// A load has to be above 0.
SHARDWISE_INLINE float load_of(double ids) {
    return std::max(std::numeric_limits<float>::min(), static_cast<float>(ids));
}

SHARDWISE_INLINE FeatureIds::FeatureIds(const std::vector<TableConfig>& tables) {
    for (std::size_t t = 0; t < tables.size(); ++t)
        for (const std::string& name : features_of(tables[t]))
            features_.push_back({.name = name, .table = t});
}

SHARDWISE_INLINE void FeatureIds::add(std::int64_t feature, std::int64_t features, std::span<const std::string> keys,
                                      std::int64_t ids, std::int64_t bags) {
    if (features != std::ssize(features_))
        throw BadInput{
            concat({"a batch of ", features, " features, and the tables have ", features_.size(), " together"})};
    auto found = features_.begin() + feature;
    if (!keys.empty()) {
        const std::string& name = keys[static_cast<std::size_t>(feature)];
        found = std::find_if(features_.begin(), features_.end(), [&](const Feature& f) { return f.name == name; });
        if (found == features_.end())
            throw BadInput{concat({"a batch with a feature '", name, "', which no table has"})};
    }
    found->ids += static_cast<double>(ids);
    found->bags += static_cast<double>(bags);
}

SHARDWISE_INLINE void FeatureIds::set_loads(std::vector<TableConfig>& tables) const {
    std::vector<double> ids(tables.size());
    for (const Feature& feature : features_)
        if (feature.bags > 0) ids[feature.table] += feature.ids / feature.bags;
    for (std::size_t t = 0; t < tables.size(); ++t)
        tables[t].load = load_of(ids[t] / static_cast<double>(features_of(tables[t]).size()));
}

/// A depth-first search for the least load of the most loaded rank, from the given placement on. Blocks come largest
/// first, and go to the rank that has least first; of ranks that are alike only the first is tried.
class BalanceSearch {
  public:
    BalanceSearch(const PlacedBlocks& placed, double room, std::int64_t most_tries)
        : placed_{placed},
          room_{room},
          tries_{most_tries},
          ranks_(static_cast<std::size_t>(placed.ranks)),
          order_(placed.blocks.size()),
          owners_(placed.blocks.size(), -1) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::size_t a, std::size_t b) { return block(a).load > block(b).load; });
        double sum = 0;
        int tables = 0;
        for (const LoadedBlock& one : placed.blocks) {
            sum += one.load;
            tables = std::max(tables, one.table + 1);
        }
        for (Rank& rank : ranks_)
            rank.has.assign(static_cast<std::size_t>(tables), false);
        least_ = std::max(sum / placed.ranks, placed.blocks.empty() ? 0.0 : block(order_[0]).load);
        begin_with(placed);
    }

    /// Nothing where tries have run out before all was looked at, or nothing has room.
    [[nodiscard]] std::optional<PlacedBlocks> run() {
        if (!done()) search(0, 0.0);
        if (tries_ < 0 || best_owners_.size() != owners_.size()) return std::nullopt;
        PlacedBlocks best = placed_;
        best.owners = best_owners_;
        return best;
    }

  private:
    struct Rank {
        double load = 0;
        double bytes = 0;
        std::vector<bool> has;  // (table)
    };

    [[nodiscard]] const LoadedBlock& block(std::size_t number) const { return placed_.blocks[number]; }
    [[nodiscard]] bool has_room(const Rank& rank) const { return room_ <= 0 || rank.bytes <= room_; }
    [[nodiscard]] bool done() const { return tries_ < 0 || best_ <= least_ * (1 + 1e-12); }

    void begin_with(const PlacedBlocks& placed) {
        std::vector<Rank> full(ranks_.size());
        double most = 0;
        for (std::size_t i = 0; i < placed.owners.size(); ++i) {
            Rank& rank = at(full, placed.owners[i]);
            rank.load += block(i).load;
            rank.bytes += block(i).bytes;
            most = std::max(most, rank.load);
        }
        if (!std::all_of(full.begin(), full.end(), [&](const Rank& rank) { return has_room(rank); })) return;
        best_ = most;
        best_owners_ = placed.owners;
    }

    void search(std::size_t depth, double most) {
        if (--tries_ < 0) return;
        if (most >= best_) return;
        if (depth == order_.size()) {
            best_ = most;
            best_owners_ = owners_;
            return;
        }
        const LoadedBlock& one = block(order_[depth]);
        const auto table = static_cast<std::size_t>(one.table);
        std::vector<std::size_t> turns;
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            if (!ranks_[r].has[table]) turns.push_back(r);
        const auto key = [&](std::size_t r) { return std::pair{ranks_[r].load, ranks_[r].bytes}; };
        std::stable_sort(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
        turns.erase(
            std::unique(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) { return alike(a, b, depth); }),
            turns.end());
        for (const std::size_t r : turns) {
            if (done()) return;
            Rank& rank = ranks_[r];
            const double load = rank.load;
            const double bytes = rank.bytes;
            rank.load += one.load;
            rank.bytes += one.bytes;
            if (has_room(rank)) {
                rank.has[table] = true;
                owners_[order_[depth]] = static_cast<int>(r);
                search(depth + 1, std::max(most, rank.load));
                owners_[order_[depth]] = -1;
                rank.has[table] = false;
            }
            rank.load = load;
            rank.bytes = bytes;
        }
    }
    /// Of two ranks without the block's table: the same may follow on both.
    [[nodiscard]] bool alike(std::size_t a, std::size_t b, std::size_t depth) const {
        const Rank& one = ranks_[a];
        const Rank& other = ranks_[b];
        if (one.load != other.load || one.bytes != other.bytes) return false;
        return std::all_of(order_.begin() + static_cast<std::ptrdiff_t>(depth), order_.end(), [&](std::size_t i) {
            const auto table = static_cast<std::size_t>(block(i).table);
            return one.has[table] == other.has[table];
        });
    }

    const PlacedBlocks& placed_;
    double room_;
    std::int64_t tries_;
    std::vector<Rank> ranks_;
    std::vector<std::size_t> order_;
    std::vector<int> owners_;  // (block)
    std::vector<int> best_owners_;
    double best_ = std::numeric_limits<double>::infinity();
    double least_ = 0;  // no placement has less
};

}  // namespace detail

SHARDWISE_INLINE void set_loads(std::vector<TableConfig>& tables, const Workload& workload) {
    check(workload, tables);
    std::size_t feature = 0;
    for (TableConfig& table : tables) {
        const std::size_t features = features_of(table).size();
        double ids = 0;
        for (std::size_t f = 0; f < features; ++f)
            ids += workload.lengths[feature++].mean();
        table.load = detail::load_of(ids / static_cast<double>(features));
    }
}

SHARDWISE_INLINE PlacedBlocks blocks_of(const Placement& placement, const std::vector<TableConfig>& tables) {
    PlacedBlocks placed;
    placed.ranks = placement.home.size;
    for (const TablePlacement& table : placement.tables) {
        const TableConfig& config = at(tables, table.table);
        const double ids = static_cast<double>(config.load) * static_cast<double>(features_of(config).size());
        for (const ShardPlacement& shard : table.shards) {
            const double share = placement.splits == Splits::rows
                                     ? static_cast<double>(shard.rows) / static_cast<double>(table.rows)
                                     : 1.0;
            placed.blocks.push_back({.load = ids * share * shard.columns.count,
                                     .bytes = 4.0 * static_cast<double>(shard.rows) * shard.columns.count,
                                     .table = table.table});
            placed.owners.push_back(shard.owner);
        }
    }
    return placed;
}

SHARDWISE_INLINE double imbalance_of(const PlacedBlocks& placed) {
    std::vector<double> loads(static_cast<std::size_t>(placed.ranks));
    double sum = 0;
    for (std::size_t i = 0; i < placed.blocks.size(); ++i) {
        at(loads, placed.owners[i]) += placed.blocks[i].load;
        sum += placed.blocks[i].load;
    }
    return sum > 0 ? *std::max_element(loads.begin(), loads.end()) * placed.ranks / sum : 1;
}

SHARDWISE_INLINE std::optional<PlacedBlocks> best_placement(const PlacedBlocks& placed, double room,
                                                            std::int64_t most_tries) {
    return detail::BalanceSearch{placed, room, most_tries}.run();
}

}  // namespace shardwise::inline SHARDWISE_ABI
