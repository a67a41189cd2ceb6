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

namespace detail {

/// Puts lines together that stand in the order of time, whoever's they are.
class HistoryBuilder {
  public:
    void add(std::int64_t user, std::int64_t item) {
        const auto [found, is_new] = numbers_.try_emplace(user, all_.users.size());
        if (is_new) {
            all_.users.push_back(user);
            all_.offsets.push_back(0);
        }
        ++all_.offsets[found->second + 1];  // a count for now
        in_time_.emplace_back(found->second, item);
        all_.rows = std::max(all_.rows, item + 1);
    }
    /// \param rows  of the table of items; 0: as many as they take \param file  for the message
    /// \throws BadInput when there is no line
    [[nodiscard]] Histories finish(std::int64_t rows, const std::string& file) {
        if (in_time_.empty()) throw BadInput{concat({file, ": no history: every file is empty"})};
        if (rows != 0) all_.rows = rows;
        for (std::size_t u = 0; u != all_.users.size(); ++u)
            all_.offsets[u + 1] += all_.offsets[u];
        all_.items.resize(in_time_.size());
        std::vector<std::int64_t> next(all_.offsets.begin(), all_.offsets.end() - 1);
        for (const auto& [user, item] : in_time_)
            all_.items[static_cast<std::size_t>(next[user]++)] = item;
        return std::move(all_);
    }

  private:
    Histories all_;
    std::unordered_map<std::int64_t, std::size_t> numbers_;      // of users
    std::vector<std::pair<std::size_t, std::int64_t>> in_time_;  // (lines): number of the user, item
};

}  // namespace detail

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
    detail::HistoryBuilder builder;
    for (std::array<std::int64_t, 2> line{}; lines.next(line);) {
        const auto [user, item] = line;
        if (item >= most) lines.fail(1, concat({item, " is no item: they are 0 to ", most - 1}));
        builder.add(user, item);
    }
    return builder.finish(options.rows, lines.file());
}

}  // namespace shardwise::inline SHARDWISE_ABI
