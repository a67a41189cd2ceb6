// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/check_ids.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/pooling.hpp"
#include "shardwise/embedding/relays.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The first step of every embedding plan: ids to the shards of their rows.

namespace shardwise::inline SHARDWISE_ABI {

/// Cuts every feature's bags by shard, checks every id and weight, and copies what later steps need, so that the user's
/// batch is free once the ids have left. Local; two passes over the ids where S splits rows, one otherwise.
/// Bad input is noted in the flight's error, and the batch is replaced by one without samples.
template <ShardingPolicy S, class Pooling>
struct Split {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>,
                                 std::conditional_t<S::replicated, OwnedIds<true, NoRelays>, ShardIds>>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Split>;
    static constexpr bool reads_state = false;
    static std::string name() { return std::string{"Split<"} + S::name + ">"; }

    struct Tape {
        std::int64_t samples = 0;
        std::vector<std::int64_t> first;     // (feature + 1): first id
        Buffer<std::int32_t> bag_lengths;    // (feature, sample)
        Buffer<std::int32_t> shard_of;       // (id): where S splits rows
        Buffer<LocalRow> local_of;           // (id): where S splits rows
        Buffer<LocalRow> rows;               // (id) by block
        Buffer<float> weights;               // (id) by block
        Buffer<std::int32_t> shard_lengths;  // (block, sample): where S splits rows
        std::vector<IdBlock> blocks;         // (block): as they leave
        std::vector<std::int64_t> cursor;    // (shard)

        [[nodiscard]] const std::int32_t* lengths_of(int feature) const {
            return bag_lengths.data() + feature * samples;
        }
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<Split>();
        if (!fill(env, lanes, tape)) {
            lanes.batch->clear();
            StepEnv ignored = env;
            fill(ignored, lanes, tape);
        }
        lanes.ids = tape.blocks;
        lanes.home.clear();
        for (const IdBlock& block : tape.blocks) {
            Head& head = lanes.home.emplace_back(block.head);
            if (!Pooling::pooled) head.n = block.ids;
        }
    }

    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const BatchView& batch = (*cost.batches)[static_cast<std::size_t>(rank)];
        std::int64_t ids = 0;
        for (const FeaturePlacement& feature : cost.placement->features)
            ids += batch.values(feature.feature);
        tally.need(4 * ids);
        tally.need(batch.weighted() ? 4 * ids : 0);
        tally.need(4 * static_cast<std::int64_t>(cost.placement->features.size()) * batch.samples());
        if constexpr (S::splits == Splits::rows) {
            tally.need(4 * ids);
            tally.need(4 * ids);
            tally.need(4 * cost.placement->blocks * batch.samples());
        }
    }
    static void shape(EmbeddingCost& cost) {
        const Placement& placement = *cost.placement;
        const auto ranks = static_cast<std::size_t>(cost.ranks());
        cost.counts.assign(ranks, std::vector<EmbeddingCost::Count>(static_cast<std::size_t>(placement.blocks)));
        cost.ids.assign(ranks, std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(placement.blocks)));
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const BatchView& batch = (*cost.batches)[rank];
            for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
                const FeaturePlacement& feature = placement.features[static_cast<std::size_t>(f)];
                const int shards = static_cast<int>(placement.table_of(f).shards.size());
                const int cut = S::splits == Splits::rows ? 1 : shards;  // shards that get a copy of each id
                const std::int64_t first = batch.first_value(feature.feature);
                for (std::int64_t i = 0; i < batch.values(feature.feature); ++i) {
                    const RowPlace place = S::place(batch.id(first + i), placement.table_of(f).shape);
                    for (int s = place.shard; s < place.shard + cut; ++s) {
                        const auto block = static_cast<std::size_t>(feature.first_block + s);
                        ++cost.counts[rank][block].ids;
                        cost.ids[rank][block].push_back(place.local);
                    }
                }
                bool single = S::splits != Splits::rows;
                for (std::int64_t i = 0; i < batch.samples(); ++i)
                    single &= batch.length(feature.feature, i) == 1;
                for (int s = 0; s < shards; ++s)
                    cost.counts[rank][static_cast<std::size_t>(feature.first_block + s)].single = single;
            }
        }
    }

  private:
    static bool fill(StepEnv& env, Lanes& lanes, Tape& tape) {
        const Placement& placement = *lanes.placement;
        const BatchView& batch = *lanes.batch;
        const auto features = static_cast<int>(placement.features.size());
        tape.samples = batch.samples();
        tape.first.resize(static_cast<std::size_t>(features) + 1);
        tape.first[0] = 0;
        for (int f = 0; f < features; ++f)
            tape.first[static_cast<std::size_t>(f) + 1] =
                tape.first[static_cast<std::size_t>(f)] +
                batch.values(placement.features[static_cast<std::size_t>(f)].feature);
        const auto ids = static_cast<std::size_t>(tape.first.back());
        tape.rows.on(*lanes.memory).resize(ids);
        if (batch.weighted()) tape.weights.on(*lanes.memory).resize(ids);
        tape.bag_lengths.on(*lanes.memory).resize(static_cast<std::size_t>(features * tape.samples));
        if constexpr (S::splits == Splits::rows) {
            tape.shard_of.on(*lanes.memory).resize(ids);
            tape.local_of.on(*lanes.memory).resize(ids);
            tape.shard_lengths.on(*lanes.memory)
                .assign_zero(static_cast<std::size_t>(placement.blocks) * static_cast<std::size_t>(tape.samples));
        }
        tape.blocks.resize(static_cast<std::size_t>(placement.blocks));
        bool good = true;
        if (!Pooling::pooled && batch.weighted()) {
            env.error.note(FlightError::bad_input, weights_of_a_sequence);
            return false;
        }
        for (int f = 0; f < features && good; ++f)
            batch.with_ids([&](const auto* values) { good = split_feature(env, lanes, tape, f, values); });
        return good;
    }

    template <class Id>
    static bool split_feature(StepEnv& env, Lanes& lanes, Tape& tape, int f, const Id* values) {
        const Placement& placement = *lanes.placement;
        const BatchView& batch = *lanes.batch;
        const FeaturePlacement& feature = placement.features[static_cast<std::size_t>(f)];
        const TablePlacement& table = placement.table_of(f);
        const std::int64_t first = batch.first_value(feature.feature);
        const std::int64_t ids = batch.values(feature.feature);
        const std::int64_t at = tape.first[static_cast<std::size_t>(f)];
        const auto limit = static_cast<std::uint64_t>(table.rows);
        values += first;

        std::int32_t* lengths = tape.bag_lengths.data() + f * tape.samples;
        bool single = true;
        for (std::int64_t i = 0; i < tape.samples; ++i) {
            lengths[i] = static_cast<std::int32_t>(batch.length(feature.feature, i));
            single &= lengths[i] == 1;
        }
        bool good = true;
        for (std::int64_t i = 0; i < ids; ++i)
            good &= static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i])) < limit;
        if (batch.weighted())
            for (std::int64_t i = 0; i < ids; ++i)
                good &= std::isfinite(batch.weight(first + i));
        if (!good) {
            env.error.note(FlightError::bad_input, first_wrong_id(batch, feature, table));
            return false;
        }

        const int shards = static_cast<int>(table.shards.size());
        IdBlock* blocks = tape.blocks.data() + feature.first_block;
        for (int s = 0; s < shards; ++s) {
            blocks[s] = {.head = {.source = env.rank,
                                  .owner = table.shards[static_cast<std::size_t>(s)].owner,
                                  .feature = f,
                                  .shard = s,
                                  .dim = table.shards[static_cast<std::size_t>(s)].columns.count,
                                  .n = tape.samples},
                         .ids = S::splits == Splits::rows ? 0 : ids,
                         .lengths = single ? nullptr : lengths,
                         .rows = tape.rows.data() + at,
                         .weights = batch.weighted() ? tape.weights.data() + at : nullptr};
        }
        if constexpr (S::splits == Splits::rows) {
            split_rows(tape, batch, feature, table.shape, values, blocks, ids, at);
        } else {
            for (std::int64_t i = 0; i < ids; ++i)
                tape.rows[static_cast<std::size_t>(at + i)] =
                    static_cast<LocalRow>(S::place(values[i], table.shape).local);
            if (batch.weighted())
                for (std::int64_t i = 0; i < ids; ++i)
                    tape.weights[static_cast<std::size_t>(at + i)] = batch.weight(first + i);
        }
        return true;
    }

    template <class Id>
    static void split_rows(Tape& tape, const BatchView& batch, const FeaturePlacement& feature, const TableShape& shape,
                           const Id* values, IdBlock* blocks, std::int64_t ids, std::int64_t at) {
        for (std::int64_t i = 0; i < ids; ++i) {
            const RowPlace place = S::place(values[i], shape);
            SHARDWISE_ASSERT(place.shard >= 0 && place.shard < shape.shards && place.local >= 0 &&
                             place.local < S::rows(place.shard, shape));
            tape.shard_of[static_cast<std::size_t>(at + i)] = place.shard;
            tape.local_of[static_cast<std::size_t>(at + i)] = static_cast<LocalRow>(place.local);
            ++blocks[place.shard].ids;
        }
        tape.cursor.assign(static_cast<std::size_t>(shape.shards), at);
        std::int64_t begin = at;
        for (int s = 0; s < shape.shards; ++s) {
            tape.cursor[static_cast<std::size_t>(s)] = begin;
            blocks[s].rows = tape.rows.data() + begin;
            if (batch.weighted()) blocks[s].weights = tape.weights.data() + begin;
            blocks[s].lengths = tape.shard_lengths.data() + (feature.first_block + s) * tape.samples;
            begin += blocks[s].ids;
        }
        const std::int64_t first = batch.first_value(feature.feature);
        std::int64_t i = 0;
        for (std::int64_t sample = 0; sample < tape.samples; ++sample) {
            for (const std::int64_t end = i + batch.length(feature.feature, sample); i < end; ++i) {
                const auto shard = static_cast<std::size_t>(tape.shard_of[static_cast<std::size_t>(at + i)]);
                const auto to = static_cast<std::size_t>(tape.cursor[shard]++);
                tape.rows[to] = tape.local_of[static_cast<std::size_t>(at + i)];
                if (batch.weighted()) tape.weights[to] = batch.weight(first + i);
                ++tape.shard_lengths[(static_cast<std::size_t>(feature.first_block) + shard) *
                                         static_cast<std::size_t>(tape.samples) +
                                     static_cast<std::size_t>(sample)];
            }
        }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
