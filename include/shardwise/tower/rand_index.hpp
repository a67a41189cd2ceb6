// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// How much two partitions have in common.

namespace shardwise::inline SHARDWISE_ABI {

/// The adjusted Rand index (Hubert and Arabie, 1985): 1 when two partitions are equal, whatever the names of their
/// parts, and 0 on average when they have nothing to do with each other. Pure.
/// \param a, b  (thing): its part
/// \throws BadInput when they are of different sizes
[[nodiscard]] inline double adjusted_rand_index(std::span<const int> a, std::span<const int> b) {
    if (a.size() != b.size())
        throw BadInput{concat({"partitions of ", a.size(), " and ", b.size(), " things: give two of the same"})};
    std::map<std::pair<int, int>, double> both;
    std::map<int, double> of_a;
    std::map<int, double> of_b;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ++both[{a[i], b[i]}];
        ++of_a[a[i]];
        ++of_b[b[i]];
    }
    const auto pairs = [](double n) { return n * (n - 1) / 2; };
    const auto inside = [&](const auto& parts) {
        double sum = 0;
        for (const auto& [part, n] : parts)
            sum += pairs(n);
        return sum;
    };
    const double mean = (inside(of_a) + inside(of_b)) / 2;
    const double by_chance = a.size() < 2 ? 0 : inside(of_a) * inside(of_b) / pairs(static_cast<double>(a.size()));
    if (mean == by_chance) return 1;  // both are one part, or both are single things
    return (inside(both) - by_chance) / (mean - by_chance);
}

}  // namespace shardwise::inline SHARDWISE_ABI
