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
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// A tower's module as a step, and its results at home.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Samples that a rank relays, by the cost reader's lane.
[[nodiscard]] inline std::int64_t rows_of(const std::vector<EmbeddingCost::Block>& lane) {
    std::int64_t rows = 0;
    for (const EmbeddingCost::Block& block : lane)
        rows += block.head.n;
    return rows;
}
}  // namespace detail

/// The adjoint of Apply: the module's backward pass. The gradients of its parameters are those of the samples that this
/// rank relays; they are to be summed inside the tower. Local.
template <class Applied>
struct ApplyGradient {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ApplyGradient, Applied>;
    using Module = typename Applied::Module;
    static constexpr bool reads_state = true;
    static std::string name() { return "ModuleGradients"; }

    struct Tape {
        Buffer<float> gradient;  // of the results, gathered
        Buffer<float> through;   // of the inputs
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<ApplyGradient>();
        auto& forward = view.template tape<Applied>();
        const std::size_t tower = Applied::tower(env.topology, env.rank);
        const int columns = lanes.towers->outputs[tower];
        const int width = lanes.towers->shapes[tower].width();
        const std::int64_t rows = forward.rows;
        const MatrixView<float> gradient{
            tape.gradient.on(*lanes.memory).resize(static_cast<std::size_t>(rows * columns)).data(), rows, columns};
        const MatrixView<float> through{
            tape.through.on(*lanes.memory).resize(static_cast<std::size_t>(rows * width)).data(), rows, width};
        std::int64_t row = 0;
        for (const VectorBlock& block : lanes.vectors) {
            block.write(gradient.rows_from(row, block.head.n).data(), columns);
            row += block.head.n;
        }
        static_cast<Module*>(lanes.towers->module.get())->backward(forward.work, gradient, through, *lanes.memory);
        row = 0;
        for (VectorBlock& block : lanes.vectors) {
            block.head.dim = width;
            block.data = through.rows_from(row, block.head.n).data();
            block.stride = width;
            row += block.head.n;
        }
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const std::size_t tower = Applied::tower(cost.topology(), rank);
        const std::int64_t rows = detail::rows_of(cost.vectors[static_cast<std::size_t>(rank)]);
        tally.need(4 * rows * cost.towers->outputs[tower]);
        tally.need(4 * rows * cost.towers->shapes[tower].width());
    }
    static void shape(EmbeddingCost& cost) {
        cost.vectors = std::move(cost.way.back());
        cost.way.pop_back();
    }
};

/// At a relay in G: the module of its tower on the vectors of all samples that it relays. What travels on is the
/// module's result. Local; the module's operations.
template <Group G, TowerModule M>
struct Apply {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, TowerVectors<G>>, ModuleVectors<G>>;
    using Adjoint = Plan<ApplyGradient<Apply>>;
    using Uses = boost::mp11::mp_list<Apply>;
    using Module = M;
    static constexpr bool reads_state = true;
    static std::string name() { return std::string{"Apply<"} + M::name + ">"; }

    struct Tape {
        typename M::Work work;
        Buffer<float> result;
        std::int64_t rows = 0;
    };

    static std::size_t tower(const Topology& topology, int rank) {
        return static_cast<std::size_t>(PeersOf<G>::index(topology, rank));
    }

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<Apply>();
        const std::size_t mine = tower(env.topology, env.rank);
        const int columns = lanes.towers->outputs[mine];
        tape.rows = 0;
        for (const VectorBlock& block : lanes.vectors)
            tape.rows += block.head.n;
        const MatrixView<const float> in{lanes.vectors.front().data, tape.rows, lanes.towers->shapes[mine].width()};
        const MatrixView<float> out{
            tape.result.on(*lanes.memory).resize(static_cast<std::size_t>(tape.rows * columns)).data(), tape.rows,
            columns};
        static_cast<M*>(lanes.towers->module.get())->forward(in, tape.work, out, *lanes.memory);
        std::int64_t row = 0;
        for (VectorBlock& block : lanes.vectors) {
            block.head.dim = columns;
            block.data = out.rows_from(row, block.head.n).data();
            block.stride = columns;
            row += block.head.n;
        }
        // the samples' ranks expect as much: one block from each tower
        const std::int64_t samples = lanes.batch->samples();
        lanes.home.clear();
        for (int t = 0; t < static_cast<int>(lanes.towers->outputs.size()); ++t)
            lanes.home.push_back({.source = env.rank,
                                  .owner = PeersOf<G>::member(env.topology, env.rank, t),
                                  .feature = t,
                                  .shard = 0,
                                  .dim = lanes.towers->outputs[static_cast<std::size_t>(t)],
                                  .n = samples});
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const std::size_t mine = tower(cost.topology(), rank);
        const std::int64_t rows = detail::rows_of(cost.vectors[static_cast<std::size_t>(rank)]);
        tally.need(4 * rows * cost.towers->outputs[mine]);
        M::work_bytes(*static_cast<const typename M::Config*>(cost.towers->config), cost.towers->shapes[mine], rows,
                      tally);
    }
    static void shape(EmbeddingCost& cost) {
        EmbeddingCost::Blocks before = cost.vectors;
        for (int rank = 0; rank < cost.ranks(); ++rank)
            for (EmbeddingCost::Block& block : cost.vectors[static_cast<std::size_t>(rank)])
                block.head.dim = cost.towers->outputs[tower(cost.topology(), rank)];
        cost.way.push_back(std::move(before));
    }
};

/// The adjoint of JoinTowers: each tower gets its columns of the gradient. Local; copies no number.
struct CutTowers {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<>;
    static constexpr bool reads_state = false;
    static std::string name() { return "CutTowers"; }

    template <class V>
    static void run(StepEnv&, V& view) {
        Lanes& lanes = view.lanes();
        lanes.vectors.clear();
        for (const Head& head : lanes.home) {
            const MatrixView<const float>& gradient = (*lanes.gradient)[static_cast<std::size_t>(head.feature)];
            lanes.vectors.emplace_back(rows_in_memory(head, gradient.data())).stride = gradient.stride();
        }
    }
    static void shape(EmbeddingCost&) {}
};

/// At home: the results of all towers side by side, where the user reads them. Local; one pass.
struct JoinTowers {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, HomeTowers>, Outputs>;
    using Adjoint = Plan<CutTowers>;
    using Uses = boost::mp11::mp_list<>;
    static constexpr bool reads_state = false;
    static std::string name() { return "JoinTowers"; }

    template <class V>
    static void run(StepEnv&, V& view) {
        const Lanes& lanes = view.lanes();
        for (const VectorBlock& block : lanes.vectors) {
            const MatrixView<float>& out = (*lanes.output)[static_cast<std::size_t>(block.head.feature)];
            block.write(out.data(), out.stride());
        }
    }
    static void shape(EmbeddingCost&) {}
};

}  // namespace shardwise::inline SHARDWISE_ABI
