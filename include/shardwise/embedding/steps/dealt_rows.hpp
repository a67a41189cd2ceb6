// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/sharding/row_reduction.hpp"
#include "shardwise/topology/members.hpp"

/// \file
/// How the levels of the sums of copied rows deal rows over the members of a group.

namespace shardwise::inline SHARDWISE_ABI::steps::detail {

/// Rows of a shard that are dealt alike: first, first + stride and so on.
struct DealtRows {
    std::int64_t first = 0;
    std::int64_t stride = 1;
    std::int64_t count = 0;

    [[nodiscard]] LocalRow row(std::int64_t place) const { return static_cast<LocalRow>(first + place * stride); }
    [[nodiscard]] std::int64_t place(LocalRow row) const { return (std::int64_t{row} - first) / stride; }
    /// Bytes of a bit a row.
    [[nodiscard]] std::int64_t mask_bytes() const { return (count + 7) / 8; }
};

/// By one digit of the row's number.
struct Digit {
    Members group;
    Members under;

    [[nodiscard]] int of(LocalRow row) const {
        return static_cast<int>(row / static_cast<LocalRow>(under.size) % static_cast<LocalRow>(group.size));
    }
    /// The rows of a shard of `rows` that a rank may have for the member with a number.
    [[nodiscard]] DealtRows dealt(int rank, int number, std::int64_t rows) const {
        const std::int64_t first = under.index(rank) + std::int64_t{under.size} * number;
        const std::int64_t stride = std::int64_t{under.size} * group.size;
        return {.first = first, .stride = stride, .count = rows > first ? (rows - first - 1) / stride + 1 : 0};
    }
};

/// Whether the sums of a level travel dense.
[[nodiscard]] inline bool travels_dense(const DenseSums& dense, bool gather, bool from_partial) {
    if (gather) return dense.world;
    return from_partial ? dense.host : dense.rank;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps::detail
