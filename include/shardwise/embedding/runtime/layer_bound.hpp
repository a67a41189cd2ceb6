// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/plan/flight_server.hpp"

/// \file
/// How far the ranks of a layer may be apart, and what a batch may have at most, which is what slots have room for.

namespace shardwise::inline SHARDWISE_ABI {

/// Who answers other ranks.
enum class Progress : std::uint8_t {
    calls,  ///< this one, in its calls of start, forward, poll and drain
    thread  ///< a thread of the layer's, while this one computes; it sleeps while nobody asks
};
/// "calls" or "thread".
[[nodiscard]] inline std::string name_of(Progress progress) {
    return progress == Progress::calls ? "calls" : "thread";
}

/// Of a layer with Collective<BoundedLag<k>>; what is not said has its default.
struct BoundOptions {
    std::optional<int> k = {};              ///< batches that ranks may be apart: 0; BoundedLag<k> says it itself
    std::int64_t samples = 0;               ///< of a batch at most
    std::vector<std::int64_t> ids = {};     ///< (feature): of a batch at most; one number: of each; none: one a sample
    bool weighted = false;                  ///< batches may have weights
    std::optional<Serve> serve = {};        ///< together
    std::optional<Progress> progress = {};  ///< calls

    friend bool operator==(const BoundOptions&, const BoundOptions&) = default;
};

/// What a policy says of it.
struct BoundPolicy {
    bool bounded = false;
    std::optional<int> k = {};

    friend bool operator==(const BoundPolicy&, const BoundPolicy&) = default;
};

/// How far ranks may be apart in a layer.
struct LayerBound {
    /// \throws BadInput for options that have no effect or contradict the policy, a k below 0 or, where rows learn,
    /// above it, no samples, and numbers of ids that are not one, or one a feature
    LayerBound(const BoundPolicy& policy, const BoundOptions& options, std::size_t features, bool learns,
               bool at_owner);

    bool bounded = false;
    bool learns = false;
    bool at_owner = false;  ///< nobody asks, and nobody answers
    int k = 0;
    std::int64_t samples = 0;
    std::vector<std::int64_t> ids;  ///< (feature)
    bool weighted = false;
    Serve serve = Serve::together;
    Progress progress = Progress::calls;  // a rank's own affair

    /// Whether errors stay on the rank of their samples.
    [[nodiscard]] bool errors_stay() const noexcept { return bounded && !learns; }
    /// Whether a flight has two halves, of which one asks and the other answers.
    [[nodiscard]] bool has_halves() const noexcept { return errors_stay() && !at_owner; }
    /// What is wrong with a batch of so many samples, and ids of a feature; empty: nothing.
    [[nodiscard]] std::string beyond(std::int64_t samples) const;
    [[nodiscard]] std::string beyond(const std::string& feature, std::size_t number, std::int64_t count) const;
    void add_to(Digest& digest) const;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/layer_bound.ipp"
#endif
