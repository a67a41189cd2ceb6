// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/steps/transpose.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct TransposeTape {
    struct Part {
        Head head;
        std::size_t block;  // of its source
        std::int64_t row;   // where the source begins
        std::int64_t column;
    };
    std::vector<Part> cut;  // (block of the lane)
    std::vector<VectorBlock> samples;
    std::vector<VectorBlock> parts;  // of the gradient
    Buffer<float> buffer;
};

namespace detail {

struct TransposeBody {
    using Tape = TransposeTape;
    using View = shardwise::View<Lanes, TransposeFamily::Tapes, TransposeFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<TransposeTape>();
        const Placement& placement = view.state<Placement>();
        tape.cut.clear();
        tape.samples.clear();
        const int tower = env.group.peers(env.topology.ranks()).index(env.rank);
        const int width = at(view.state<TowerModules>().shapes, tower).width();
        std::int64_t rows = 0;
        std::int64_t first_row = 0;        // of the source
        std::int64_t features_before = 0;  // columns of the source's features before this one
        for (const VectorBlock& block : lanes.vectors) {
            const Head& head = block.head;
            if (tape.samples.empty() || tape.samples.back().head.source != head.source) {
                tape.samples.push_back(rows_in_memory(
                    {.source = head.source, .owner = env.rank, .feature = tower, .shard = 0, .dim = width, .n = head.n},
                    nullptr));
                first_row = rows;
                rows += head.n;
                features_before = 0;
            } else if (head.feature != tape.cut.back().head.feature) {
                features_before += placement.table_of(tape.cut.back().head.feature).dim;
            }
            tape.cut.push_back(
                {.head = head,
                 .block = tape.samples.size() - 1,
                 .row = first_row,
                 .column = features_before + at(placement.table_of(head.feature).shards, head.shard).columns.first});
        }
        const MatrixView<float> all{
            tape.buffer.on(*view.state<WorkMemory>().resource).resize(static_cast<std::size_t>(rows * width)).data(),
            rows, width};
        for (std::size_t i = 0; i < lanes.vectors.size(); ++i) {
            const Tape::Part& part = tape.cut[i];
            const MatrixView<float> source = all.rows_from(part.row, part.head.n);
            tape.samples[part.block].data = source.data();
            write_sums(lanes.vectors[i], source.columns_from(part.column, part.head.dim));
        }
        lanes.vectors = tape.samples;
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        tally.need(4 * rounded_up(Cost::elements(at(cost.vectors, rank))));
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost) {
        typename Cost::Blocks samples(cost.vectors.size());
        for (std::size_t rank = 0; rank < samples.size(); ++rank)
            for (const auto& block : cost.vectors[rank]) {
                if (samples[rank].empty() || samples[rank].back().head.source != block.head.source) {
                    samples[rank].push_back({.head = block.head, .n = block.n, .looked_up = true});
                    Head& head = samples[rank].back().head;
                    head.feature = env.group.peers(cost.ranks()).index(static_cast<int>(rank));
                    head.shard = 0;
                } else {
                    samples[rank].back().head.dim += block.head.dim;
                }
            }
        cost.step_on(std::move(samples));
    }
};

struct CutSamplesBody {
    using View = shardwise::View<Lanes, CutSamplesFamily::Tapes>;
    static void run(StepEnv&, View& view) {
        TransposeTape& tape = view.tape<TransposeTape>();
        auto& lane = view.lanes().vectors;
        tape.parts.clear();
        for (const TransposeTape::Part& part : tape.cut) {
            const VectorBlock& block = lane[part.block];
            const MatrixView<const float> samples{block.data, block.head.n, block.head.dim, block.stride};
            VectorBlock& gradient = tape.parts.emplace_back(
                rows_in_memory(part.head, samples.columns_from(part.column, part.head.dim).data()));
            gradient.stride = block.stride;
        }
        lane.swap(tape.parts);
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        cost.step_back();
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, TransposeFamily) {
    return code_from<EmbeddingDomain, detail::TransposeBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutSamplesFamily) {
    return code_from<EmbeddingDomain, detail::CutSamplesBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
