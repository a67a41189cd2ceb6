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
    Buffer<float> copies;
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
                interleave(view.tape<SplitTape>(), f, blocks, tape.cursor, out);
            } else if (by_rows && blocks.size() > 1) {
                tape.sum(env.topology, blocks, out);
            } else {
                for (const VectorBlock& part : blocks) {
                    const Columns& columns = at(table.shards, part.head.shard).columns;
                    const MatrixView<float> to = out.columns_from(columns.first, columns.count);
                    if (part.samples != nullptr)
                        tape.sum(env.topology, {&part, 1}, to);
                    else
                        put(pooling.pooled, part, to);
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
    static void put(bool pooled, const VectorBlock& block, const MatrixView<float>& out) {
        if (pooled)
            write_sums(block, out);
        else
            block.write(out.data(), out.stride());
    }
    /// Rows of a sequence in the order of its ids, from blocks by shard.
    static void interleave(const SplitTape& split, int f, std::span<const VectorBlock> blocks,
                           std::vector<std::int64_t>& cursor, const MatrixView<float>& out) {
        cursor.assign(blocks.size(), 0);
        const std::int64_t first = at(split.first, f);
        for (std::int64_t i = 0; i < out.rows(); ++i) {
            const std::int32_t shard = at(split.shard_of, first + i);
            std::copy_n(at(blocks, shard).row_or_table_row(at(cursor, shard)++), out.columns(), out.row(i));
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
            .resize(static_cast<std::size_t>(copied<std::int64_t>(placement, pooling, lanes.batch)));
        float* to = tape.copies.data();
        auto head = heads.begin();
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            MatrixView<const float> gradient = at(lanes.gradient, f);
            if (pooling.pooled && at(pooling.mean, f) != 0)
                gradient = divided_by_lengths(lanes.batch.lengths(f), gradient, to);
            if (!pooling.pooled && placement.splits == Splits::rows) {
                scatter(env.rank, placement, view.tape<SplitTape>(), f, gradient, tape, to, lanes.vectors);
                continue;
            }
            for (; head != heads.end() && head->feature == f; ++head) {
                const Columns& columns = at(table.shards, head->shard).columns;
                const MatrixView<const float> part = gradient.columns_from(columns.first, columns.count);
                VectorBlock& block = lanes.vectors.emplace_back(rows_in_memory(*head, part.data()));
                block.stride = part.stride();
                if (pooling.pooled && !pooling.every_bag)
                    block.gather = view.tape<SplitTape>().block(placement, f, head->shard).samples;
            }
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        tally.need(4 * rounded_up(copied<typename Cost::Number>(*cost.placement, *cost.pooling, cost.batch(rank))));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}

  private:
    /// Elements.
    template <class Number, class Batch>
    static Number copied(const Placement& placement, const PlanPooling& pooling, const Batch& batch) {
        Number elements = 0;
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const std::int64_t dim = placement.table_of(f).dim;
            if (pooling.pooled && at(pooling.mean, f) != 0) elements += batch.samples() * dim;
            if (!pooling.pooled && placement.splits == Splits::rows) elements += batch.values(f) * dim;
        }
        return elements;
    }
    /// The rows of a sequence to the shards that they came from.
    static void scatter(int rank, const Placement& placement, const SplitTape& split, int f,
                        const MatrixView<const float>& gradient, Tape& tape, float*& to,
                        std::vector<VectorBlock>& lane) {
        const TablePlacement& table = placement.table_of(f);
        const std::int64_t dim = table.dim;
        tape.cursor.assign(table.shards.size(), 0);
        float* const first = to;
        for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
            const IdBlock& ids = at(split.blocks, placement.block_index(f, s));
            at(tape.cursor, s) = to - first;
            Head head = ids.head;
            head.owner = placement.owner(rank, at(table.shards, s));
            head.n = ids.ids;
            lane.push_back(rows_in_memory(head, to));
            to += ids.ids * dim;
        }
        for (std::int64_t i = 0; i < gradient.rows(); ++i) {
            const std::int32_t shard = at(split.shard_of, at(split.first, f) + i);
            std::copy_n(gradient.row(i), dim, first + at(tape.cursor, shard));
            at(tape.cursor, shard) += dim;
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
