// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// From one block a feature and shard to one vector a sample, where a tower's module takes them.

namespace shardwise::inline SHARDWISE_ABI {

/// The adjoint of Transpose: each block gets its columns of the gradient. Local; copies no number.
template <class Transposed>
struct CutSamples {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Transposed>;
    static constexpr bool reads_state = false;
    static std::string name() { return "CutSamples"; }

    template <class V>
    static void run(StepEnv&, V& view) {
        auto& tape = view.template tape<Transposed>();
        auto& lane = view.lanes().vectors;
        tape.parts.clear();
        for (const auto& part : tape.cut) {
            const VectorBlock& block = lane[part.block];
            const MatrixView<const float> samples{block.data, block.head.n, block.head.dim, block.stride};
            VectorBlock& gradient = tape.parts.emplace_back(
                rows_in_memory(part.head, samples.columns_from(part.column, part.head.dim).data()));
            gradient.stride = block.stride;
        }
        lane.swap(tape.parts);
    }
    static void shape(EmbeddingCost& cost) {
        cost.vectors = std::move(cost.way.back());
        cost.way.pop_back();
    }
};

/// At a relay in G: the vectors of all features of the tower become one block a source, sample by sample, a sample's
/// features side by side in their order (Disaggregated Multi-Tower, section 3.1, step e). All blocks together are one
/// matrix, by source. Local; one pass, and rows that this rank has yet to look up go straight there.
template <Group G>
struct Transpose {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, RelayedVectors<G>>, TowerVectors<G>>;
    using Adjoint = Plan<CutSamples<Transpose>>;
    using Uses = boost::mp11::mp_list<Transpose>;
    static constexpr bool reads_state = true;
    static std::string name() { return "Transpose"; }

    struct Part {
        Head head;
        std::size_t block;  // of its source
        std::int64_t row;   // where the source begins
        std::int64_t column;
    };
    struct Tape {
        std::vector<Part> cut;  // (block of the lane)
        std::vector<VectorBlock> samples;
        std::vector<VectorBlock> parts;  // of the gradient
        Buffer<float> buffer;
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<Transpose>();
        tape.cut.clear();
        tape.samples.clear();
        const int tower = PeersOf<G>::index(env.topology, env.rank);
        const int width = lanes.towers->shapes[static_cast<std::size_t>(tower)].width();
        std::int64_t rows = 0;
        std::int64_t first_row = 0;        // of the source
        std::int64_t features_before = 0;  // columns of the source's features before this one
        for (const VectorBlock& block : lanes.vectors) {
            const Head& head = block.head;
            const TablePlacement& table = lanes.placement->table_of(head.feature);
            if (tape.samples.empty() || tape.samples.back().head.source != head.source) {
                tape.samples.push_back(rows_in_memory(
                    {.source = head.source, .owner = env.rank, .feature = tower, .shard = 0, .dim = width, .n = head.n},
                    nullptr));
                first_row = rows;
                rows += head.n;
                features_before = 0;
            } else if (head.feature != tape.cut.back().head.feature) {
                features_before += lanes.placement->table_of(tape.cut.back().head.feature).dim;
            }
            tape.cut.push_back(
                {.head = head,
                 .block = tape.samples.size() - 1,
                 .row = first_row,
                 .column = features_before + table.shards[static_cast<std::size_t>(head.shard)].columns.first});
        }
        const MatrixView<float> all{tape.buffer.on(*lanes.memory).resize(static_cast<std::size_t>(rows * width)).data(),
                                    rows, width};
        for (std::size_t i = 0; i < lanes.vectors.size(); ++i) {
            const Part& part = tape.cut[i];
            const MatrixView<float> source = all.rows_from(part.row, part.head.n);
            tape.samples[part.block].data = source.data();
            write_sums(lanes.vectors[i], source.columns_from(part.column, part.head.dim));
        }
        lanes.vectors = tape.samples;
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        for (const EmbeddingCost::Block& block : cost.vectors[static_cast<std::size_t>(rank)])
            elements += block.head.n * block.head.dim;
        tally.need(4 * elements);
    }
    static void shape(EmbeddingCost& cost) {
        EmbeddingCost::Blocks samples(cost.vectors.size());
        for (std::size_t rank = 0; rank < samples.size(); ++rank)
            for (const EmbeddingCost::Block& block : cost.vectors[rank]) {
                if (samples[rank].empty() || samples[rank].back().head.source != block.head.source) {
                    samples[rank].push_back({.head = block.head, .looked_up = true});
                    Head& head = samples[rank].back().head;
                    head.feature = PeersOf<G>::index(cost.topology(), static_cast<int>(rank));
                    head.shard = 0;
                } else {
                    samples[rank].back().head.dim += block.head.dim;
                }
            }
        cost.way.push_back(std::move(cost.vectors));
        cost.vectors = std::move(samples);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
