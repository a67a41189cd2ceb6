// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
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
            lanes.clear_batch();
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

    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const auto& batch = cost.batch(rank);
        tally_split<typename Cost::Number>(
            *cost.placement, *cost.pooling, batch, batch.weighted(), [](int) { return true; }, tally);
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        count_blocks(cost);
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SplitFamily) {
    return code_from<EmbeddingDomain, detail::SplitBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
