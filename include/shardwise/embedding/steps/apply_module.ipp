// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/steps/apply_module.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct ModuleTape {
    std::unique_ptr<ModuleWork> work;  // made once
    Buffer<float> result;
    std::int64_t rows = 0;
};
struct ModuleGradientsTape {
    Buffer<float> gradient;  // of the results, gathered
    Buffer<float> through;   // of the inputs
};

namespace detail {

/// The number of a rank's tower, its tower being env.group.
template <class Env>
int tower_in(const Env& env, int rank) {
    return env.group.peers(env.topology.ranks()).index(rank);
}

struct ApplyBody {
    using Tape = ModuleTape;
    using View = shardwise::View<Lanes, ApplyFamily::Tapes, ApplyFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<ModuleTape>();
        TowerModules& towers = view.state<TowerModules>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        const int mine = tower_in(env, env.rank);
        const int columns = at(towers.outputs, mine);
        tape.rows = 0;
        for (const VectorBlock& block : lanes.vectors)
            tape.rows += block.head.n;
        const MatrixView<const float> in{lanes.vectors.front().data, tape.rows, at(towers.shapes, mine).width()};
        const MatrixView<float> out{tape.result.on(memory).resize(static_cast<std::size_t>(tape.rows * columns)).data(),
                                    tape.rows, columns};
        if (tape.work == nullptr) tape.work = towers.module->make_work();
        towers.module->forward(in, *tape.work, out, memory);
        std::int64_t row = 0;
        for (VectorBlock& block : lanes.vectors) {
            block.head.dim = columns;
            block.data = out.rows_from(row, block.head.n).data();
            block.stride = columns;
            row += block.head.n;
        }
        // the samples' ranks expect as many: one block from each tower
        const Members peers = env.group.peers(env.topology.ranks());
        lanes.home.clear();
        for (int t = 0; t < static_cast<int>(towers.outputs.size()); ++t)
            lanes.home.push_back({.source = env.rank,
                                  .owner = peers.member(env.rank, t),
                                  .feature = t,
                                  .shard = 0,
                                  .dim = at(towers.outputs, t),
                                  .n = lanes.batch.samples()});
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const int mine = tower_in(env, rank);
        const std::int64_t rows = rounded_up(cost.vector_rows(rank));
        tally.need(4 * rows * at(cost.towers->outputs, mine));
        cost.towers->policy->work_bytes(at(cost.towers->shapes, mine), rows, tally);
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost) {
        typename Cost::Blocks next = cost.vectors;
        for (int rank = 0; rank < cost.ranks(); ++rank)
            for (auto& block : at(next, rank))
                block.head.dim = at(cost.towers->outputs, tower_in(env, rank));
        cost.step_on(std::move(next));
    }
};

struct ModuleGradientsBody {
    using Tape = ModuleGradientsTape;
    using View = shardwise::View<Lanes, ModuleGradientsFamily::Tapes, ModuleGradientsFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<ModuleGradientsTape>();
        ModuleTape& forward = view.tape<ModuleTape>();
        TowerModules& towers = view.state<TowerModules>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        const int mine = tower_in(env, env.rank);
        const int columns = at(towers.outputs, mine);
        const int width = at(towers.shapes, mine).width();
        const std::int64_t rows = forward.rows;
        const MatrixView<float> gradient{
            tape.gradient.on(memory).resize(static_cast<std::size_t>(rows * columns)).data(), rows, columns};
        const MatrixView<float> through{tape.through.on(memory).resize(static_cast<std::size_t>(rows * width)).data(),
                                        rows, width};
        std::int64_t row = 0;
        for (const VectorBlock& block : lanes.vectors) {
            block.write(gradient.rows_from(row, block.head.n).data(), columns);
            row += block.head.n;
        }
        towers.module->backward(*forward.work, gradient, through, memory);
        row = 0;
        for (VectorBlock& block : lanes.vectors) {
            block.head.dim = width;
            block.data = through.rows_from(row, block.head.n).data();
            block.stride = width;
            row += block.head.n;
        }
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const int mine = tower_in(env, rank);
        const std::int64_t rows = rounded_up(cost.vector_rows(rank));
        tally.need(4 * rows * at(cost.towers->outputs, mine));
        tally.need(4 * rows * at(cost.towers->shapes, mine).width());
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        cost.step_back();
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ApplyFamily) {
    return code_from<EmbeddingDomain, detail::ApplyBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ModuleGradientsFamily) {
    return code_from<EmbeddingDomain, detail::ModuleGradientsBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
