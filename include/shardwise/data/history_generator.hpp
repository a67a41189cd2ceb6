// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/sequences.hpp"

/// \file
/// Synthetic histories with a planted signal.

namespace shardwise::inline SHARDWISE_ABI {

/// A distribution of rows: `law(random)` draws one of [0, law.rows()). A Zipf and an AliasTable are laws.
template <class L>
concept RowLaw = requires(const L& law, KeyedRandom& random) {
    { law.rows() } -> std::same_as<std::int64_t>;
    { law(random) } -> std::same_as<std::int64_t>;
};

/// What generate_histories makes.
struct HistoryGeneratorOptions {
    std::int64_t users = 0;
    std::int64_t shortest = 20;  ///< items of a user: uniform in [shortest, longest]
    std::int64_t longest = 60;
    std::int64_t tastes = 16;  ///< groups of items; each user has one
    double loyalty = 0.8;      ///< share of a user's items that are surely of that group; 0: no signal
    std::uint64_t seed = 1;    ///< names the data set and what it hides
};

/// The group of a row.
[[nodiscard]] inline std::int64_t taste_of(const HistoryGeneratorOptions& options, std::int64_t row) noexcept {
    constexpr std::uint64_t groups = 0;
    return KeyedRandom{options.seed, groups, static_cast<std::uint64_t>(row)}.below(options.tastes);
}

/// Histories whose items follow a law, exactly, and hide something: rows have groups, each user likes one, and an item
/// of a user is drawn from that group's rows with probability `loyalty`, else from all. The group of a user is that of
/// a drawn row, so that groups are liked in proportion to their share of the law, and items of all users together have
/// the law's probabilities. What comes next is then told by the groups of what came before.
///
/// The history of user u is a pure function of (law, seed, u). Not collective. Cost: a draw an item, and about `tastes`
/// draws an item of the user's group.
/// \throws BadInput for numbers that make no histories
template <RowLaw Law>
[[nodiscard]] Histories generate_histories(const Law& law, const HistoryGeneratorOptions& options) {
    constexpr std::uint64_t users = 1;
    const auto& o = options;
    if (o.users < 1) throw BadInput{concat({"histories of ", o.users, " users: give at least 1"})};
    if (o.shortest < 1 || o.longest < o.shortest || o.longest - o.shortest >= std::int64_t{1} << 31)
        throw BadInput{
            concat({"histories of ", o.shortest, " to ", o.longest, " items: give 1 <= shortest <= longest"})};
    if (o.tastes < 1 || o.tastes >= std::int64_t{1} << 31)
        throw BadInput{concat({o.tastes, " tastes of users: give at least 1, and less than 2147483648"})};
    if (!(o.loyalty >= 0 && o.loyalty <= 1))
        throw BadInput{concat({"a loyalty of ", o.loyalty, ": give a share from 0 to 1"})};
    Histories all;
    all.rows = law.rows();
    for (std::int64_t user = 0; user < o.users; ++user) {
        KeyedRandom random{o.seed, users, static_cast<std::uint64_t>(user)};
        const std::int64_t items = o.shortest + random.below(o.longest - o.shortest + 1);
        const std::int64_t taste = taste_of(o, law(random));
        for (std::int64_t i = 0; i < items; ++i) {
            const bool loyal = random.uniform() < o.loyalty;
            std::int64_t row = law(random);
            while (loyal && taste_of(o, row) != taste)
                row = law(random);
            all.items.push_back(row);
        }
        all.users.push_back(user);
        all.offsets.push_back(std::ssize(all.items));
    }
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
