// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/row_map.hpp"
#include "shardwise/sharding/shard_map.hpp"

/// \file
/// The maps of one tier of a table: rows are those of the table, and live where its policy puts their places.

namespace shardwise::inline SHARDWISE_ABI {

/// A policy's maps of a table with as many rows as a tier has, under the numbers that the rows have in the whole table.
class TierMap final : public ShardMap {
  public:
    TierMap(std::shared_ptr<const RowMap> rows, int tier, std::shared_ptr<const ShardMap> inside)
        : rows_{std::move(rows)}, tier_{tier}, inside_{std::move(inside)} {}

    [[nodiscard]] int shards() const override { return inside_->shards(); }
    [[nodiscard]] int owner(int shard) const override { return inside_->owner(shard); }
    /// Of a row of this tier.
    [[nodiscard]] RowPlace place(std::int64_t row) const override { return inside_->place(rows_->place(row)); }
    [[nodiscard]] std::int64_t row(const RowPlace& place) const override {
        return rows_->row(tier_, inside_->row(place));
    }
    [[nodiscard]] std::int64_t rows(int shard) const override { return inside_->rows(shard); }
    [[nodiscard]] Columns columns(int shard) const override { return inside_->columns(shard); }
    void locate(std::span<const std::int32_t> ids, std::int32_t* shard, LocalRow* local) const override {
        locate_all(ids, shard, local);
    }
    void locate(std::span<const std::int64_t> ids, std::int32_t* shard, LocalRow* local) const override {
        locate_all(ids, shard, local);
    }

  private:
    /// Places are found a few at a time, so that each map is asked once for many.
    template <class Id>
    void locate_all(std::span<const Id> ids, std::int32_t* shard, LocalRow* local) const {
        constexpr std::size_t many = 256;
        std::array<std::int64_t, many> places;
        for (std::size_t first = 0; first < ids.size(); first += many) {
            const std::size_t count = std::min(many, ids.size() - first);
            for (std::size_t i = 0; i < count; ++i)
                places[i] = rows_->place(ids[first + i]);
            inside_->locate(std::span<const std::int64_t>{places.data(), count},
                            shard == nullptr ? nullptr : shard + first, local + first);
        }
    }

    std::shared_ptr<const RowMap> rows_;
    int tier_;
    std::shared_ptr<const ShardMap> inside_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
