// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// A row's tier, and its number there.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Five digits of base 3 in a byte: what a row is.
enum class RowIs : std::uint8_t { seen, replicated, unseen };

/// What one such byte says.
struct FiveRows {
    std::array<RowIs, 5> is = {};
    std::array<std::uint8_t, 5> before = {};  ///< replicated rows before each
    std::uint8_t replicated = 0;              ///< of the five
};
inline constexpr std::array<FiveRows, 243> five_rows = [] {
    std::array<FiveRows, 243> all{};
    for (std::size_t code = 0; code < all.size(); ++code) {
        std::size_t rest = code;
        for (std::size_t i = 0; i < 5; ++i, rest /= 3) {
            all[code].is[i] = static_cast<RowIs>(rest % 3);
            all[code].before[i] = all[code].replicated;
            if (all[code].is[i] == RowIs::replicated) ++all[code].replicated;
        }
    }
    return all;
}();

}  // namespace detail

/// The tiers of one table's rows: a bijection of rows and (tier, place). Replicated rows have places in the order of
/// the plan, those of the last tier in that of their numbers. Immutable; every function is pure.
///
/// Memory: nothing where the replicated rows are the first of the table, in this order, and the rows that nobody saw
/// its last; otherwise 8 bytes for 35 rows, rounded up to a multiple of 32, and 8 bytes a replicated row. Finding a
/// place reads one cache line, and another for a replicated row.
class RowMap {
  public:
    static constexpr std::size_t most_tiers = 3;
    /// Of a table whose rows are not in the order of their use.
    static constexpr std::int64_t most_rows = std::numeric_limits<std::uint32_t>::max();

    /// \throws BadInput as check(TableRowPlan), and for more tiers, or more rows out of order, than fit
    explicit RowMap(const TableRowPlan& plan, std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
    RowMap(const RowMap&) = delete;
    RowMap& operator=(const RowMap&) = delete;

    [[nodiscard]] int tiers() const noexcept { return tiers_; }
    /// How many rows a tier has; how many the table has.
    [[nodiscard]] std::int64_t rows(int tier) const noexcept { return first(tier + 1) - first(tier); }
    [[nodiscard]] std::int64_t rows() const noexcept { return first(tiers_); }

    [[nodiscard]] int tier(std::int64_t row) const noexcept {
        if (blocks_.empty()) return tier_at(row);
        if (is(row) != detail::RowIs::replicated) return tiers_ - 1;
        return tiers_ == 2 ? 0 : tier_at(places_[static_cast<std::size_t>(replicated_before(row))]);
    }
    /// The row's number in its tier.
    [[nodiscard]] std::int64_t place(std::int64_t row) const noexcept {
        if (blocks_.empty()) return row - first(tier_at(row));
        const std::int64_t before = replicated_before(row);
        if (is(row) != detail::RowIs::replicated) return row - before;
        const std::int64_t at = places_[static_cast<std::size_t>(before)];
        return at - first(tier_at(at));
    }
    /// The row in a place. Two reads for replicated rows, a binary search for those of the last tier.
    [[nodiscard]] std::int64_t row(int tier, std::int64_t place) const noexcept;
    /// Whether no profile saw the row.
    [[nodiscard]] bool unseen(std::int64_t row) const noexcept {
        return blocks_.empty() ? row >= first_unseen_ : is(row) == detail::RowIs::unseen;
    }

    /// What it takes of its memory.
    [[nodiscard]] std::int64_t bytes() const noexcept;

  private:
    static constexpr std::int64_t rows_a_byte = 5;
    static constexpr std::int64_t bytes_a_block = 28;
    static constexpr std::int64_t rows_a_block = rows_a_byte * bytes_a_block;
    struct Block {
        std::uint32_t before = 0;  // replicated rows in blocks before
        std::array<std::uint8_t, static_cast<std::size_t>(bytes_a_block)> codes = {};
    };

    [[nodiscard]] std::int64_t first(int tier) const noexcept { return first_[static_cast<std::size_t>(tier)]; }
    /// The tier of a place counted over all tiers.
    [[nodiscard]] int tier_at(std::int64_t place) const noexcept {
        int tier = 0;
        while (tier < tiers_ - 1 && place >= first(tier + 1))
            ++tier;
        return tier;
    }
    [[nodiscard]] static std::size_t byte_of(std::int64_t row) noexcept {
        return static_cast<std::size_t>(row % rows_a_block / rows_a_byte);
    }
    [[nodiscard]] const Block& block_of(std::int64_t row) const noexcept {
        return blocks_[static_cast<std::size_t>(row / rows_a_block)];
    }
    [[nodiscard]] const detail::FiveRows& five_of(std::int64_t row) const noexcept {
        return detail::five_rows[block_of(row).codes[byte_of(row)]];
    }
    [[nodiscard]] detail::RowIs is(std::int64_t row) const noexcept {
        return five_of(row).is[static_cast<std::size_t>(row % rows_a_byte)];
    }
    [[nodiscard]] std::int64_t replicated_before(std::int64_t row) const noexcept {
        const Block& block = block_of(row);
        std::int64_t count = block.before;
        for (std::size_t i = 0; i < byte_of(row); ++i)
            count += detail::five_rows[block.codes[i]].replicated;
        return count + five_of(row).before[static_cast<std::size_t>(row % rows_a_byte)];
    }
    void fill(const TableRowPlan& plan);

    int tiers_ = 0;
    std::array<std::int64_t, most_tiers + 1> first_ = {};  // (tier): the rows of tiers before
    std::int64_t first_unseen_ = 0;                        // where rows are in order
    std::pmr::vector<Block> blocks_;                       // empty: rows are in order
    std::pmr::vector<std::uint32_t> places_;               // (replicated row, ascending): its place in the plan
    std::pmr::vector<std::uint32_t> rows_;                 // (place in the plan)
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/sharding/row_map.ipp"
#endif
