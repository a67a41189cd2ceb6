// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/steps/lookup.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct LookupBody {
    using Tape = LookupTape;
    using View = shardwise::View<Lanes, LookupFamily::Tapes, LookupFamily::Sees>;

    static void run(StepEnv&, View& view) {
        Lanes& lanes = view.lanes();
        const Placement& placement = view.state<Placement>();
        const bool pooled = view.state<PlanPooling>().pooled;
        std::int64_t looked_up = 0;
        lanes.vectors.clear();
        for (const IdBlock& block : lanes.ids) {
            const int table = at(placement.features, block.head.feature).table;
            const ShardStore& shard =
                at(view.state<Store>().shards(), view.state<HeldShards>().slot(table, block.head.shard));
            VectorBlock& vectors = lanes.vectors.emplace_back();
            looked_up += block.ids;
            vectors.head = block.head;
            if (!pooled) vectors.head.n = block.ids;
            vectors.are = pooled ? VectorsAre::bag_sums : VectorsAre::table_rows;
            vectors.lookup = {.table = shard.weights.data(),
                              .dim = block.head.dim,
                              .bags = block.head.n,
                              .ids = block.ids,
                              .lengths = block.lengths,
                              .rows = block.rows,
                              .weights = block.weights,
                              .out = nullptr};
        }
        view.state<LookedUpRows>().rows.fetch_add(looked_up, std::memory_order_relaxed);
        view.tape<LookupTape>().ids.swap(lanes.ids);
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        cost.trail.clear();
        cost.vectors.assign(static_cast<std::size_t>(cost.ranks()), {});
        for (int owner = 0; owner < cost.ranks(); ++owner)
            cost.for_sources(owner, [&](int source) {
                for (const BlockPlace& place : cost.placement->owned_by(owner)) {
                    const auto block = static_cast<std::size_t>(cost.placement->block_index(place));
                    const Head head{.source = source,
                                    .owner = owner,
                                    .feature = place.feature,
                                    .shard = place.shard,
                                    .dim = cost.placement->shard(place).columns.count};
                    at(cost.vectors, owner)
                        .push_back({.head = head, .n = cost.rows_of(source, block), .looked_up = false});
                }
            });
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, LookupFamily) {
    return code_from<EmbeddingDomain, detail::LookupBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
