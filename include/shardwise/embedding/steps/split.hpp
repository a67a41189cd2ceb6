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
#include "shardwise/embedding/steps/splitter.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The first step of every plan of embedding tables: ids to the shards of their rows.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct SplitFamily {
    using Tapes = boost::mp11::mp_list<SplitTape>;
    using Sees = boost::mp11::mp_list<const Placement, const PlanPooling, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SplitFamily);

/// Cuts every feature's bags by shard, checks every id and weight, and copies what later steps need, so that the user's
/// batch is free once the ids have left. A shard is told of the bags that have an id there, and of no others, unless
/// relays need them all. Local; two passes over the ids where S splits rows, one otherwise.
/// Bad input is noted in the flight's error, and the batch is replaced by one without samples.
template <class S>
struct Split {
    using Home = HomeOf<S>;
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>,
                                 std::conditional_t<std::is_same_v<Home, Self>, OwnedIds<Self>, ShardIds<Home>>>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Split>;
    using Sees = SplitFamily::Sees;
    using Family = SplitFamily;
    using Tape = SplitTape;
    static std::string name() { return concat({"Split<", std::string{S::name}, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/split.ipp"
#endif
