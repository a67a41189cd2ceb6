// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "laws/compositions.hpp"
#include "laws/expected.hpp"
#include "laws/mix.hpp"
#include "laws/scenario.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/counting_slots.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/dense/sample_counts.hpp"
#include "shardwise/topology/replica_groups.hpp"

/// \file
/// The two laws for one composition, one case, one rank: same meaning, and no surprise on the wire.

namespace laws {

/// A law that does not hold.
class Broken : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// \param where  gives the text that says where; asked only when they differ
template <class Where>
void expect_same(float actual, float expected, const Where& where) {
    if (std::bit_cast<std::uint32_t>(actual) != std::bit_cast<std::uint32_t>(expected))
        throw Broken{where() + ": " + std::to_string(actual) + " instead of " + std::to_string(expected)};
}

inline void expect_same_all(std::span<const float> actual, const std::vector<float>& expected,
                            const std::string& where) {
    if (actual.size() != expected.size())
        throw Broken{where + ": " + std::to_string(actual.size()) + " elements instead of " +
                     std::to_string(expected.size())};
    for (std::size_t i = 0; i < expected.size(); ++i)
        expect_same(actual[i], expected[i], [&] { return where + ", element " + std::to_string(i); });
}

/// Sets the weights that begin at -0.0.
template <class Layer>
void begin_at_negative_zero(Layer& layer) {
    layer.for_each_shard([](const sw::ShardView& shard, const sw::ShardRowNumbers& row_of) {
        for (std::int64_t r = 0; r < shard.rows; ++r) {
            const std::int64_t row = row_of(r);
            for (int d = 0; d < shard.dim; ++d)
                if (starts_at_negative_zero(row, shard.first_column + d)) shard.weights[r * shard.dim + d] = -0.0F;
        }
    });
}

/// How a layer is made for a case.
inline sw::LayerOptions options_of(const Case& c, const Scenario& scenario) {
    sw::LayerOptions options;
    options.learning_rate = {.base = learning_rate};
    options.seed = c.seed;
    options.towers = scenario.towers(c);
    options.groups = c.group_options();
    options.rows = scenario.row_plan();
    options.clip_norm = scenario.clip_norm;
    for (std::size_t t = 0; t < scenario.tables.size(); ++t) {
        const OwnSettings& own = scenario.settings[t];
        if (!own.listed) continue;
        sw::TableSettings& settings = options.by_table[scenario.tables[t].name];
        if (own.rate != 0.0F) settings.learning_rate = {.base = own.rate};
        settings.l2 = own.l2;
        settings.weight_decay = own.weight_decay;
        settings.clip_value = own.clip_value;
        if (own.constant) settings.initial = sw::InitialValues::constant(own.initial);
    }
    return options;
}
/// What its batches have at most: by feature or of all, exactly or more.
inline sw::BoundOptions bound_of(const Case& c, const Scenario& scenario) {
    sw::BoundOptions bound;
    bound.samples = 1;
    bound.ids.assign(static_cast<std::size_t>(scenario.features()), 0);
    for (const auto& step : scenario.steps)
        for (const RankBatch& batch : step) {
            bound.samples = std::max(bound.samples, batch.samples);
            for (std::size_t bag = 0; bag < batch.lengths.size(); ++bag) {
                if (bag % static_cast<std::size_t>(batch.samples) != 0) continue;
                const auto first = static_cast<std::ptrdiff_t>(bag);
                const std::int64_t ids = std::accumulate(
                    batch.lengths.begin() + first, batch.lengths.begin() + first + batch.samples, std::int64_t{0});
                std::int64_t& most = bound.ids[bag / static_cast<std::size_t>(batch.samples)];
                most = std::max(most, ids);
            }
        }
    if (c.seed % 3 == 0) bound.ids = {*std::max_element(bound.ids.begin(), bound.ids.end())};
    if (c.seed % 5 == 0) bound.samples += 3;
    bound.weighted = c.weighted;
    return bound;
}

/// (step): which of the flights of its kind it takes, the first that is free, when `ahead` batches are under way.
inline std::vector<std::size_t> flights_of(const std::vector<bool>& hot, int ahead) {
    std::vector<std::size_t> flights;
    for (std::size_t step = 0; step < hot.size(); ++step) {
        const std::size_t first = step - std::min(step, static_cast<std::size_t>(ahead));  // of those under way
        std::size_t free = 0;
        for (std::size_t other = first; other < step; ++other)
            if (hot[other] == hot[step] && flights[other] == free) {
                ++free;
                other = first - 1;
            }
        flights.push_back(free);
    }
    return flights;
}

/// All ranks' batches of a step.
inline std::vector<Batch> views_of(const Case& c, const Scenario& scenario, std::size_t step) {
    std::vector<Batch> views;
    for (const RankBatch& batch : scenario.steps.at(step))
        views.push_back(batch.view(c, scenario.features()));
    return views;
}

/// Runs `c.steps` training steps on a rank of `comm` and compares every output, weight and moment bit by bit with the
/// reference, and every byte and message sent with the prediction. \throws Broken
/// \param reference  made for this composition and case, for this rank among others
/// \param puts  of a bounded layer
template <class C>
void check_laws(C& below, const Composition& composition, const Case& c, const Expected& reference,
                sw::CountingSlots<sw::OneSidedRef>* puts = nullptr) {
    const bool pooled = composition.pooling != "none";
    const Scenario& scenario = reference.scenario;
    sw::CountingCommunicator<C> comm{below};
    sw::LayerOptions options = options_of(c, scenario);
    if (puts != nullptr) {
        options.bound = bound_of(c, scenario);
        options.slots.emplace(*puts);
    }
    auto layer = composition.make(comm, scenario.tables, options, c.by_names, c.moment_scale);
    begin_at_negative_zero(*layer);
    const auto me = static_cast<std::size_t>(comm.rank());
    const std::string where = composition.name() + " at " + c.name() + ", rank " + std::to_string(me);
    Dice progress{c.seed * 977 + me};
    const sw::ReplicaGroups& groups = layer->groups();
    const auto group = static_cast<std::size_t>(c.group_of(comm.rank()));
    sw::BasicTreeAllReduce<float, sw::OneTower> over_tower{comm, layer->topology(), groups};
    sw::BasicTreeAllReduce<float> over_copies{comm, groups.between_copies(), groups.of_copies()};
    const auto tower_of = [&](int rank) {
        return static_cast<std::size_t>(layer->topology().tower_of(groups.index_of(rank)));
    };
    const std::size_t tower = tower_of(comm.rank());

    sw::TrafficMatrix predicted{c.topology};
    const std::vector<std::size_t> flights = flights_of(scenario.hot, c.ahead);
    std::array<std::vector<sw::MemoryTally>, 2> tallies;  // of flights of each kind
    for (auto& kind : tallies)
        kind.resize(static_cast<std::size_t>(c.ahead) + 1);
    sw::SyncTally syncs;
    const auto kind_of = [&](std::size_t step) { return scenario.hot[step] ? sw::BatchKind::hot : sw::BatchKind::any; };
    int started = 0;
    const auto start_until = [&](int end) {
        for (; started < std::min(end, c.steps); ++started) {
            const auto number = static_cast<std::size_t>(started);
            layer.start(views_of(c, scenario, number), comm.rank(), kind_of(number));
        }
    };
    for (int step = 0; step < c.steps; ++step) {
        const auto& ranks = scenario.steps[static_cast<std::size_t>(step)];
        const RankBatch& mine = ranks[me];
        const auto number = static_cast<std::size_t>(step);
        const std::vector<Batch> views = views_of(c, scenario, number);
        const sw::LayerCost cost =
            layer.predict(views, tallies[scenario.hot[number] ? 1 : 0][flights[number]], kind_of(number), syncs);
        const sw::Traffic there = cost.forward.total();
        if (scenario.hot[number] && there.host.payload + there.cross_host.payload != 0)
            throw Broken{where + ": a hot batch moves ids or vectors"};
        predicted += cost.forward;
        predicted += cost.backward;
        predicted += cost.sync;

        start_until(step + 1 + c.ahead);
        if (c.random_progress)
            for (std::int64_t i = progress.below(4); i > 0; --i)
                layer.poll();
        const auto results = layer.forward();
        const Expected::Step& reference_step = reference.steps[static_cast<std::size_t>(step)];
        const auto& expected = reference_step.results.at(static_cast<int>(me));
        for (std::size_t f = 0; f < expected.size(); ++f) {
            const auto at = [&] { return where + ", step " + std::to_string(step) + ", feature " + std::to_string(f); };
            if (results[f].rows() != static_cast<std::int64_t>(expected[f].size()))
                throw Broken{at() + ": " + std::to_string(results[f].rows()) + " rows instead of " +
                             std::to_string(expected[f].size())};
            for (std::size_t i = 0; i < expected[f].size(); ++i)
                for (std::size_t d = 0; d < expected[f][i].size(); ++d)
                    expect_same(results[f](static_cast<std::int64_t>(i), static_cast<std::int64_t>(d)),
                                expected[f][i][d],
                                [&] { return at() + ", row " + std::to_string(i) + ", column " + std::to_string(d); });
        }
        if (!composition.rule.learns) {
            layer.end();
            continue;
        }
        std::vector<std::int64_t> samples;
        for (const RankBatch& batch : ranks)
            samples.push_back(batch.samples);
        const sw::SampleCounts counts = sw::count_samples(groups, comm.rank(), samples);
        std::vector<float> by_group = mine.gradient;
        for (float& g : by_group)
            g *= counts.to_group();
        QueuedLayer::Matrices gradient;
        const float* g = by_group.data();
        for (std::size_t f = 0; f < results.size(); ++f) {
            gradient.emplace_back(g, results[f].rows(), results[f].columns(),
                                  pooled ? scenario.width : results[f].columns());
            if (!by_group.empty()) g += pooled ? results[f].columns() : results[f].rows() * results[f].columns();
        }
        layer.backward(gradient);
        if (c.random_progress)
            for (std::int64_t i = static_cast<std::int64_t>((c.seed + number) % 4); i > 0; --i)
                layer->advance_sync();  // at one place of the program on all ranks
        if (!composition.has_modules()) continue;
        Mix& module = layer->template module<Mix>();
        const std::string at = where + ", step " + std::to_string(step) + ", gradient of the module";
        expect_same_all(module.gradient().span(), reference_step.relay_gradients[me], at + " at the relay");
        for (float& term : module.gradient().span())
            term *= static_cast<float>(counts.to_world());
        over_tower(module.gradient().span());
        expect_same_all(module.gradient().span(), reference_step.tower_gradients[group][tower], at + " of the tower");
        if (c.groups > 1) {
            over_copies(module.gradient().span());
            expect_same_all(module.gradient().span(), reference_step.module_gradients[tower],
                            at + " of the towers of all groups");
        }
        for (std::size_t i = 0; i < module.weights().size(); ++i)
            module.weights()[i] = std::fma(-learning_rate, module.gradient()[i], module.weights()[i]);
        const auto elements = [&](int rank) {
            return std::int64_t{layer->towers().shapes[tower_of(rank)].width()} *
                   layer->towers().outputs[tower_of(rank)];
        };
        predicted += sw::predict_group_all_reduce<float, sw::OneTower>(layer->topology(), groups, elements);
        if (c.groups > 1)
            predicted +=
                sw::predict_group_all_reduce<float, sw::World>(groups.between_copies(), groups.of_copies(), elements);
    }

    while (layer->advance_sync()) {
    }
    if (c.groups > 1 && c.sync_last) {
        const bool due = composition.rule.learns && c.steps % c.sync_every != 0;
        if (layer->sync() != due) throw Broken{where + ": a last sync " + (due ? "did nothing" : "was not due")};
        if (due)
            for (const sw::SegmentCost& segment : layer->blueprint().predict_sync(syncs, comm.rank()))
                predicted += segment.traffic;
    }
    layer->for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& row_of) {
        const ReferenceTable& table = reference.tables[group][static_cast<std::size_t>(shard.table)];
        const std::size_t slots = table.element_state.size();
        for (std::int64_t local = 0; local < shard.rows; ++local) {
            const auto row = static_cast<std::size_t>(row_of(local));
            const auto at = [&](const char* what) {
                return [&, what] {
                    return where + ", table " + std::to_string(shard.table) + ", row " + std::to_string(row) +
                           " after training" + what;
                };
            };
            for (int d = 0; d < shard.dim; ++d) {
                const auto column = static_cast<std::size_t>(shard.first_column + d);
                expect_same(shard.weights[local * shard.dim + d], table.weights[row][column], at(""));
                for (std::size_t slot = 0; slot < slots; ++slot)
                    expect_same(shard.element_state[(local * static_cast<std::int64_t>(slots) +
                                                     static_cast<std::int64_t>(slot)) *
                                                        shard.dim +
                                                    d],
                                table.element_state[slot][row][column], at(" (moment)"));
            }
            const Vector& moments = table.row_state[row];
            for (std::size_t slot = 0; slot < moments.size(); ++slot)
                expect_same(
                    shard
                        .row_state[local * static_cast<std::int64_t>(moments.size()) + static_cast<std::int64_t>(slot)],
                    moments[slot], at(" (row moment)"));
        }
    });

    std::int64_t dynamic = 0;
    for (const auto& kind : tallies)
        for (const sw::MemoryTally& tally : kind)
            dynamic += tally.bytes();
    dynamic += syncs.memory().bytes();
    const auto expect_bytes = [&](const char* what, std::int64_t measured, std::int64_t foreseen) {
        if (measured != foreseen)
            throw Broken{where + ": " + what + " memory of " + std::to_string(measured) + " bytes, predicted " +
                         std::to_string(foreseen)};
    };
    expect_bytes("static", layer->memory().static_bytes(), layer->predict_static_bytes(comm.rank()));
    expect_bytes("dynamic", layer->memory().dynamic_bytes(), dynamic);
    expect_bytes("peak", layer->memory().peak_bytes(), layer->predict_static_bytes(comm.rank()) + dynamic);
    for (int to = 0; to < c.topology.ranks(); ++to) {
        sw::TierTraffic moved = comm.sent().at(comm.rank(), to);
        sw::TierTraffic foreseen = predicted.at(comm.rank(), to);
        if (puts != nullptr) {  // which do not tell payload from control
            moved += puts->sent().at(comm.rank(), to);
            for (sw::TierTraffic* one : {&moved, &foreseen})
                *one = {.payload = one->payload + one->control, .control = 0, .messages = one->messages};
        }
        if (moved != foreseen)
            throw Broken{where + " to rank " + std::to_string(to) + ": moved " + std::to_string(moved.payload) + " + " +
                         std::to_string(moved.control) + " bytes in " + std::to_string(moved.messages) +
                         " messages, predicted " + std::to_string(foreseen.payload) + " + " +
                         std::to_string(foreseen.control) + " in " + std::to_string(foreseen.messages)};
    }
}

/// The value axes that one composition meets: a covering selection that turns with the composition's number, so that
/// over all compositions every pair of values occurs.
inline std::vector<Case> cases_for(std::size_t number, const std::vector<sw::Topology>& topologies, int count,
                                   const Composition& composition) {
    std::vector<Case> cases;
    for (int i = 0; i < count; ++i) {
        const std::size_t turn = number * static_cast<std::size_t>(count) + static_cast<std::size_t>(i);
        Case c;
        c.topology = topologies[(turn * 5 + number) % topologies.size()];
        c.seed = 1000 + turn;
        c.form = static_cast<BagForm>(turn % 3);
        c.wide_ids = turn % 2 == 0;
        c.weighted = composition.pooling != "none" && (turn / 2) % 2 == 0;
        c.ahead = static_cast<int>((turn / 3) % 3);
        c.random_progress = c.ahead > 0 && turn % 2 == 1;
        c.steps = 4;
        c.by_names = (turn / 13) % 2 == 1;
        // some number of groups; every other case has one
        std::vector<std::pair<int, bool>> groups;  // with those whose copies are neighbours on a host
        for (int some = 2; some <= c.topology.ranks() && (turn / 7) % 2 == 1; ++some)
            for (const bool inside : {false, true})
                if (inside ? c.topology.ranks_per_host % some == 0
                           : c.topology.hosts % some == 0 ||
                                 (some % c.topology.hosts == 0 && c.topology.ranks() % some == 0))
                    groups.emplace_back(some, inside);
        if (!groups.empty()) {
            std::tie(c.groups, c.inside) = groups[(turn / 3 + number) % groups.size()];
            c.sync_every = turn % 2 == 0 ? 1 : 3;
            c.all_rows = turn % 3 == 0;
            if (!composition.rule.learns) std::tie(c.learns, c.sync_every, c.all_rows) = std::tuple{false, 1, false};
            c.sync_last = (turn / 5) % 2 == 0;
            const auto most = static_cast<float>(c.groups);
            c.moment_scale = std::array{0.0F, 1.0F, 0.7F, most - 0.5F}[(turn / 2) % 4];
        }
        const int hosts = c.group_topology().hosts;
        // some number of towers that divides the hosts; without Hierarchical often none
        const bool everywhere =
            composition.collective != "hierarchical" || (composition.sharding == "col3" && !composition.has_modules());
        std::vector<int> towers(everywhere ? 2 : 0, 0);
        for (int some = 1; some <= hosts; ++some)
            if (hosts % some == 0 && composition.crosses) towers.push_back(some);
        c.towers = towers[(turn / 2) % towers.size()];
        cases.push_back(c);
    }
    return cases;
}

}  // namespace laws
