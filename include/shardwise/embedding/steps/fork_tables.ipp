// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/steps/fork_tables.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct ForkTablesBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>, ForkTablesFamily::Sees>;
    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        const auto& plans = view.state<FeaturesByPlan>().features;
        for (std::size_t p = 0; p < plans.size(); ++p) {
            Lanes& inside = view.branch(p);
            inside.batch.select(lanes.batch, plans[p]);
            inside.share_as(lanes);
            for (std::size_t rank = 0; rank < lanes.shares.size(); ++rank)
                inside.shares[rank].batch.select(lanes.shares[rank].batch, plans[p]);
            inside.output.clear();
            for (const int feature : plans[p])
                inside.output.push_back(at(lanes.output, feature));
        }
        lanes.keep_share(env.rank);
    }
    static void shape(const CostEnv&, EmbeddingCost& cost, std::span<EmbeddingCost* const> plans) {
        for (std::size_t p = 0; p < plans.size(); ++p) {
            plans[p]->batches.clear();
            for (const BatchView& batch : cost.batches) {
                BatchView& inside = plans[p]->batches.emplace_back();
                inside.select(batch, cost.features->features[p]);
                if (!plans[p]->pooling->pooled) inside.drop_weights();
            }
        }
    }
    static void shape(const CostEnv&, EmbeddingExpectation& cost, std::span<EmbeddingExpectation* const> plans) {
        for (EmbeddingExpectation* const plan : plans)
            plan->begin(*cost.workload);
    }
};

struct MergeTablesBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View&) {}
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

struct CutTablesBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>, CutTablesFamily::Sees>;
    static void run(StepEnv&, View& view) {
        const auto& plans = view.state<FeaturesByPlan>().features;
        for (std::size_t p = 0; p < plans.size(); ++p) {
            auto& inside = view.branch(p).gradient;
            inside.clear();
            auto& squares = view.branch(p).squares;
            squares.clear();
            for (const int feature : plans[p]) {
                inside.push_back(at(view.lanes().gradient, feature));
                squares.push_back(view.lanes().squares_of(feature));
            }
        }
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ForkTablesFamily) {
    return code_from<EmbeddingDomain, detail::ForkTablesBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, MergeTablesFamily) {
    return code_from<EmbeddingDomain, detail::MergeTablesBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTablesFamily) {
    return code_from<EmbeddingDomain, detail::CutTablesBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
