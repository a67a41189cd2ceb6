// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/steps/owner_split.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct OwnerSplitBody {
    using Tape = SplitTape;
    using View = shardwise::View<Lanes, OwnerSplitFamily::Tapes, OwnerSplitFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        SplitTape& tape = view.tape<SplitTape>();
        const Placement& placement = view.state<Placement>();
        tape.of.resize(static_cast<std::size_t>(placement.home.size));
        lanes.ids.clear();
        lanes.home.clear();
        for (int number = 0; number < placement.home.size; ++number) {
            const int source = placement.home.member(env.rank, number);
            BatchShare& share = at(lanes.shares, source);
            SplitTape& part = at(tape.of, number);
            Splitter work{placement, view.state<PlanPooling>(), *view.state<WorkMemory>().resource, source, share.batch,
                          part};
            if (const std::string wrong = work.split(); !wrong.empty()) {
                share.wrong = wrong;
                env.error.note(FlightError::bad_input, wrong);
                share.batch.clear();
                static_cast<void>(work.split());
            }
            for (const BlockPlace& place : placement.owned_by(env.rank))
                lanes.ids.push_back(part.block(placement, place.feature, place.shard));
            if (source != env.rank) continue;
            for (const IdBlock& block : part.blocks)
                lanes.home.push_back(block.head);
        }
        lanes.keep_share(env.rank);
    }

    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const Placement& placement = *cost.placement;
        bool weighted = false;
        for (int source = 0; source < cost.ranks(); ++source)
            weighted |= cost.batch(source).weighted();
        cost.for_sources(rank, [&](int source) {
            tally_split<typename Cost::Number>(
                placement, *cost.pooling, cost.batch(source), weighted,
                [&](int feature) { return cost.is_given(rank, feature); }, tally);
        });
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        count_blocks(cost);
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, OwnerSplitFamily) {
    return code_from<EmbeddingDomain, detail::OwnerSplitBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
