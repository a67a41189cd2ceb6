// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/number_lines.hpp"

/// \file
/// The histories of users, from lines `user item [more columns]` in the order of time.

namespace shardwise::inline SHARDWISE_ABI {

/// What each user did, in the order of time.
struct Histories {
    std::vector<std::int64_t> users = {};     ///< (users): as the files have them, in the order of their first lines
    std::vector<std::int64_t> offsets = {0};  ///< (users + 1): where each one's items begin
    std::vector<std::int64_t> items = {};     ///< (lines): as the files have them, one user after the other
    std::int64_t rows = 0;                    ///< of a table of all items: those asked for, or the largest item and one

    [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(users); }
    /// The items of the user whose number among `users` is `user`, the first one first.
    [[nodiscard]] std::span<const std::int64_t> of(std::int64_t user) const noexcept {
        const auto u = static_cast<std::size_t>(user);
        return std::span{items}.subspan(static_cast<std::size_t>(offsets[u]),
                                        static_cast<std::size_t>(offsets[u + 1] - offsets[u]));
    }
};

/// What read_histories() reads.
struct HistoryOptions {
    std::vector<std::string> files = {};               ///< read one after the other; plain or gzip, by their content
    std::int64_t rows = 0;                             ///< items are below; 0: any
    std::size_t block_bytes = std::size_t{256} << 10;  ///< bytes read at once
};

/// Reads the histories of all users into memory. Lines are `user item [more columns]`, whole numbers with spaces or
/// tabs between them; a user's lines are in the order of time, wherever they stand. Items are taken as they are, so
/// that an item is the same row of a table here, in a profile and in a plan; users are numbered as they come, and
/// `users` has their own numbers.
///
/// Not collective: every rank that reads has all. Memory: 8 bytes a line and 16 a user; while it reads, 16 bytes a line
/// and a hash table of users more. \throws BadInput naming file, line, column and value, or when there is no line
[[nodiscard]] inline Histories read_histories(HistoryOptions options) {
    if (options.rows < 0)
        throw BadInput{concat({"a table of ", options.rows, " items: give at least 1, or 0 for as many as it takes"})};
    const std::int64_t most = options.rows == 0 ? std::numeric_limits<std::int64_t>::max() : options.rows;
    NumberLines lines{std::move(options.files), {"user", "item"}, true, options.block_bytes};
    Histories all;
    std::unordered_map<std::int64_t, std::size_t> numbers;      // of users
    std::vector<std::pair<std::size_t, std::int64_t>> in_time;  // (lines): number of the user, item
    for (std::array<std::int64_t, 2> line{}; lines.next(line);) {
        const auto [user, item] = line;
        if (item >= most) lines.fail(1, concat({item, " is no item: they are 0 to ", most - 1}));
        const auto [found, is_new] = numbers.try_emplace(user, all.users.size());
        if (is_new) {
            all.users.push_back(user);
            all.offsets.push_back(0);
        }
        ++all.offsets[found->second + 1];  // a count for now
        in_time.emplace_back(found->second, item);
        all.rows = std::max(all.rows, item + 1);
    }
    if (in_time.empty()) throw BadInput{concat({lines.file(), ": no history: every file is empty"})};
    if (options.rows != 0) all.rows = options.rows;
    for (std::size_t u = 0; u != all.users.size(); ++u)
        all.offsets[u + 1] += all.offsets[u];
    all.items.resize(in_time.size());
    std::vector<std::int64_t> next(all.offsets.begin(), all.offsets.end() - 1);
    for (const auto& [user, item] : in_time)
        all.items[static_cast<std::size_t>(next[user]++)] = item;
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
