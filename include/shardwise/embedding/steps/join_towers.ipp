// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/at.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/steps/join_towers.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct JoinTowersBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View& view) {
        const Lanes& lanes = view.lanes();
        for (const VectorBlock& block : lanes.vectors) {
            const MatrixView<float>& out = at(lanes.output, block.head.feature);
            block.write(out.data(), out.stride());
        }
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}
};

struct CutTowersBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View& view) {
        Lanes& lanes = view.lanes();
        lanes.vectors.clear();
        for (const Head& head : lanes.home) {
            const MatrixView<const float>& gradient = at(lanes.gradient, head.feature);
            lanes.vectors.emplace_back(rows_in_memory(head, gradient.data())).stride = gradient.stride();
        }
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, JoinTowersFamily) {
    return code_from<EmbeddingDomain, detail::JoinTowersBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTowersFamily) {
    return code_from<EmbeddingDomain, detail::CutTowersBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
