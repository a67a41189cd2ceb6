// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/merge_ranks.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Names and numbers of rows of a profile's tables, the same only for the same tables.
SHARDWISE_INLINE std::string tables_text(const AccessProfile& profile) {
    std::string text;
    for (const TableAccess& table : profile.tables)
        text += concat({table.name.size(), " ", table.name, " ", table.rows, "\n"});
    return text;
}

/// (rank): every rank's totals: its samples, and look-ups and error of each table.
SHARDWISE_INLINE std::vector<std::vector<std::int64_t>> gather_totals(CommunicatorRef comm, const AccessProfile& mine,
                                                                      const SourceLocation& where) {
    const std::vector<std::vector<char>> tables = all_gather_v<char>(comm, tables_text(mine), where);
    for (std::size_t rank = 1; rank != tables.size(); ++rank)
        if (tables[rank] != tables[0])
            throw BadInput{concat({"rank ", rank,
                                   ": its profile is of other tables than rank 0's: merge profiles of the same "
                                   "tables"})};
    std::vector<std::int64_t> totals{mine.samples};
    for (const TableAccess& table : mine.tables)
        totals.insert(totals.end(), {table.lookups, table.error});
    return all_gather_v<std::int64_t>(comm, totals, where);
}

/// (rank): what each peer has seen of the rows that this rank adds up, table by table. sizes[rank] is (table).
struct RowsByRank {
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<std::vector<RowAccess>> rows;

    RowsByRank(std::size_t ranks, std::size_t tables) : sizes(ranks, std::vector<std::int64_t>(tables)), rows(ranks) {}
};

template <class T>
[[nodiscard]] std::vector<std::span<const T>> spans_of(const std::vector<std::vector<T>>& parts) {
    return {parts.begin(), parts.end()};
}

/// Each row to the rank that adds it up.
SHARDWISE_INLINE RowsByRank deal_rows(CommunicatorRef comm, const AccessProfile& mine, const SourceLocation& where) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    RowsByRank send{ranks, mine.tables.size()};
    for (std::size_t t = 0; t != mine.tables.size(); ++t)
        for (const RowAccess& row : mine.tables[t].seen) {
            const std::size_t to = static_cast<std::size_t>(row.row) % ranks;
            ++send.sizes[to][t];
            send.rows[to].push_back(row);
        }
    RowsByRank receive{ranks, mine.tables.size()};
    CollectiveBuffers buffers;
    {
        const std::vector<std::span<std::int64_t>> to{receive.sizes.begin(), receive.sizes.end()};
        all_to_all_v<std::int64_t>(comm, spans_of(send.sizes), to, buffers, where);
    }
    for (std::size_t rank = 0; rank != ranks; ++rank) {
        std::size_t count = 0;
        for (const std::int64_t size : receive.sizes[rank])
            count += static_cast<std::size_t>(size);
        receive.rows[rank].resize(count);
    }
    const std::vector<std::span<RowAccess>> to{receive.rows.begin(), receive.rows.end()};
    all_to_all_v<RowAccess>(comm, spans_of(send.rows), to, buffers, where);
    return receive;
}

/// What ranks have seen of some rows, added up: of each table in turn, its number of rows and then these.
SHARDWISE_INLINE std::vector<RowAccess> sums_of(const RowsByRank& parts, std::size_t tables) {
    std::vector<RowAccess> sums;
    std::vector<std::size_t> begin(parts.rows.size(), 0);
    for (std::size_t t = 0; t != tables; ++t) {
        std::vector<RowAccess> rows;
        for (std::size_t rank = 0; rank != parts.rows.size(); ++rank) {
            const auto from = parts.rows[rank].begin() + static_cast<std::ptrdiff_t>(begin[rank]);
            rows.insert(rows.end(), from, from + parts.sizes[rank][t]);
            begin[rank] += static_cast<std::size_t>(parts.sizes[rank][t]);
        }
        std::sort(rows.begin(), rows.end(), [](const RowAccess& a, const RowAccess& b) { return a.row < b.row; });
        const std::size_t head = sums.size();
        sums.emplace_back();
        for (const RowAccess& row : rows) {
            if (sums.size() == head + 1 || sums.back().row != row.row) {
                sums.push_back(row);
            } else {
                sums.back().lookups += row.lookups;
                sums.back().samples += row.samples;
            }
        }
        sums[head].row = static_cast<std::int64_t>(sums.size() - head - 1);
    }
    return sums;
}

}  // namespace detail

SHARDWISE_INLINE AccessProfile merged_across_ranks(CommunicatorRef comm, const AccessProfile& mine,
                                                   const SourceLocation& where) {
    if (comm.size() == 1) return mine;
    const std::vector<std::vector<std::int64_t>> totals = detail::gather_totals(comm, mine, where);
    const std::vector<RowAccess> sums = detail::sums_of(detail::deal_rows(comm, mine, where), mine.tables.size());
    const std::vector<std::vector<RowAccess>> all = all_gather_v<RowAccess>(comm, sums, where);
    AccessProfile profile;
    for (const auto& of_rank : totals)
        profile.samples = detail::added(profile.samples, of_rank[0], "samples");
    std::vector<std::size_t> begin(all.size(), 0);
    for (std::size_t t = 0; t != mine.tables.size(); ++t) {
        TableAccess& table = profile.tables.emplace_back();
        table.name = mine.tables[t].name;
        table.rows = mine.tables[t].rows;
        for (std::size_t rank = 0; rank != all.size(); ++rank) {
            table.lookups = detail::added(table.lookups, totals[rank][1 + 2 * t], "look-ups");
            table.error += totals[rank][2 + 2 * t];
            const auto head = all[rank].begin() + static_cast<std::ptrdiff_t>(begin[rank]);
            table.seen.insert(table.seen.end(), head + 1, head + 1 + head->row);
            begin[rank] += static_cast<std::size_t>(head->row) + 1;
        }
        std::sort(table.seen.begin(), table.seen.end(),
                  [](const RowAccess& a, const RowAccess& b) { return a.row < b.row; });
    }
    return profile;
}

}  // namespace shardwise::inline SHARDWISE_ABI
