// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/split.hpp"
#include "shardwise/embedding/sum_shards.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The shards of each bag or sequence put together, and the gradient cut up again.

namespace shardwise::inline SHARDWISE_ABI {

/// The adjoint of Join: each shard gets its part of the gradient. Views of the user's gradient wherever no number
/// changes and the rows are whole; copies for means and for sequences split by rows.
template <ShardingPolicy S, class Pooling>
struct JoinAdjoint {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<JoinAdjoint, Split<S, Pooling>>;
    static constexpr bool reads_state = false;
    static std::string name() { return "CutGradients"; }

    struct Tape {
        Buffer<float> copies;
        std::vector<std::int64_t> cursor;  // (shard)
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<JoinAdjoint>();
        const auto& split = view.template tape<Split<S, Pooling>>();
        const Placement& placement = *lanes.placement;
        lanes.vectors.clear();
        tape.copies.on(*lanes.memory).resize(copied(placement, split));
        std::size_t at = 0;
        const Head* head = lanes.home.data();
        const Head* const end = head + lanes.home.size();
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            MatrixView<const float> gradient =
                (*lanes.gradient)[static_cast<std::size_t>(placement.features[static_cast<std::size_t>(f)].feature)];
            if constexpr (Pooling::mean) gradient = scaled(split, f, gradient, tape, at);
            if constexpr (!Pooling::pooled && S::splits == Splits::rows) {
                scatter(env, lanes, tape, split, f, gradient, at);
                continue;
            }
            for (; head != end && head->feature == f; ++head) {
                const Columns& columns = table.shards[static_cast<std::size_t>(head->shard)].columns;
                const MatrixView<const float> part = gradient.columns_from(columns.first, columns.count);
                VectorBlock& block = lanes.vectors.emplace_back(rows_in_memory(*head, part.data()));
                block.stride = part.stride();
            }
        }
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        const BatchView& batch = (*cost.batches)[static_cast<std::size_t>(rank)];
        for (int f = 0; f < static_cast<int>(cost.placement->features.size()); ++f) {
            const int dim = cost.placement->table_of(f).dim;
            if (Pooling::mean) elements += batch.samples() * dim;
            if (!Pooling::pooled && S::splits == Splits::rows)
                elements += batch.values(cost.placement->features[static_cast<std::size_t>(f)].feature) * dim;
        }
        tally.need(4 * elements);
    }
    static void shape(EmbeddingCost&) {}

  private:
    template <class T>
    static std::size_t copied(const Placement& placement, const T& split) {
        std::int64_t elements = 0;
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const std::int64_t ids =
                split.first[static_cast<std::size_t>(f) + 1] - split.first[static_cast<std::size_t>(f)];
            if (Pooling::mean) elements += split.samples * placement.table_of(f).dim;
            if (!Pooling::pooled && S::splits == Splits::rows) elements += ids * placement.table_of(f).dim;
        }
        return static_cast<std::size_t>(elements);
    }
    template <class T>
    static MatrixView<const float> scaled(const T& split, int f, const MatrixView<const float>& gradient, Tape& tape,
                                          std::size_t& at) {
        float* to = tape.copies.data() + at;
        at += static_cast<std::size_t>(gradient.rows() * gradient.columns());
        const std::int32_t* lengths = split.lengths_of(f);
        for (std::int64_t i = 0; i < gradient.rows(); ++i) {
            const float* __restrict from = gradient.row(i);
            float* __restrict row = to + i * gradient.columns();
            const auto length = static_cast<float>(std::max(lengths[i], 1));
            for (std::int64_t d = 0; d < gradient.columns(); ++d)
                row[d] = from[d] / length;
        }
        return {to, gradient.rows(), gradient.columns()};
    }
    template <class T>
    static void scatter(StepEnv& env, Lanes& lanes, Tape& tape, const T& split, int f,
                        const MatrixView<const float>& gradient, std::size_t& at) {
        const TablePlacement& table = lanes.placement->table_of(f);
        const std::int64_t first = split.first[static_cast<std::size_t>(f)];
        const int dim = table.dim;
        tape.cursor.clear();
        for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
            const std::int64_t ids = split.blocks[static_cast<std::size_t>(lanes.placement->block_index(f, s))].ids;
            tape.cursor.push_back(static_cast<std::int64_t>(at));
            const Head head{.source = env.rank,
                            .owner = table.shards[static_cast<std::size_t>(s)].owner,
                            .feature = f,
                            .shard = s,
                            .dim = dim,
                            .n = ids};
            lanes.vectors.push_back(rows_in_memory(head, tape.copies.data() + at));
            at += static_cast<std::size_t>(ids * dim);
        }
        for (std::int64_t i = 0; i < gradient.rows(); ++i) {
            const auto shard = static_cast<std::size_t>(split.shard_of[static_cast<std::size_t>(first + i)]);
            std::copy_n(gradient.row(i), dim, tape.copies.data() + tape.cursor[shard]);
            tape.cursor[shard] += dim;
        }
    }
};

/// Puts the shards of every bag together and writes the result where the user reads it: a sum along the tree where rows
/// are split and pooled, interleaved where sequences are split by rows, side by side where columns are. Rows that this
/// rank has yet to look up go straight there. Local; one pass.
template <ShardingPolicy S, class Pooling>
struct Join {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, HomeVectors>, Outputs>;
    using Adjoint = Plan<JoinAdjoint<S, Pooling>>;
    using Uses = boost::mp11::mp_list<Join, Split<S, Pooling>>;
    static constexpr bool reads_state = true;
    static std::string name() { return std::string{"Join<"} + S::name + ", " + Pooling::name + ">"; }

    struct Tape {
        detail::SumOfShards sum;
        std::vector<std::int64_t> cursor;  // (shard)
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<Join>();
        const auto& split = view.template tape<Split<S, Pooling>>();
        const Placement& placement = *lanes.placement;
        if constexpr (sums) tape.sum.prepare(lanes.vectors, *lanes.memory);
        const VectorBlock* block = lanes.vectors.data();
        const VectorBlock* const end = block + lanes.vectors.size();
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            const MatrixView<float>& out =
                (*lanes.output)[static_cast<std::size_t>(placement.features[static_cast<std::size_t>(f)].feature)];
            const std::span<const VectorBlock> blocks{block, detail::of_one_bag(block, end)};
            block += blocks.size();
            if constexpr (S::splits != Splits::rows) {
                for (const VectorBlock& part : blocks)
                    put(part, out.columns_from(table.shards[static_cast<std::size_t>(part.head.shard)].columns.first,
                                               part.head.dim));
            } else if constexpr (Pooling::pooled) {
                if (blocks.size() == 1) {
                    put(blocks[0], out);
                } else {
                    tape.sum(env.topology, table, blocks, out);
                }
            } else {
                tape.cursor.assign(table.shards.size(), 0);
                const std::int64_t first = split.first[static_cast<std::size_t>(f)];
                for (std::int64_t i = 0; i < out.rows(); ++i) {
                    const auto shard = static_cast<std::size_t>(split.shard_of[static_cast<std::size_t>(first + i)]);
                    std::copy_n(blocks[shard].row_or_table_row(tape.cursor[shard]++), table.dim, out.row(i));
                }
            }
            if constexpr (Pooling::mean) divide(split.lengths_of(f), out);
        }
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        tally.need(sums ? detail::SumOfShards::bytes(cost.vectors[static_cast<std::size_t>(rank)]) : 0);
    }
    static void shape(EmbeddingCost&) {}

  private:
    static constexpr bool sums = S::splits == Splits::rows && Pooling::pooled;

    static void put(const VectorBlock& block, const MatrixView<float>& out) {
        if constexpr (Pooling::pooled)
            write_sums(block, out);
        else
            block.write(out.data(), out.stride());
    }
    static void divide(const std::int32_t* lengths, const MatrixView<float>& out) {
        for (std::int64_t i = 0; i < out.rows(); ++i) {
            if (lengths[i] < 2) continue;
            const auto length = static_cast<float>(lengths[i]);
            float* row = out.row(i);
            for (std::int64_t d = 0; d < out.columns(); ++d)
                row[d] /= length;
        }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
