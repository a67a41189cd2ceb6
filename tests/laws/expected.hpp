// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
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
        std::vector<std::vector<Vector>> tower_gradients;         // (group, tower), with modules
        std::vector<Vector> module_gradients;                     // (tower): of all groups
    };
    Scenario scenario;
    std::vector<Step> steps;
    std::vector<std::vector<ReferenceTable>> tables;  // (group, table), after the last step
};

/// Every weight and moment becomes the mean over the groups: on each host from the first of its copies on, then over
/// hosts from the first on, in double.
inline void make_equal(const Case& c, std::vector<Reference>& groups) {
    std::vector<bool> first_of_host;  // (group)
    for (int group = 0; group < c.groups; ++group)
        first_of_host.push_back(group == 0 ||
                                c.topology.host_of(c.rank_of(group, 0)) != c.topology.host_of(c.rank_of(group - 1, 0)));
    const auto means = [&](auto vector_of) {
        std::vector<Vector*> copies;  // (group)
        for (Reference& group : groups)
            copies.push_back(&vector_of(group));
        for (std::size_t i = 0; i < copies[0]->size(); ++i) {
            double sum = -0.0;  // which added to a number is that number
            double of_host = -0.0;
            for (std::size_t group = 0; group < copies.size(); ++group) {
                if (first_of_host[group]) {
                    sum += of_host;
                    of_host = -0.0;
                }
                of_host += double{(*copies[group])[i]};
            }
            const auto mean = static_cast<float>((sum + of_host) / c.groups);
            for (Vector* copy : copies)
                (*copy)[i] = mean;
        }
    };
    for (std::size_t t = 0; t < groups[0].tables().size(); ++t) {
        const ReferenceTable& table = groups[0].tables()[t];
        for (std::size_t row = 0; row < table.weights.size(); ++row) {
            means([&](Reference& group) -> Vector& { return group.tables()[t].weights[row]; });
            for (std::size_t slot = 0; slot < table.element_state.size(); ++slot)
                means([&](Reference& group) -> Vector& { return group.tables()[t].element_state[slot][row]; });
            means([&](Reference& group) -> Vector& { return group.tables()[t].row_state[row]; });
        }
    }
}

/// The sum over the groups of a module's gradient: along the tree, from +0.0.
inline Vector sum_of_groups(const Case& c, const std::vector<std::vector<Vector>>& gradients, std::size_t tower) {
    const std::size_t size = gradients[0][tower].size();
    std::map<int, Vector> hosts;
    for (int group = 0; group < c.groups; ++group) {
        Vector& host = hosts.try_emplace(c.topology.host_of(c.rank_of(group, 0)), size, 0.0F).first->second;
        for (std::size_t i = 0; i < size; ++i)
            host[i] += gradients[static_cast<std::size_t>(group)][tower][i];
    }
    Vector sum(size, 0.0F);
    for (const auto& [number, host] : hosts)
        for (std::size_t i = 0; i < size; ++i)
            sum[i] += host[i];
    return sum;
}

/// How many samples learn in a step. A scenario's gradients are by those of the world, as one backward pass of a dense
/// model gives them; a group's tables learn by the group's, and modules by the world's again.
struct ReferenceCounts {
    std::int64_t world = 0;
    std::int64_t group = 0;

    [[nodiscard]] float to_group() const {
        return group == 0 ? 1.0F : static_cast<float>(static_cast<double>(world) / static_cast<double>(group));
    }
    [[nodiscard]] float to_world() const {
        return world == 0 ? 1.0F : static_cast<float>(static_cast<double>(group) / static_cast<double>(world));
    }
};
inline ReferenceCounts count_samples(const Case& c, int group, const std::vector<RankBatch>& batches) {
    ReferenceCounts counts;
    for (std::size_t rank = 0; rank < batches.size(); ++rank) {
        counts.world += batches[rank].samples;
        if (c.group_of(static_cast<int>(rank)) == group) counts.group += batches[rank].samples;
    }
    return counts;
}
inline std::vector<RankBatch> by_samples_of_group(std::vector<RankBatch> batches, const ReferenceCounts& counts) {
    for (RankBatch& batch : batches)
        for (float& g : batch.gradient)
            g *= counts.to_group();
    return batches;
}

/// Clips some of the scenarios that may be clipped by norm; to some, nothing comes of it.
inline void clip_some(const Composition& composition, const Case& c, Scenario& scenario) {
    for (OwnSettings& own : scenario.settings)  // of rows that learn nothing, how they begin
        if (!composition.rule.learns) own = {.constant = own.constant, .initial = own.initial, .listed = own.listed};
    if (!composition.rule.learns || c.groups > 1 || composition.has_modules() || c.seed % 4 > 1) return;
    scenario.clip_norm = std::array{0.75F, 30.0F, 1e6F}[c.seed / 4 % 3];
    for (std::size_t t = 0; t < scenario.tables.size(); ++t)
        if (scenario.tables[t].sharding.starts_with("col") && composition.rule.needs_row_norm)
            scenario.settings[t].l2 = 0.0F;
}

/// \param ranks  whose results are asked for
inline Expected make_expected(const Composition& composition, const Case& c, const std::vector<int>& ranks) {
    Expected all{.scenario = make_scenario(c, composition.shardings, composition.pooling != "none",
                                           composition.has_modules(), composition.tiered),
                 .steps = {},
                 .tables = {}};
    clip_some(composition, c, all.scenario);
    std::vector<Reference> groups;
    for (int group = 0; group < c.groups; ++group)
        groups.emplace_back(composition, all.scenario, c.group_topology(), learning_rate, c.seed, c.towers,
                            c.moment_scale > 0 ? c.moment_scale : static_cast<float>(c.groups));
    const auto modules = static_cast<std::size_t>(groups[0].modules());
    for (std::size_t number = 0; number < all.scenario.steps.size(); ++number) {
        const std::vector<RankBatch>& batches = all.scenario.steps[number];
        Expected::Step& step = all.steps.emplace_back();
        step.relay_gradients.resize(batches.size());
        for (int group = 0; group < c.groups; ++group) {
            Reference& reference = groups[static_cast<std::size_t>(group)];
            for (int index = 0; index < c.topology.ranks() / c.groups; ++index) {
                const int rank = c.rank_of(group, index);
                if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end())
                    step.results[rank] = reference.forward(batches[static_cast<std::size_t>(rank)], index);
            }
            if (!composition.rule.learns) continue;
            const ReferenceCounts counts = count_samples(c, group, batches);
            reference.step(by_samples_of_group(c.of_group(group, batches), counts), counts.to_world());
            auto& gradients = step.tower_gradients.emplace_back();
            for (std::size_t tower = 0; tower < modules; ++tower)
                gradients.push_back(reference.tower_gradient(static_cast<int>(tower)));
            for (int index = 0; modules > 0 && index < c.topology.ranks() / c.groups; ++index)
                step.relay_gradients[static_cast<std::size_t>(c.rank_of(group, index))] =
                    reference.relay_gradient(index);
        }
        for (std::size_t tower = 0; tower < modules && composition.rule.learns; ++tower) {
            step.module_gradients.push_back(c.groups == 1 ? step.tower_gradients[0][tower]
                                                          : sum_of_groups(c, step.tower_gradients, tower));
            for (Reference& reference : groups)
                reference.learn_module(static_cast<int>(tower), step.module_gradients.back());
        }
        const bool last = number + 1 == all.scenario.steps.size();
        if (c.groups > 1 && ((number + 1) % static_cast<std::size_t>(c.sync_every) == 0 || (last && c.sync_last)))
            make_equal(c, groups);
    }
    for (const Reference& reference : groups)
        all.tables.push_back(reference.tables());
    return all;
}

}  // namespace laws
