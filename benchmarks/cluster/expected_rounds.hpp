// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The rounds of a training step on tables whose rows are looked up by laws, in expectation: no id is drawn.

namespace exchange_schedule {

/// What the command line says of such a step.
struct LawArguments {
    shardwise::Topology topology;
    std::int64_t batch = 0;         ///< samples a rank
    int dim = 0;                    ///< columns
    std::vector<std::string> laws;  ///< (table), as row_law takes them
    std::string collective;
    std::string sharding;  ///< "tiered", or a policy's name
    std::string tiers = "dp,flex,row";
    std::string cut = "row";
    std::string pooling = "sum";
    std::string reduction = "auto";
    shardwise::GroupOptions groups = {};  ///< replica groups
};

/// Some bytes of a step that travel at once.
struct Round {
    std::string tier;  ///< whose they are; empty: all that the round has, envelopes and padding included
    std::string kind;  ///< ids, vectors, gradients, sums (of replicated rows), others; several are joined by +;
                       ///< of a sync of copies sync_rows, sync_copies, sync_means
    shardwise::TrafficMatrix traffic;
};

/// A tier's rows.
struct PlannedTier {
    std::string name;
    std::int64_t rows = 0;
    double coverage = 0.0;      ///< its share of the look-ups
    double touched_rank = 0.0;  ///< distinct rows that the samples of a rank look up in a step
    double touched_host = 0.0;
    double touched_world = 0.0;
};

struct ExpectedRounds {
    double lookups = 0.0;  ///< a sample
    std::vector<Round> rounds;
    std::vector<Round> apart;  ///< of a layer with tiers: the same bytes, each tier's by itself
    std::vector<PlannedTier> tiers;
};

/// The rounds of a sync of copies in expectation, in whole bytes; none without groups.
[[nodiscard]] std::vector<Round> sync_rounds(const shardwise::LayerBlueprint& layer,
                                             const shardwise::ExpectedLayerCost& cost);

/// The rounds, those of a sync last, in whole bytes. Of a layer with tiers, rows are placed by FlexShard's plan that
/// takes as much memory as Row by the paper's model, in chunks of as many rows as there are ranks. The optimizer is
/// Sgd. Cost: a few passes over the laws' runs; twice as many where `reduction` is auto. \throws shardwise::BadInput
/// for laws, names and tiers that there are not, or that make no sense together
[[nodiscard]] ExpectedRounds expected_rounds(const LawArguments& a);

}  // namespace exchange_schedule
