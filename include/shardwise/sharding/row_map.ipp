// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/row_map.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The first row from which on no row was seen, where no row before was unseen; else -1.
SHARDWISE_INLINE std::int64_t first_of_unseen_tail(const TableRowPlan& plan) {
    const auto first = std::find(plan.unseen.begin(), plan.unseen.end(), true);
    if (std::find(first, plan.unseen.end(), false) != plan.unseen.end()) return -1;
    return plan.unseen.empty() ? plan.rows : first - plan.unseen.begin();
}
SHARDWISE_INLINE bool replicates_first_rows(const TableRowPlan& plan) {
    for (std::size_t i = 0; i < plan.replicated.size(); ++i)
        if (plan.replicated[i] != static_cast<std::int64_t>(i)) return false;
    return true;
}

}  // namespace detail

SHARDWISE_INLINE RowMap::RowMap(const TableRowPlan& plan, std::pmr::memory_resource& memory)
    : tiers_{static_cast<int>(plan.tiers.size())}, blocks_{&memory}, places_{&memory}, rows_{&memory} {
    check(plan);
    const auto too_many = [&](std::size_t most, const char* what, std::int64_t are) {
        return BadInput{
            concat({"the row plan of table '", plan.table, "' has ", are, " ", what, ", and at most ", most, " fit"})};
    };
    if (plan.tiers.size() > most_tiers) throw too_many(most_tiers, "tiers", tiers_);
    for (std::size_t tier = 0; tier < plan.tiers.size(); ++tier)
        first_[tier + 1] = first_[tier] + plan.tiers[tier];
    first_unseen_ = detail::first_of_unseen_tail(plan);
    if (first_unseen_ >= 0 && detail::replicates_first_rows(plan)) return;
    if (plan.rows > most_rows)
        throw too_many(static_cast<std::size_t>(most_rows), "rows that are not in the order of their use", plan.rows);
    fill(plan);
}

SHARDWISE_INLINE void RowMap::fill(const TableRowPlan& plan) {
    const std::int64_t replicated = first(tiers_ - 1);
    rows_.resize(static_cast<std::size_t>(replicated));
    for (std::size_t i = 0; i < rows_.size(); ++i)
        rows_[i] =
            static_cast<std::uint32_t>(plan.replicated.empty() ? static_cast<std::int64_t>(i) : plan.replicated[i]);
    places_.resize(rows_.size());
    for (std::size_t i = 0; i < places_.size(); ++i)
        places_[i] = static_cast<std::uint32_t>(i);
    std::sort(places_.begin(), places_.end(), [this](std::uint32_t a, std::uint32_t b) { return rows_[a] < rows_[b]; });

    blocks_.resize(static_cast<std::size_t>((plan.rows + rows_a_block - 1) / rows_a_block));
    constexpr std::array<std::uint8_t, 5> unit = {1, 3, 9, 27, 81};
    const auto put = [&](std::int64_t row, detail::RowIs what) {
        blocks_[static_cast<std::size_t>(row / rows_a_block)].codes[byte_of(row)] +=
            static_cast<std::uint8_t>(unit[static_cast<std::size_t>(row % rows_a_byte)] * static_cast<unsigned>(what));
    };
    for (const std::uint32_t row : rows_)
        put(row, detail::RowIs::replicated);
    for (std::size_t row = 0; row < plan.unseen.size(); ++row)
        if (plan.unseen[row]) put(static_cast<std::int64_t>(row), detail::RowIs::unseen);
    std::uint32_t before = 0;
    for (Block& block : blocks_) {
        block.before = before;
        for (const std::uint8_t code : block.codes)
            before += detail::five_rows[code].replicated;
    }
}

SHARDWISE_INLINE std::int64_t RowMap::row(int tier, std::int64_t place) const noexcept {
    if (blocks_.empty()) return first(tier) + place;
    if (tier != tiers_ - 1) return rows_[static_cast<std::size_t>(first(tier) + place)];
    // Of the last tier: the last block that begins with no more of its rows than that, then row by row.
    std::int64_t low = 0;
    for (std::int64_t high = std::ssize(blocks_); high - low > 1;) {
        const std::int64_t middle = (low + high) / 2;
        const std::int64_t before = middle * rows_a_block - blocks_[static_cast<std::size_t>(middle)].before;
        (before <= place ? low : high) = middle;
    }
    std::int64_t row = low * rows_a_block;
    std::int64_t left = place - (row - blocks_[static_cast<std::size_t>(low)].before);
    for (;; ++row)
        if (is(row) != detail::RowIs::replicated && left-- == 0) return row;
}

SHARDWISE_INLINE std::int64_t RowMap::bytes() const noexcept {
    return static_cast<std::int64_t>(blocks_.size() * sizeof(Block) + (places_.size() + rows_.size()) * 4);
}

}  // namespace shardwise::inline SHARDWISE_ABI
