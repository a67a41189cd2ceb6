// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "laws/compositions.hpp"
#include "laws/reference.hpp"
#include "laws/scenario.hpp"

/// \file
/// What the laws compare with, worked out before a layer runs: once a case for all ranks that are threads of one
/// process.

namespace laws {

inline constexpr float learning_rate = 0.05F;

/// What the reference says about a case, and the scenario it is about. All ranks of a process share it.
struct Expected {
    struct Step {
        std::map<int, std::vector<std::vector<Vector>>> results;  // (rank), (feature, row); with modules (tower, row)
        std::vector<Vector> relay_gradients;                      // (rank), with modules
        std::vector<Vector> tower_gradients;                      // (tower), with modules
    };
    Scenario scenario;
    std::vector<Step> steps;
    std::vector<ReferenceTable> tables;  // after the last step
};

/// \param ranks  whose results are asked for
inline Expected make_expected(const Composition& composition, const Case& c, const std::vector<int>& ranks) {
    Expected all{.scenario = make_scenario(c, composition.shardings, composition.pooling != "none",
                                           composition.has_modules(), composition.tiered),
                 .steps = {},
                 .tables = {}};
    Reference reference{composition, all.scenario, c.topology, learning_rate, c.seed, c.towers};
    for (const std::vector<RankBatch>& batches : all.scenario.steps) {
        Expected::Step& step = all.steps.emplace_back();
        for (const int rank : ranks)
            step.results[rank] = reference.forward(batches[static_cast<std::size_t>(rank)], rank);
        reference.step(batches);
        for (int rank = 0; reference.modules() > 0 && rank < c.topology.ranks(); ++rank)
            step.relay_gradients.push_back(reference.relay_gradient(rank));
        for (int tower = 0; tower < reference.modules(); ++tower)
            step.tower_gradients.push_back(reference.tower_gradient(tower));
    }
    all.tables = reference.tables();
    return all;
}

}  // namespace laws
