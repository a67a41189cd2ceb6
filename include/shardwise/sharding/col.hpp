// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// Tables split by column.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Blocks of columns whose widths differ by at most one.
struct EqualColumns : WholeRows {
    static constexpr Splits splits = Splits::columns;

    static constexpr Columns columns(int shard, const TableShape& table) noexcept {
        const int first = static_cast<int>(static_cast<std::int64_t>(table.dim) * shard / table.shards);
        const int end = static_cast<int>(static_cast<std::int64_t>(table.dim) * (shard + 1) / table.shards);
        return {.first = first, .count = end - first};
    }
};

/// "col" and the number.
template <int Factor>
inline constexpr std::array<char, 16> col_name = [] {
    std::array<char, 16> text{'c', 'o', 'l'};
    std::size_t digits = 0;
    for (int rest = Factor; rest > 0; rest /= 10)
        ++digits;
    for (int rest = Factor; rest > 0; rest /= 10)
        text[2 + digits--] = static_cast<char>('0' + rest % 10);
    return text;
}();

}  // namespace detail

/// Every table is cut into Factor equally wide blocks of columns (fewer where it has fewer columns, or there are fewer
/// ranks), each placed where the least is looked up so far, the largest first. A rank gets the ids of its blocks alone,
/// and sends their columns back: ids travel Factor times, instead of once a rank as under Col<>. What a block is looked
/// up is its columns, times the table's features and load; of ranks with as little, one takes it that holds fewer
/// elements. Where ranks have a room (LayerOptions::room), only those that have room for the block are looked at.
template <int Factor = 0>
struct Col {
    static_assert(Factor > 0, "Col<Factor> cuts a table into Factor blocks of columns: give at least one, or Col<>");
    static constexpr const char* name = detail::col_name<Factor>.data();
    static constexpr Splits splits = Splits::columns;

    /// Of one table: its blocks, and who holds them.
    struct mapping {  // NOLINT(readability-identifier-naming): as mdspan calls it
        TableShape table;
        std::vector<int> owners;  ///< (shard)

        [[nodiscard]] int shards() const noexcept { return table.shards; }
        [[nodiscard]] int owner(int shard) const { return owners[static_cast<std::size_t>(shard)]; }
        [[nodiscard]] static RowPlace place(std::int64_t row) noexcept { return {.shard = 0, .local = row}; }
        [[nodiscard]] static std::int64_t row(const RowPlace& place) noexcept { return place.local; }
        [[nodiscard]] std::int64_t rows(int) const noexcept { return table.rows; }
        [[nodiscard]] Columns columns(int shard) const noexcept { return detail::EqualColumns::columns(shard, table); }
    };

    /// \throws BadInput for a block that no rank has room for
    [[nodiscard]] static std::vector<mapping> map(const Topology& t, std::span<const TableLoad> tables) {
        struct Block {
            double load;
            double elements;
            double bytes;
            std::size_t table;
            std::size_t shard;
        };
        std::vector<Block> blocks;
        std::vector<mapping> maps;
        for (const TableLoad& table : tables) {
            TableShape shape = table.shape;
            shape.shards = std::min({Factor, shape.dim, t.ranks()});
            for (int s = 0; s < shape.shards; ++s) {
                const int width = detail::EqualColumns::columns(s, shape).count;
                blocks.push_back({.load = static_cast<double>(width) * table.features * static_cast<double>(table.load),
                                  .elements = static_cast<double>(width) * static_cast<double>(table.shape.rows),
                                  .bytes = table.bytes(width),
                                  .table = maps.size(),
                                  .shard = static_cast<std::size_t>(s)});
            }
            maps.push_back({shape, std::vector<int>(static_cast<std::size_t>(shape.shards), -1)});
        }
        std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
            return std::tie(a.load, a.elements) > std::tie(b.load, b.elements);
        });
        struct Rank {
            double load = 0;
            double elements = 0;
            double bytes = 0;
        };
        std::vector<Rank> ranks(static_cast<std::size_t>(t.ranks()));
        for (const Block& block : blocks) {
            auto& of_table = maps[block.table].owners;
            int best = -1;
            for (int r = 0; r < t.ranks(); ++r) {
                if (std::find(of_table.begin(), of_table.end(), r) != of_table.end()) continue;
                const Rank& rank = ranks[static_cast<std::size_t>(r)];
                const double room = tables[block.table].room;
                if (room > 0 && rank.bytes + block.bytes > room) continue;
                if (best < 0 ||
                    std::tie(rank.load, rank.elements) < std::tie(ranks[static_cast<std::size_t>(best)].load,
                                                                  ranks[static_cast<std::size_t>(best)].elements))
                    best = r;
            }
            if (best < 0)
                throw BadInput{concat({"table '", tables[block.table].name, "': no rank has room for a block of ",
                                       static_cast<std::int64_t>(block.bytes), " bytes beside what is there, of ",
                                       static_cast<std::int64_t>(tables[block.table].room),
                                       " a rank: give more room, more ranks, or more blocks a table"})};
            of_table[block.shard] = best;
            ranks[static_cast<std::size_t>(best)].load += block.load;
            ranks[static_cast<std::size_t>(best)].elements += block.elements;
            ranks[static_cast<std::size_t>(best)].bytes += block.bytes;
        }
        return maps;
    }
};

/// Every rank holds an equally wide block of columns of every row (with fewer columns than ranks there is one column a
/// shard). Every rank gets all ids, and sends its columns back.
template <>
struct Col<0> : detail::EqualColumns {
    static constexpr const char* name = "col";

    static constexpr int shards(const Topology& t, int dim) noexcept { return dim < t.ranks() ? dim : t.ranks(); }
    static constexpr int owner(const Topology& t, int table, int shard) noexcept { return (shard + table) % t.ranks(); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
