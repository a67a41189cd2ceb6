// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>

#include "shardwise/sharding/policy.hpp"

/// \file
/// A sharding policy of the user's own: a few pure functions, outside of the library.

namespace extending {

/// Ranges of `Length` neighbouring rows, dealt over the ranks: rank r has the ranges r, r + ranks, r + 2 ranks and so
/// on. Good where neighbouring rows are looked up by one rank's neighbours; bad where the first rows are the hot ones.
template <int Length>
struct RowRanges : shardwise::WholeColumns {
    static_assert(Length >= 1, "a range has at least one row");
    static constexpr const char* name = "row_ranges";
    static constexpr shardwise::Splits splits = shardwise::Splits::rows;
    static constexpr bool replicated = false;

    static constexpr int shards(const shardwise::Topology& t, int) noexcept { return t.ranks(); }
    static constexpr int owner(const shardwise::Topology&, int, int, int shard) noexcept { return shard; }
    static constexpr shardwise::RowPlace place(std::int64_t row, int shards, int) noexcept {
        const std::int64_t range = row / Length;
        return {.shard = static_cast<int>(range % shards), .local = range / shards * Length + row % Length};
    }
    static constexpr std::int64_t row(const shardwise::RowPlace& place, int shards, int) noexcept {
        const std::int64_t range = place.local / Length * shards + place.shard;
        return range * Length + place.local % Length;
    }
    static constexpr std::int64_t rows(std::int64_t rows, int shard, int shards, int) noexcept {
        const std::int64_t round = std::int64_t{Length} * shards;  // a range for every rank
        return rows / round * Length + std::clamp<std::int64_t>(rows % round - std::int64_t{shard} * Length, 0, Length);
    }
};
static_assert(shardwise::ShardingPolicy<RowRanges<100>>);

}  // namespace extending
