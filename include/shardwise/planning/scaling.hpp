// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What a sequence embedding table costs a rank in a training step under each strategy, in expectation: the scaling
/// equations of FlexShard (section 3.2, Tables 1 to 3).

namespace shardwise::inline SHARDWISE_ABI {

/// How rows are spread. Rows of one table may be spread in several ways: the first three are tiers of rows, by falling
/// frequency.
enum class Strategy : std::uint8_t {
    dp,    ///< every rank has them all
    flex,  ///< split over the ranks of a host, and every host has them all
    row,   ///< split over all ranks
    col,   ///< columns split over all ranks
};

/// "dp", "flex", "row" or "col".
[[nodiscard]] const char* name_of(Strategy strategy);

/// Bytes a second of a rank in collectives; what is not known is not given.
struct CollectiveBandwidths {
    std::optional<double> all_to_all_global = std::nullopt;  ///< all-to-all of all ranks
    std::optional<double> all_to_all_intra = std::nullopt;   ///< all-to-all inside each host
    std::optional<double> all_reduce_global = std::nullopt;  ///< all-reduce of all ranks
    /// All-reduce across hosts, of a host's ranks together: bytes are those of all rows, though a rank sums only its
    /// part.
    std::optional<double> all_reduce_cross = std::nullopt;
};

/// The parameters of the equations, but for those of a table (Table 1).
struct Scaling {
    Topology topology;           ///< N hosts of W ranks, U = N W ranks
    std::int64_t batch = 1;      ///< B: samples a rank
    double multiplier = 6.0;     ///< bytes that a replicated weight takes on a rank, over those of the weight
    double element_bytes = 4.0;  ///< dtype
    CollectiveBandwidths bandwidths = {};
};

/// The samples of all ranks in a step. \throws BadInput for more than 2^53
[[nodiscard]] std::int64_t samples_of_all(std::int64_t batch, const Topology& topology);

/// The parameters themselves.
/// \throws BadInput for numbers that are not above 0, a multiplier below 1, and as Topology::checked and samples_of_all
[[nodiscard]] const Scaling& checked(const Scaling& scaling);

/// The cost of a table, or of a part of one, for a rank and a step (Tables 2 and 3).
struct StrategyCost {
    double static_bytes = 0.0;  ///< weights, and with replicas what the framework keeps beside them (the multiplier)
    double elements_accessed = 0.0;               ///< elements of rows looked up ("rows accessed")
    double dynamic_bytes = 0.0;                   ///< vectors looked up, and those that travel
    double ids = 0.0;                             ///< ids that travel before look-ups ("input data distribution")
    std::optional<double> dynamic_seconds = 0.0;  ///< all-to-all of vectors, in one direction; nothing where not known
    std::optional<double> static_seconds = 0.0;   ///< all-reduce of gradients; nothing where not known

    [[nodiscard]] double bytes() const noexcept { return static_bytes + dynamic_bytes; }
    /// All of a step: vectors forward, their gradients backward, and the sum of gradients.
    [[nodiscard]] std::optional<double> seconds() const {
        if (!dynamic_seconds || !static_seconds) return std::nullopt;
        return 2.0 * *dynamic_seconds + *static_seconds;
    }
};

/// What rows cost under a strategy. All is linear in `rows` and `lookups`: a table costs what its rows cost one by one
/// (section 4.2). The costs of Row and Col differ in ids alone. Elements are of `element_bytes`; latencies count
/// nothing. \param rows  E \param dim  D: elements of a row \param lookups  L: look-ups of these rows in a sample, all
/// together
[[nodiscard]] StrategyCost cost_of(Strategy strategy, const Scaling& scaling, double rows, double dim, double lookups);

/// What DP costs over what Row costs.
struct ReplicationRatio {
    double memory = 0.0;
    std::optional<double> communication = std::nullopt;  ///< nothing where the global bandwidths are not known
};

/// Figure 3: the ratio for a table with alpha = L / E, which is as well one for a row with p = alpha.
[[nodiscard]] ReplicationRatio dp_over_row(const Scaling& scaling, double alpha);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/scaling.ipp"
#endif
