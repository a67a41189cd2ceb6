// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Bytes and messages by tier: what the counting communicator counts and the cost reader predicts.

namespace shardwise::inline SHARDWISE_ABI {

/// What crosses one tier.
struct TierTraffic {
    std::int64_t payload = 0;  ///< bytes of ids, weights, vectors, gradients, rows
    std::int64_t control = 0;  ///< bytes of envelopes, counts, lengths
    std::int64_t messages = 0;

    TierTraffic& operator+=(const TierTraffic& other) noexcept {
        payload += other.payload;
        control += other.control;
        messages += other.messages;
        return *this;
    }
    friend bool operator==(const TierTraffic&, const TierTraffic&) = default;
};

/// Traffic by tier; what a rank sends to itself moves nowhere and counts nothing.
struct Traffic {
    TierTraffic host;
    TierTraffic cross_host;

    [[nodiscard]] TierTraffic& of(Tier tier) noexcept { return tier == Tier::host ? host : cross_host; }
    Traffic& operator+=(const Traffic& other) noexcept {
        host += other.host;
        cross_host += other.cross_host;
        return *this;
    }
    friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Traffic from each rank to each rank.
class TrafficMatrix {
  public:
    TrafficMatrix() = default;
    explicit TrafficMatrix(const Topology& topology)
        : topology_{topology},
          cells_(static_cast<std::size_t>(topology.ranks()) * static_cast<std::size_t>(topology.ranks())) {}

    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] TierTraffic& at(int from, int to) { return cells_[index(from, to)]; }
    [[nodiscard]] const TierTraffic& at(int from, int to) const { return cells_[index(from, to)]; }
    /// What `from` sends, by tier.
    [[nodiscard]] Traffic sent_by(int from) const {
        Traffic sum;
        for (int to = 0; to < topology_.ranks(); ++to)
            if (to != from) sum.of(topology_.tier(from, to)) += at(from, to);
        return sum;
    }
    /// What all ranks send, by tier.
    [[nodiscard]] Traffic total() const {
        Traffic sum;
        for (int from = 0; from < topology_.ranks(); ++from)
            sum += sent_by(from);
        return sum;
    }
    TrafficMatrix& operator+=(const TrafficMatrix& other) {
        for (std::size_t i = 0; i < cells_.size(); ++i)
            cells_[i] += other.cells_[i];
        return *this;
    }
    /// Cell by cell.
    friend bool operator==(const TrafficMatrix& a, const TrafficMatrix& b) { return a.cells_ == b.cells_; }

  private:
    [[nodiscard]] std::size_t index(int from, int to) const {
        return static_cast<std::size_t>(from) * static_cast<std::size_t>(topology_.ranks()) +
               static_cast<std::size_t>(to);
    }
    Topology topology_;
    std::vector<TierTraffic> cells_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
