// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/lanes/means.hpp"
#include "shardwise/embedding/lanes/shard_sums.hpp"
#include "shardwise/embedding/steps/join.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct JoinTape {
    ShardSums sum;
    std::vector<std::int64_t> cursor;  // (shard)
    std::vector<Head> heads;           // of the blocks that were joined
};
struct CutTape {
    Buffer<float> copies;              // divided by lengths
    Buffer<std::int32_t> places;       // (id by feature, then shard): of a sequence, its row in the gradient
    std::vector<std::int64_t> cursor;  // (shard)
};

namespace detail {

struct JoinBody {
    using Tape = JoinTape;
    using View = shardwise::View<Lanes, JoinFamily::Tapes, JoinFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<JoinTape>();
        const Placement& placement = view.state<Placement>();
        const PlanPooling& pooling = view.state<PlanPooling>();
        const bool by_rows = placement.splits == Splits::rows;
        tape.heads.clear();
        for (VectorBlock& block : lanes.vectors) {
            tape.heads.push_back(block.head);
            if (pooling.pooled && !pooling.every_bag)
                block.samples = view.tape<SplitTape>().block(placement, block.head.feature, block.head.shard).samples;
        }
        if (pooling.pooled) tape.sum.prepare(lanes.vectors, by_rows, *view.state<WorkMemory>().resource);
        const VectorBlock* block = lanes.vectors.data();
        const VectorBlock* const end = block + lanes.vectors.size();
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            const MatrixView<float>& out = at(lanes.output, f);
            const std::span<const VectorBlock> blocks{block, parts_of_bags(block, end)};
            block += blocks.size();
            if (by_rows && !pooling.pooled) {
                interleave(lanes, view.tape<SplitTape>(), f, blocks, tape.cursor);
            } else if (by_rows && blocks.size() > 1) {
                tape.sum(env.topology, blocks, out);
            } else {
                for (const VectorBlock& part : blocks) {
                    const Columns& columns = at(table.shards, part.head.shard).columns;
                    const MatrixView<float> to = out.columns_from(columns.first, columns.count);
                    if (part.samples != nullptr)
                        tape.sum(env.topology, {&part, 1}, to);
                    else
                        put(pooling.pooled, part, lanes.places_of(f), to);
                }
            }
            if (pooling.pooled && at(pooling.mean, f) != 0) divide_by_lengths(lanes.batch.lengths(f), out);
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const bool by_rows = cost.placement->splits == Splits::rows;
        tally.need(cost.pooling->pooled ? ShardSums::bytes(at(cost.vectors, rank), by_rows, cost.samples(rank)) : 0);
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}

  private:
    static void put(bool pooled, const VectorBlock& block, const std::int32_t* places, const MatrixView<float>& out) {
        if (pooled) return write_sums(block, out);
        if (places == nullptr) return block.write(out.data(), out.stride());
        for (std::int64_t i = 0; i < block.head.n; ++i)
            std::copy_n(block.row_or_table_row(i), out.columns(), out.row(places[i]));
    }
    /// Rows of a sequence in the order of its ids, from blocks by shard.
    static void interleave(const Lanes& lanes, const SplitTape& split, int f, std::span<const VectorBlock> blocks,
                           std::vector<std::int64_t>& cursor) {
        cursor.assign(blocks.size(), 0);
        const MatrixView<float>& out = at(lanes.output, f);
        const std::int32_t* const places = lanes.places_of(f);
        const std::int64_t first = at(split.first, f);
        for (std::int64_t i = 0; i < lanes.batch.values(f); ++i) {
            const std::int32_t shard = at(split.shard_of, first + i);
            std::copy_n(at(blocks, shard).row_or_table_row(at(cursor, shard)++), out.columns(),
                        out.row(places == nullptr ? i : places[i]));
        }
    }
};

struct CutBody {
    using Tape = CutTape;
    using View = shardwise::View<Lanes, CutFamily::Tapes, CutFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<CutTape>();
        const Placement& placement = view.state<Placement>();
        const PlanPooling& pooling = view.state<PlanPooling>();
        const std::vector<Head>& heads = view.tape<JoinTape>().heads;
        lanes.vectors.clear();
        tape.copies.on(*view.state<WorkMemory>().resource)
            .resize(static_cast<std::size_t>(copied(placement, pooling, lanes.batch.samples())));
        const std::int64_t ids = scattered<std::int64_t>(placement, pooling, lanes.batch);
        std::int32_t* place =
            tape.places.on(*view.state<WorkMemory>().resource).resize(static_cast<std::size_t>(ids)).data();
        float* to = tape.copies.data();
        auto head = heads.begin();
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            MatrixView<const float> gradient = at(lanes.gradient, f);
            if (pooling.pooled && at(pooling.mean, f) != 0)
                gradient = divided_by_lengths(lanes.batch.lengths(f), gradient, to);
            if (!pooling.pooled && placement.splits == Splits::rows) {
                scatter(env.rank, placement, view.tape<SplitTape>(), f, tape, place, lanes, pooling.words);
                place += lanes.batch.values(f);
                continue;
            }
            for (; head != heads.end() && head->feature == f; ++head) {
                const Columns& columns = at(table.shards, head->shard).columns;
                const MatrixView<const float> part =
                    gradient.columns_from(columns.first * pooling.words, columns.count * pooling.words);
                VectorBlock& block = lanes.vectors.emplace_back(rows_in_memory(*head, part.data(), pooling.words));
                block.stride = part.stride();
                block.squares = lanes.squares_of(f);
                if (pooling.pooled && !pooling.every_bag)
                    block.gather = view.tape<SplitTape>().block(placement, f, head->shard).samples;
                else if (!pooling.pooled)
                    block.gather = lanes.places_of(f);
            }
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        using Number = typename Cost::Number;
        tally.need(4 * copied(*cost.placement, *cost.pooling, cost.samples(rank)));
        tally.need(4 * rounded_up(scattered<Number>(*cost.placement, *cost.pooling, cost.batch(rank))));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}

  private:
    /// Elements that are divided.
    static std::int64_t copied(const Placement& placement, const PlanPooling& pooling, std::int64_t samples) {
        std::int64_t elements = 0;
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
            if (pooling.pooled && at(pooling.mean, f) != 0) elements += samples * placement.table_of(f).dim;
        return elements;
    }
    /// Ids of sequences whose rows are split.
    template <class Number, class Batch>
    static Number scattered(const Placement& placement, const PlanPooling& pooling, const Batch& batch) {
        Number ids = 0;
        if (pooling.pooled || placement.splits != Splits::rows) return ids;
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
            ids += batch.values(f);
        return ids;
    }
    /// The rows of a sequence's gradient to the shards that they came from. \param to  (id): their places, by shard
    static void scatter(int rank, const Placement& placement, const SplitTape& split, int f, Tape& tape,
                        std::int32_t* to, Lanes& lanes, int words) {
        const TablePlacement& table = placement.table_of(f);
        const MatrixView<const float>& gradient = at(lanes.gradient, f);
        const std::int32_t* const places = lanes.places_of(f);
        tape.cursor.assign(table.shards.size(), 0);
        std::int64_t first = 0;
        for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
            const IdBlock& ids = at(split.blocks, placement.block_index(f, s));
            at(tape.cursor, s) = first;
            VectorBlock& block = lanes.vectors.emplace_back(rows_in_memory(ids.head, gradient.data(), words));
            block.head.owner = placement.owner(rank, at(table.shards, s));
            block.head.n = ids.ids;
            block.stride = gradient.stride();
            block.gather = to + first;
            first += ids.ids;
        }
        for (std::int64_t i = 0; i < lanes.batch.values(f); ++i) {
            const std::int32_t shard = at(split.shard_of, at(split.first, f) + i);
            to[at(tape.cursor, shard)++] = places == nullptr ? static_cast<std::int32_t>(i) : places[i];
        }
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, JoinFamily) {
    return code_from<EmbeddingDomain, detail::JoinBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutFamily) {
    return code_from<EmbeddingDomain, detail::CutBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
