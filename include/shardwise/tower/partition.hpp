// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/dense/initialization.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/tower/affinity.hpp"
#include "shardwise/tower/balanced_clusters.hpp"

/// \file
/// The tower partitioner: which features live together (Disaggregated Multi-Tower, section 3.3).

namespace shardwise::inline SHARDWISE_ABI {

/// Which features go together: those that are alike, or those that are not.
enum class TowerStrategy : std::uint8_t { coherent, diverse };

/// How features are partitioned.
struct PartitionOptions {
    int towers = 1;
    double ratio = 1.0;  ///< R: the largest tower has at most R times as much as the smallest
    TowerStrategy strategy = TowerStrategy::coherent;
    std::vector<double> weights = {};  ///< (feature): what a tower has of it, such as bytes or lookups; empty: 1 each
    std::vector<int> categories =
        {};  ///< (feature): features of two categories are never together; empty: one category
    std::uint64_t seed = 1;
    int starts = 8;          ///< of K-means, and half as many of the points in the plane; the best is taken
    int plane_steps = 1500;  ///< of Adam, from each start
};

/// A partition, and how it came about.
struct Partition {
    std::vector<int> tower_of;  ///< (feature)
    std::vector<Point> points;  ///< (feature): where it lies in the plane
    double stress = 0.0;        ///< mean over pairs of (distance in the plane - target)^2
    double spread = 0.0;        ///< sum over features of the squared distance to their tower's center
    bool within_ratio = true;   ///< else no split keeps to R that was found: sizes are as equal as they were made
};

namespace detail {

/// Points of the plane whose distances are near `target` (a distance of each pair): Adam on the sum over pairs of
/// (Euclidean distance - target)^2, from several random starts.
[[nodiscard]] inline std::pair<std::vector<Point>, double> embed_in_plane(const Affinity& target, std::uint64_t seed,
                                                                          int starts, int steps) {
    const auto n = static_cast<std::size_t>(target.features);
    std::vector<float> best(2 * n, 0.0F);
    double least = std::numeric_limits<double>::infinity();
    std::vector<float> at(2 * n);
    std::vector<float> gradient(2 * n);
    const auto pairs = static_cast<double>(std::max<std::size_t>(1, n * (n - 1) / 2));
    for (int start = 0; start < starts; ++start) {
        fill_uniform(at, 0.5F, seed, static_cast<std::uint64_t>(start));
        DenseAdam adam{at.size(), *std::pmr::new_delete_resource()};
        double stress = 0.0;
        for (int step = 0; step <= steps; ++step) {
            std::fill(gradient.begin(), gradient.end(), 0.0F);
            stress = 0.0;
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < i; ++j) {
                    const double x = static_cast<double>(at[2 * i]) - at[2 * j];
                    const double y = static_cast<double>(at[2 * i + 1]) - at[2 * j + 1];
                    const double distance = std::sqrt(x * x + y * y);
                    const double off = distance - target(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
                    stress += off * off;
                    const double slope = 2.0 * off / std::max(distance, 1e-9);
                    gradient[2 * i] += static_cast<float>(slope * x);
                    gradient[2 * i + 1] += static_cast<float>(slope * y);
                    gradient[2 * j] -= static_cast<float>(slope * x);
                    gradient[2 * j + 1] -= static_cast<float>(slope * y);
                }
            if (step < steps) adam.step(at, gradient, 0.05 * (1.0 - static_cast<double>(step) / steps));
        }
        if (stress >= least) continue;
        least = stress;
        best = at;
    }
    std::vector<Point> points(n);
    for (std::size_t i = 0; i < n; ++i)
        points[i] = {best[2 * i], best[2 * i + 1]};
    return {std::move(points), n < 2 ? 0.0 : least / pairs};
}

/// Clusters of counts that keep to the ratio: of all bounds that do, those with the least spread.
[[nodiscard]] inline std::pair<Clusters, bool> clusters_within_ratio(const std::vector<Point>& points, int towers,
                                                                     double ratio, std::uint64_t seed, int starts) {
    const int n = static_cast<int>(points.size());
    Clusters best{.cluster_of = {}, .spread = std::numeric_limits<double>::infinity()};
    for (int lower = 1; lower * towers <= n; ++lower) {
        const int upper = static_cast<int>(std::min<double>(n, std::floor(ratio * lower + 1e-9)));
        if (std::int64_t{upper} * towers < n) continue;
        Clusters some = balanced_clusters(points, towers, lower, upper, seed, starts);
        if (some.spread < best.spread) best = std::move(some);
    }
    if (!best.cluster_of.empty()) return {std::move(best), true};
    return {balanced_clusters(points, towers, n / towers, (n + towers - 1) / towers, seed, starts), false};
}

/// Moves and swaps features between towers until the heaviest has at most `ratio` times the lightest's weight, each
/// time as brings all weights nearest to each other. \returns whether they keep to the ratio
inline bool balance_weights(std::vector<int>& tower_of, int towers, const std::vector<double>& weights, double ratio) {
    const std::size_t n = tower_of.size();
    const auto k = static_cast<std::size_t>(towers);
    std::vector<double> weight(k, 0.0);
    std::vector<int> count(k, 0);
    for (std::size_t i = 0; i < n; ++i) {
        weight[static_cast<std::size_t>(tower_of[i])] += weights[i];
        ++count[static_cast<std::size_t>(tower_of[i])];
    }
    const auto imbalance = [](const std::vector<double>& of) {
        double square = 0.0;  // falls whenever two towers come nearer
        for (const double one : of)
            square += one * one;
        return square;
    };
    const auto holds = [&] {
        const auto [least, most] = std::minmax_element(weight.begin(), weight.end());
        return *most <= ratio * *least * (1.0 + 1e-12);
    };
    while (!holds()) {
        double best = imbalance(weight);
        const double before = best;
        std::size_t moved = n;
        std::size_t other = n;  // swapped with, or none
        int to = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const auto from = static_cast<std::size_t>(tower_of[i]);
            const auto consider = [&](std::size_t target, double change, std::size_t partner) {
                const double a = weight[from] - change;
                const double b = weight[target] + change;
                const double square =
                    before - weight[from] * weight[from] - weight[target] * weight[target] + a * a + b * b;
                if (square >= best * (1.0 - 1e-12)) return;
                best = square;
                moved = i;
                other = partner;
                to = static_cast<int>(target);
            };
            if (count[from] > 1)
                for (std::size_t target = 0; target < k; ++target)
                    if (target != from) consider(target, weights[i], n);
            for (std::size_t j = 0; j < n; ++j)
                if (tower_of[j] != tower_of[i])
                    consider(static_cast<std::size_t>(tower_of[j]), weights[i] - weights[j], j);
        }
        if (moved == n) return false;
        const int from = tower_of[moved];
        const double change = weights[moved] - (other == n ? 0.0 : weights[other]);
        weight[static_cast<std::size_t>(from)] -= change;
        weight[static_cast<std::size_t>(to)] += change;
        tower_of[moved] = to;
        if (other != n) {
            tower_of[other] = from;
        } else {
            --count[static_cast<std::size_t>(from)];
            ++count[static_cast<std::size_t>(to)];
        }
    }
    return true;
}

/// Towers for each category, at least one each, by what its features weigh.
[[nodiscard]] inline std::vector<int> towers_of_categories(const std::vector<double>& weights,
                                                           const std::vector<std::vector<std::size_t>>& members,
                                                           int towers) {
    std::vector<int> share(weights.size(), 1);
    for (int left = towers - static_cast<int>(weights.size()); left > 0; --left) {
        std::size_t heaviest = weights.size();  // a tower of it has the most, and it has features for one more
        for (std::size_t c = 0; c < weights.size(); ++c)
            if (static_cast<std::size_t>(share[c]) < members[c].size() &&
                (heaviest == weights.size() || weights[c] * share[heaviest] > weights[heaviest] * share[c]))
                heaviest = c;
        ++share[heaviest];  // there is one: towers are at most features
    }
    return share;
}

}  // namespace detail

/// Partitions features into towers by their affinity.
///
/// Distances are 1 - affinity (coherent) or affinity (diverse). Adam finds points of the plane that have them as nearly
/// as may be, and K-means whose assignment is a min-cost flow cuts the points into towers within R. Where no split into
/// so many towers keeps to R (R = 1, 26 features, 8 towers), sizes are the floor and the ceiling of the mean, and
/// `within_ratio` is false. With weights, features then move until the towers' weights keep to R, or no move brings
/// them nearer. With categories, each gets towers by its weight, and R holds inside it. Deterministic; not collective.
/// \throws BadInput for numbers that do not fit
[[nodiscard]] inline Partition partition_features(const Affinity& affinity, const PartitionOptions& options) {
    const std::int64_t n = affinity.features;
    const auto wrong = [&](const std::string& what) {
        return BadInput{"a partition of " + std::to_string(n) + " features into " + std::to_string(options.towers) +
                        " towers: " + what};
    };
    if (n < 1 || affinity.values.size() != static_cast<std::size_t>(n * n))
        throw wrong("its affinity has " + std::to_string(affinity.values.size()) + " values; give features^2");
    for (const double value : affinity.values)
        if (!(value >= 0.0 && value <= 1.0 + 1e-6))
            throw wrong("an affinity is " + std::to_string(value) + "; give numbers from 0 to 1");
    if (options.towers < 1 || options.towers > n) throw wrong("give at least one tower, and at most one a feature");
    if (!(options.ratio >= 1.0)) throw wrong("R is " + std::to_string(options.ratio) + ", and at least 1");
    if (!options.weights.empty() && options.weights.size() != static_cast<std::size_t>(n))
        throw wrong("there are " + std::to_string(options.weights.size()) + " weights; give one a feature");
    if (options.starts < 1 || options.plane_steps < 0) throw wrong("give at least one start, and no negative steps");
    for (const double weight : options.weights)
        if (!(weight > 0.0) || !std::isfinite(weight))
            throw wrong("a weight is " + std::to_string(weight) + "; give positive numbers");
    if (!options.categories.empty() && options.categories.size() != static_cast<std::size_t>(n))
        throw wrong("there are " + std::to_string(options.categories.size()) + " categories; give one a feature");

    Affinity target = affinity;
    for (double& value : target.values)
        value = options.strategy == TowerStrategy::coherent ? 1.0 - value : value;
    Partition result;
    std::tie(result.points, result.stress) =
        detail::embed_in_plane(target, options.seed, (options.starts + 1) / 2, options.plane_steps);
    result.tower_of.assign(static_cast<std::size_t>(n), 0);

    std::vector<int> names{0};
    if (!options.categories.empty()) {
        names = options.categories;
        std::sort(names.begin(), names.end());
        names.erase(std::unique(names.begin(), names.end()), names.end());
    }
    if (static_cast<std::size_t>(options.towers) < names.size())
        throw wrong("there are " + std::to_string(names.size()) + " categories, and each takes at least one tower");
    std::vector<std::vector<std::size_t>> members(names.size());
    std::vector<double> heavy(names.size(), 0.0);
    for (std::size_t f = 0; f < static_cast<std::size_t>(n); ++f) {
        const int name = options.categories.empty() ? 0 : options.categories[f];
        const auto c = static_cast<std::size_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
        members[c].push_back(f);
        heavy[c] += options.weights.empty() ? 1.0 : options.weights[f];
    }
    const std::vector<int> share = detail::towers_of_categories(heavy, members, options.towers);
    int first = 0;
    for (std::size_t c = 0; c < names.size(); ++c) {
        const int towers = share[c];
        std::vector<Point> points;
        std::vector<double> weights;
        for (const std::size_t f : members[c]) {
            points.push_back(result.points[f]);
            if (!options.weights.empty()) weights.push_back(options.weights[f]);
        }
        auto [clusters, within] =
            detail::clusters_within_ratio(points, towers, options.ratio, options.seed, options.starts);
        if (!weights.empty()) within = detail::balance_weights(clusters.cluster_of, towers, weights, options.ratio);
        result.within_ratio &= within;
        for (std::size_t i = 0; i < members[c].size(); ++i)
            result.tower_of[members[c][i]] = first + clusters.cluster_of[i];
        first += towers;
    }

    std::vector<std::array<double, 3>> sums(static_cast<std::size_t>(options.towers), {0.0, 0.0, 0.0});
    for (std::size_t f = 0; f < static_cast<std::size_t>(n); ++f) {
        auto& sum = sums[static_cast<std::size_t>(result.tower_of[f])];
        sum = {sum[0] + result.points[f][0], sum[1] + result.points[f][1], sum[2] + 1.0};
    }
    for (std::size_t f = 0; f < static_cast<std::size_t>(n); ++f) {
        const auto& sum = sums[static_cast<std::size_t>(result.tower_of[f])];
        const Point center{static_cast<float>(sum[0] / sum[2]), static_cast<float>(sum[1] / sum[2])};
        result.spread += detail::square_distance(result.points[f], center);
    }
    return result;
}

}  // namespace shardwise::inline SHARDWISE_ABI
