// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// K-means in the plane whose clusters have sizes within bounds (Bradley, Bennett and Demiriz, Constrained K-Means
/// Clustering, 2000).

namespace shardwise::inline SHARDWISE_ABI {

/// A point of the plane.
using Point = std::array<float, 2>;

/// Points in clusters.
struct Clusters {
    std::vector<int> cluster_of;  ///< (point)
    double spread = 0.0;          ///< sum of squared distances to the centers
};

namespace detail {

[[nodiscard]] inline double square_distance(const Point& a, const Point& b) noexcept {
    const double x = static_cast<double>(a[0]) - b[0];
    const double y = static_cast<double>(a[1]) - b[1];
    return x * x + y * y;
}

/// Each point to a center so that the sum of squared distances is least and every center has from `lower` to `upper`
/// points: the cheapest flow from a source over points and centers to a sink. A center's first `lower` units are free,
/// and the others so dear that none flows before all of those do.
[[nodiscard]] inline std::vector<int> assign_within_bounds(const std::vector<Point>& points,
                                                           const std::vector<Point>& centers, int lower, int upper) {
    namespace b = boost;
    using Traits = b::adjacency_list_traits<b::vecS, b::vecS, b::directedS>;
    using Edge = Traits::edge_descriptor;
    using Graph = b::adjacency_list<
        b::vecS, b::vecS, b::directedS, b::no_property,
        b::property<b::edge_capacity_t, std::int64_t,
                    b::property<b::edge_residual_capacity_t, std::int64_t,
                                b::property<b::edge_reverse_t, Edge, b::property<b::edge_weight_t, std::int64_t>>>>>;
    const std::size_t n = points.size();
    const std::size_t k = centers.size();
    const std::size_t source = n + k;
    const std::size_t sink = source + 1;
    Graph graph{n + k + 2};
    const auto capacity = b::get(b::edge_capacity, graph);
    const auto residual = b::get(b::edge_residual_capacity, graph);
    const auto reverse = b::get(b::edge_reverse, graph);
    const auto weight = b::get(b::edge_weight, graph);
    const auto connect = [&](std::size_t from, std::size_t to, std::int64_t most, std::int64_t cost) {
        const Edge there = b::add_edge(from, to, graph).first;
        const Edge back = b::add_edge(to, from, graph).first;
        capacity[there] = most;
        capacity[back] = 0;
        residual[there] = most;
        residual[back] = 0;
        weight[there] = cost;
        weight[back] = -cost;
        reverse[there] = back;
        reverse[back] = there;
        return there;
    };

    double farthest = 0.0;
    for (const Point& point : points)
        for (const Point& center : centers)
            farthest = std::max(farthest, square_distance(point, center));
    constexpr double most_cost = 1e9;  // distances as whole numbers up to this: sums of them are exact
    const double scale = farthest > 0.0 ? most_cost / farthest : 0.0;
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < n; ++i) {
        connect(source, i, 1, 0);
        for (std::size_t c = 0; c < k; ++c)
            edges.push_back(connect(
                i, n + c, 1, static_cast<std::int64_t>(std::llround(scale * square_distance(points[i], centers[c])))));
    }
    const auto dear = static_cast<std::int64_t>(most_cost) * static_cast<std::int64_t>(n + 1);
    for (std::size_t c = 0; c < k; ++c) {
        connect(n + c, sink, lower, 0);
        if (upper > lower) connect(n + c, sink, upper - lower, dear);
    }
    b::successive_shortest_path_nonnegative_weights(graph, source, sink);
    std::vector<int> center_of(n, -1);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < k; ++c)
            if (residual[edges[i * k + c]] == 0) center_of[i] = static_cast<int>(c);
    return center_of;
}

/// As many of the points as there are clusters, far from each other: each next with a probability that grows with its
/// squared distance to the nearest (k-means++).
[[nodiscard]] inline std::vector<Point> first_centers(const std::vector<Point>& points, int clusters,
                                                      std::mt19937_64& dice) {
    const auto uniform = [&] { return static_cast<double>(dice() >> 11U) * 0x1p-53; };
    std::vector<Point> centers{points[dice() % points.size()]};
    std::vector<double> nearest(points.size(), std::numeric_limits<double>::infinity());
    while (centers.size() < static_cast<std::size_t>(clusters)) {
        double sum = 0.0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            nearest[i] = std::min(nearest[i], square_distance(points[i], centers.back()));
            sum += nearest[i];
        }
        double left = uniform() * sum;
        std::size_t chosen = 0;
        while (chosen + 1 < points.size() && left >= nearest[chosen])
            left -= nearest[chosen++];
        centers.push_back(points[chosen]);
    }
    return centers;
}

}  // namespace detail

/// K-means from several starts, with clusters of `lower` to `upper` points. Deterministic in `seed`. Not collective.
/// \throws BadInput unless there is a point and clusters * lower <= points <= clusters * upper
[[nodiscard]] inline Clusters balanced_clusters(const std::vector<Point>& points, int clusters, int lower, int upper,
                                                std::uint64_t seed, int starts = 8) {
    const auto count = static_cast<std::int64_t>(points.size());
    if (count < 1 || clusters < 1 || lower < 0 || std::int64_t{clusters} * lower > count ||
        std::int64_t{clusters} * upper < count)
        throw BadInput{concat(
            {count, " points in ", clusters, " clusters of ", lower, " to ", upper, ": there is no such split"})};
    constexpr int most_rounds = 100;
    std::mt19937_64 dice{seed};
    Clusters best{.cluster_of = {}, .spread = std::numeric_limits<double>::infinity()};
    for (int start = 0; start < starts; ++start) {
        std::vector<Point> centers = detail::first_centers(points, clusters, dice);
        Clusters now;
        for (int round = 0; round < most_rounds; ++round) {
            std::vector<int> assigned = detail::assign_within_bounds(points, centers, lower, upper);
            const bool settled = assigned == now.cluster_of;
            now.cluster_of = std::move(assigned);
            if (settled) break;
            std::vector<std::array<double, 3>> sums(centers.size(), {0.0, 0.0, 0.0});
            for (std::size_t i = 0; i < points.size(); ++i) {
                auto& sum = sums[static_cast<std::size_t>(now.cluster_of[i])];
                sum = {sum[0] + points[i][0], sum[1] + points[i][1], sum[2] + 1.0};
            }
            for (std::size_t c = 0; c < centers.size(); ++c)
                if (sums[c][2] > 0.0)
                    centers[c] = {static_cast<float>(sums[c][0] / sums[c][2]),
                                  static_cast<float>(sums[c][1] / sums[c][2])};
        }
        now.spread = 0.0;
        for (std::size_t i = 0; i < points.size(); ++i)
            now.spread += detail::square_distance(points[i], centers[static_cast<std::size_t>(now.cluster_of[i])]);
        if (now.spread < best.spread) best = std::move(now);
    }
    return best;
}

}  // namespace shardwise::inline SHARDWISE_ABI
