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
/// Bytes and messages by tier: what the counting communicator counts, the cost reader predicts, and the expectation
/// reader expects.

namespace shardwise::inline SHARDWISE_ABI {

/// What crosses one tier.
/// \tparam Count  std::int64_t for what was counted, double for what is expected
template <class Count>
struct TierTrafficOf {
    Count payload = 0;  ///< bytes of ids, weights, vectors, gradients, rows
    Count control = 0;  ///< bytes of envelopes, counts, lengths
    Count messages = 0;

    TierTrafficOf& operator+=(const TierTrafficOf& other) noexcept {
        payload += other.payload;
        control += other.control;
        messages += other.messages;
        return *this;
    }
    friend bool operator==(const TierTrafficOf&, const TierTrafficOf&) = default;
};
/// Traffic that was counted.
using TierTraffic = TierTrafficOf<std::int64_t>;

/// Traffic by tier; what a rank sends to itself moves nowhere and counts nothing.
template <class Count>
struct TrafficOf {
    TierTrafficOf<Count> host;
    TierTrafficOf<Count> cross_host;

    [[nodiscard]] TierTrafficOf<Count>& of(Tier tier) noexcept { return tier == Tier::host ? host : cross_host; }
    TrafficOf& operator+=(const TrafficOf& other) noexcept {
        host += other.host;
        cross_host += other.cross_host;
        return *this;
    }
    friend bool operator==(const TrafficOf&, const TrafficOf&) = default;
};
/// Traffic by tier that was counted.
using Traffic = TrafficOf<std::int64_t>;

/// Traffic from each rank to each rank.
template <class Count>
class TrafficMatrixOf {
  public:
    TrafficMatrixOf() = default;
    explicit TrafficMatrixOf(const Topology& topology)
        : topology_{topology},
          cells_(static_cast<std::size_t>(topology.ranks()) * static_cast<std::size_t>(topology.ranks())) {}

    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] TierTrafficOf<Count>& at(int from, int to) { return cells_[index(from, to)]; }
    [[nodiscard]] const TierTrafficOf<Count>& at(int from, int to) const { return cells_[index(from, to)]; }
    /// What `from` sends, by tier.
    [[nodiscard]] TrafficOf<Count> sent_by(int from) const {
        TrafficOf<Count> sum;
        for (int to = 0; to < topology_.ranks(); ++to)
            if (to != from) sum.of(topology_.tier(from, to)) += at(from, to);
        return sum;
    }
    /// What all ranks send, by tier.
    [[nodiscard]] TrafficOf<Count> total() const {
        TrafficOf<Count> sum;
        for (int from = 0; from < topology_.ranks(); ++from)
            sum += sent_by(from);
        return sum;
    }
    TrafficMatrixOf& operator+=(const TrafficMatrixOf& other) {
        for (std::size_t i = 0; i < cells_.size(); ++i)
            cells_[i] += other.cells_[i];
        return *this;
    }
    /// Cell by cell.
    friend bool operator==(const TrafficMatrixOf& a, const TrafficMatrixOf& b) { return a.cells_ == b.cells_; }

  private:
    [[nodiscard]] std::size_t index(int from, int to) const {
        return static_cast<std::size_t>(from) * static_cast<std::size_t>(topology_.ranks()) +
               static_cast<std::size_t>(to);
    }
    Topology topology_;
    std::vector<TierTrafficOf<Count>> cells_;
};
/// Traffic from each rank to each rank that was counted.
using TrafficMatrix = TrafficMatrixOf<std::int64_t>;

}  // namespace shardwise::inline SHARDWISE_ABI
