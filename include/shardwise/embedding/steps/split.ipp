// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <span>

#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/steps/split.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct SplitBody {
    using Tape = SplitTape;
    using View = shardwise::View<Lanes, SplitFamily::Tapes, SplitFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Splitter work{view.state<Placement>(),
                      view.state<PlanPooling>(),
                      *view.state<WorkMemory>().resource,
                      env.rank,
                      lanes.batch,
                      view.tape<SplitTape>()};
        const std::string wrong = work.split();
        if (!wrong.empty()) {
            env.error.note(FlightError::bad_input, wrong);
            lanes.batch.clear();
            static_cast<void>(work.split());
        }
        const SplitTape& tape = view.tape<SplitTape>();
        lanes.ids = tape.blocks;
        lanes.home.clear();
        for (const IdBlock& block : tape.blocks) {
            Head& head = lanes.home.emplace_back(block.head);
            if (!view.state<PlanPooling>().pooled) head.n = block.ids;
        }
    }

    static void memory(const CostEnv&, const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const BatchView& batch = at(cost.batches, rank);
        std::int64_t ids = 0;
        for (int f = 0; f < static_cast<int>(cost.placement->features.size()); ++f)
            ids += batch.values(f);
        const bool by_rows = cost.placement->splits == Splits::rows;
        tally.need(4 * ids);
        tally.need(batch.weighted() ? 4 * ids : 0);
        tally.need(by_rows ? 4 * ids : 0);
        tally.need(by_rows ? 4 * ids : 0);
        tally.need(by_rows ? 4 * cost.placement->blocks * batch.samples() : 0);
    }
    static void shape(const CostEnv&, EmbeddingCost& cost) {
        const Placement& placement = *cost.placement;
        const auto ranks = static_cast<std::size_t>(cost.ranks());
        const auto blocks = static_cast<std::size_t>(placement.blocks);
        cost.counts.assign(ranks, std::vector<EmbeddingCost::Count>(blocks));
        cost.ids.assign(ranks, std::vector<std::vector<std::int64_t>>(blocks));
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const BatchView& batch = cost.batches[rank];
            for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
                const TablePlacement& table = placement.table_of(f);
                const int shards = static_cast<int>(table.shards.size());
                const int cut = placement.splits == Splits::rows ? 1 : shards;  // shards that get a copy of each id
                const std::int64_t first = batch.first_value(f);
                for (std::int64_t i = 0; i < batch.values(f); ++i) {
                    const RowPlace place = table.map->place(batch.id(first + i));
                    for (int s = place.shard; s < place.shard + cut; ++s) {
                        const int block = placement.block_index(f, s);
                        ++at(cost.counts[rank], block).ids;
                        at(cost.ids[rank], block).push_back(place.local);
                    }
                }
                bool single = placement.splits != Splits::rows;
                for (std::int64_t i = 0; i < batch.samples(); ++i)
                    single &= batch.length(f, i) == 1;
                for (int s = 0; s < shards; ++s)
                    at(cost.counts[rank], placement.block_index(f, s)).single = single;
            }
        }
    }

  private:
    /// Fills a tape from a batch.
    class Splitter {
      public:
        Splitter(const Placement& placement, const PlanPooling& pooling, std::pmr::memory_resource& memory, int rank,
                 BatchView& batch, SplitTape& tape)
            : placement_{placement}, pooling_{pooling}, memory_{memory}, rank_{rank}, batch_{batch}, tape_{tape} {}

        /// \returns what is wrong with the batch, or nothing
        [[nodiscard]] std::string split() {
            if (std::string wrong = check_sequences(); !wrong.empty()) return wrong;
            const int features = static_cast<int>(placement_.features.size());
            tape_.first.resize(static_cast<std::size_t>(features) + 1);
            tape_.first[0] = 0;
            for (int f = 0; f < features; ++f)
                at(tape_.first, f + 1) = at(tape_.first, f) + batch_.values(f);
            const auto ids = static_cast<std::size_t>(tape_.first.back());
            tape_.rows.on(memory_).resize(ids);
            if (batch_.weighted()) tape_.weights.on(memory_).resize(ids);
            if (by_rows()) {
                tape_.shard_of.on(memory_).resize(ids);
                tape_.local_of.on(memory_).resize(ids);
                tape_.shard_lengths.on(memory_).assign_zero(static_cast<std::size_t>(placement_.blocks) *
                                                            static_cast<std::size_t>(batch_.samples()));
            }
            tape_.blocks.resize(static_cast<std::size_t>(placement_.blocks));
            std::string wrong;
            for (int f = 0; f < features && wrong.empty(); ++f)
                batch_.with_ids(f, [&](auto values) {
                    if (good(f, values))
                        split_feature(f, values);
                    else
                        wrong = first_wrong_id(batch_, f, at(placement_.features, f), placement_.table_of(f));
                });
            return wrong;
        }

      private:
        [[nodiscard]] bool by_rows() const { return placement_.splits == Splits::rows; }
        [[nodiscard]] std::string check_sequences() {
            if (pooling_.pooled || !batch_.weighted()) return {};
            if (!pooling_.beside_pooled) return weights_of_a_sequence;
            for (int f = 0; f < static_cast<int>(placement_.features.size()); ++f) {
                std::string wrong = first_weighed_id(batch_, f, at(placement_.features, f));
                if (!wrong.empty()) return wrong;
            }
            batch_.drop_weights();
            return {};
        }
        template <class Id>
        [[nodiscard]] bool good(int f, std::span<const Id> values) const {
            const auto limit = static_cast<std::uint64_t>(placement_.table_of(f).rows);
            bool good = true;
            for (const Id value : values)
                good &= static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) < limit;
            if (batch_.weighted()) {
                const std::int64_t first = batch_.first_value(f);
                for (std::int64_t i = 0; i < std::ssize(values); ++i)
                    good &= std::isfinite(batch_.weight(first + i));
            }
            return good;
        }
        template <class Id>
        void split_feature(int f, std::span<const Id> values) {
            const TablePlacement& table = placement_.table_of(f);
            const std::int64_t to = at(tape_.first, f);
            IdBlock* blocks = tape_.blocks.data() + at(placement_.features, f).first_block;
            for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
                const ShardPlacement& shard = at(table.shards, s);
                blocks[s] = {.head = {.source = rank_,
                                      .owner = placement_.owner(rank_, shard),
                                      .feature = f,
                                      .shard = s,
                                      .dim = shard.columns.count,
                                      .n = batch_.samples()},
                             .ids = by_rows() ? 0 : std::ssize(values),
                             .lengths = batch_.lengths(f),
                             .rows = tape_.rows.data() + to,
                             .weights = batch_.weighted() ? tape_.weights.data() + to : nullptr};
            }
            if (by_rows()) {
                table.map->locate(values, tape_.shard_of.data() + to, tape_.local_of.data() + to);
                deal(f, blocks, static_cast<int>(table.shards.size()), std::ssize(values), to);
                return;
            }
            table.map->locate(values, nullptr, tape_.rows.data() + to);
            if (batch_.weighted())
                for (std::int64_t i = 0; i < std::ssize(values); ++i)
                    at(tape_.weights, to + i) = batch_.weight(batch_.first_value(f) + i);
        }
        /// Deals `ids` located rows to the blocks of their shards, bag by bag.
        void deal(int f, IdBlock* blocks, int shards, std::int64_t ids, std::int64_t to) {
            const std::int32_t* const shard_of = tape_.shard_of.data() + to;
            const LocalRow* const local_of = tape_.local_of.data() + to;
            for (std::int64_t i = 0; i < ids; ++i)
                ++blocks[shard_of[i]].ids;
            tape_.cursor.assign(static_cast<std::size_t>(shards), to);
            std::int64_t begin = to;
            const int first_block = at(placement_.features, f).first_block;
            const std::int64_t samples = batch_.samples();
            for (int s = 0; s < shards; ++s) {
                at(tape_.cursor, s) = begin;
                blocks[s].rows = tape_.rows.data() + begin;
                if (batch_.weighted()) blocks[s].weights = tape_.weights.data() + begin;
                blocks[s].lengths = tape_.shard_lengths.data() + (first_block + s) * samples;
                begin += blocks[s].ids;
            }
            const std::int64_t first = batch_.first_value(f);
            const std::int32_t* const lengths = batch_.lengths(f);
            std::int32_t* const shard_lengths = tape_.shard_lengths.data() + first_block * samples;
            std::int64_t i = 0;
            for (std::int64_t sample = 0; sample < samples; ++sample) {
                for (const std::int64_t end = i + (lengths == nullptr ? 1 : lengths[sample]); i < end; ++i) {
                    const std::int64_t at_row = at(tape_.cursor, shard_of[i])++;
                    at(tape_.rows, at_row) = local_of[i];
                    if (batch_.weighted()) at(tape_.weights, at_row) = batch_.weight(first + i);
                    ++shard_lengths[shard_of[i] * samples + sample];
                }
            }
        }

        const Placement& placement_;
        const PlanPooling& pooling_;
        std::pmr::memory_resource& memory_;
        int rank_;
        BatchView& batch_;
        SplitTape& tape_;
    };
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SplitFamily) {
    return code_from<EmbeddingDomain, detail::SplitBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
