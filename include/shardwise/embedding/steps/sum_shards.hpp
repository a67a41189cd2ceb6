// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Partial sums of bags whose rows are split, summed at a relay before they travel on.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct SumShardsTape;
struct SumShardsFamily {
    using Tapes = boost::mp11::mp_list<SumShardsTape>;
    using Sees = boost::mp11::mp_list<const Store, const WorkMemory>;
};
struct ShareGradientsFamily {
    using Tapes = boost::mp11::mp_list<SumShardsTape>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SumShardsFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ShareGradientsFamily);

/// The adjoint of SumShards: every part of a sum gets the gradient of the sum. Local; copies no number.
template <class Summed>
struct ShareGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Summed>;
    using Family = ShareGradientsFamily;
    static std::string name() { return "ShareGradients"; }
};

/// At a relay: the partial sums of a bag that came from inside G, summed along the tree, become one block, which has
/// the number of the first shard. So a bag crosses the rest of its way once. Local.
template <Group G>
struct SumShards {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, RelayedVectors<G>>, Form>;
    using Adjoint = Plan<ShareGradients<SumShards>>;
    using Uses = boost::mp11::mp_list<SumShards>;
    using In = G;
    using Sees = SumShardsFamily::Sees;
    using Family = SumShardsFamily;
    using Tape = SumShardsTape;
    static std::string name() { return concat({"SumShards<", G::name(), ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/sum_shards.ipp"
#endif
