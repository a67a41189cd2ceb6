// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/steps/row_norms.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Also the exchange of one flight.
struct NormsTape final : Exchange {
    struct Set {
        Buffer<float> sums;     // (row, dim)
        Buffer<double> mine;    // (row)
        Buffer<double> totals;  // (row)
        Buffer<std::uint64_t> keys;
        std::vector<const double*> parts;  // (shard)
    };

    Folder fold;
    std::vector<Set> sets;

    void bind(const StepEnv& env, const Placement& placement, const HeldShards& held, const Store& store,
              const TableRules& rules, Lanes& lanes, std::pmr::memory_resource& memory) {
        rank_ = env.rank;
        placement_ = &placement;
        held_ = &held;
        lanes_ = &lanes;
        sets.resize(lanes.rows.size());
        for (std::size_t k = 0; k < lanes.rows.size(); ++k) {
            const RowSet rows = fold.begin(lanes.rows[k], env.topology);
            Set& set = sets[k];
            const RowChange& change = at(rules.tables, at(placement.tables, held.shards[k].table).table).change;
            const bool changes = change.of_gradient();  // by norm: the scale is still 1, and there is no l2
            const float* const weights = at(store.shards(), rows.slot).weights.data();
            const auto count = static_cast<std::size_t>(rows.touched());
            set.sums.on(memory).resize(count * static_cast<std::size_t>(rows.dim));
            set.mine.on(memory).resize(count);
            set.totals.on(memory).resize(count);
            set.keys.on(memory).resize(count);
            for (std::size_t i = 0; i < count; ++i) {
                const RowTerms terms = rows.terms(static_cast<std::int64_t>(i));
                float* sum = set.sums.data() + i * static_cast<std::size_t>(rows.dim);
                fold(rows, terms, env.topology, sum);
                if (changes) change.apply(sum, weights + std::int64_t{terms.row} * rows.dim, rows.dim);
                set.mine[i] = sum_of_squares(sum, rows.dim);
                set.keys[i] = static_cast<std::uint64_t>(terms.row) << 32U | i;
            }
            lanes.rows[k] = {.slot = rows.slot,
                             .dim = rows.dim,
                             .contributions = {.count = static_cast<std::int64_t>(count),
                                               .even = set.sums.data(),
                                               .stride = rows.dim},
                             .singles = static_cast<std::int64_t>(count),
                             .single = set.keys.data(),
                             .changed = true};
            const HeldShards::Shard& shard = held.shards[k];
            set.parts.assign(at(placement.tables, shard.table).shards.size(), nullptr);
            at(set.parts, shard.shard) = set.mine.data();
        }
    }
    [[nodiscard]] PartSize size(int peer) override { return {.payload = expected(peer), .control = 0}; }
    void pack(int peer, ByteWriter& to) override {
        for_shared(peer, [&](std::size_t k, std::size_t) { to.put(sets[k].mine.data(), rows(k)); });
    }
    [[nodiscard]] std::int64_t expected(int peer) override {
        std::int64_t bytes = 0;
        for_shared(peer, [&](std::size_t k, std::size_t) { bytes += 8 * rows(k); });
        return bytes;
    }
    void unpack(int peer, ByteReader& from) override {
        for_shared(peer, [&](std::size_t k, std::size_t s) { sets[k].parts[s] = from.view<double>(rows(k)); });
    }
    void end() override {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            Set& set = sets[k];
            for (std::size_t i = 0; i < set.totals.size(); ++i) {
                double total = 0.0;
                for (const double* part : set.parts)
                    total += part[i];
                set.totals[i] = total;
            }
            lanes_->rows[k].sums_of_squares = set.totals.data();
        }
    }

  private:
    [[nodiscard]] std::int64_t rows(std::size_t k) const { return lanes_->rows[k].singles; }
    /// Calls use(k, shard) for each of my sets whose table has a shard on `peer` too (a rank has one shard of a table
    /// at most).
    template <class Use>
    void for_shared(int peer, Use use) const {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const auto& shards = at(placement_->tables, held_->shards[k].table).shards;
            for (std::size_t s = 0; s < shards.size(); ++s)
                if (placement_->owner(rank_, shards[s]) == peer) use(k, s);
        }
    }

    int rank_ = 0;
    const Placement* placement_ = nullptr;
    const HeldShards* held_ = nullptr;
    Lanes* lanes_ = nullptr;
};

namespace detail {

struct NormsBody {
    using Tape = NormsTape;
    using View = shardwise::View<Lanes, NormsFamily::Tapes, NormsFamily::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        Tape& tape = view.tape<NormsTape>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        tape.fold.prepare(view.state<OrderTraits>(), view.state<HeldShards>().widest, memory);
        tape.bind(env, view.state<Placement>(), view.state<HeldShards>(), view.state<Store>(), view.state<TableRules>(),
                  view.lanes(), memory);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        cost.for_shards(rank, [&](std::size_t key, int, const ShardPlacement& shard) {
            const int dim = shard.columns.count;
            const std::int64_t count = rounded_up(cost.touched_rows(rank, key));
            tally.need(4 * count * dim);
            for (int i = 0; i < 3; ++i)
                tally.need(8 * count);
        });
        tally.need(cost.order->scratch_bytes(cost.widest(rank)));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        const Placement& placement = *cost.placement;
        for (int rank = 0; rank < cost.ranks(); ++rank)
            cost.for_shards(rank, [&](std::size_t key, int table, const ShardPlacement& mine) {
                for (const ShardPlacement& other : at(placement.tables, table).shards)
                    if (other.owner != mine.owner)
                        round.at(rank, placement.owner(rank, other)).payload += 8 * cost.touched_rows(rank, key);
            });
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, NormsFamily) {
    return code_from<EmbeddingDomain, detail::NormsBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
