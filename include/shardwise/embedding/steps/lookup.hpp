// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/steps/group_rows.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// Ids and rows to vectors.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct LookupFamily {
    using Tapes = boost::mp11::mp_list<LookupTape>;
    using Sees = boost::mp11::mp_list<const Store, const Placement, const HeldShards, const PlanPooling, LookedUpRows>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, LookupFamily);

/// Says for every block of ids what to look up in the shard that holds its rows. Whoever reads the vectors does it,
/// straight into a message or the result: each row that an id names is read once, in order. Local. Owners know sums of
/// rows, and rows: a mean is divided where the samples are.
template <bool Pooled>
struct Lookup {
    template <class Form>
    using Out = typename detail::LookedUp<Form, Pooled>::type;
    using Adjoint = Plan<GroupRows<Lookup>>;
    using Uses = boost::mp11::mp_list<Lookup>;
    using Sees = LookupFamily::Sees;
    using Family = LookupFamily;
    using Tape = LookupTape;
    static std::string name() { return Pooled ? "Lookup<sum>" : "Lookup<none>"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/lookup.ipp"
#endif
