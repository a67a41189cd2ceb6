// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/embedding/steps/parameters.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

struct NothingBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View&) {}
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, NothingFamily) {
    return code_from<EmbeddingDomain, detail::NothingBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
