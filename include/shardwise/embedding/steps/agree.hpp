// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Errors made everybody's where no other exchange does it in time.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct AgreeTape;
struct AgreeFamily {
    using Tapes = boost::mp11::mp_list<AgreeTape>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, AgreeFamily);

/// An exchange of nothing but envelopes, by which ranks of a group learn each other's errors. Stands in plans whose ids
/// do not cross the world otherwise. One message a member, no payload.
template <Group G = World>
struct Agree {
    template <class Form>
    using Out = Form;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Agree>;
    using Crosses = G;
    using Family = AgreeFamily;
    using Tape = AgreeTape;
    static std::string name() { return concat({"Agree<", G::name(), ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/agree.ipp"
#endif
