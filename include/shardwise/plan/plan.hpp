// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"

/// \file
/// A plan is a type: a straight line of steps. Its backward plan is derived by reversal.

namespace shardwise::inline SHARDWISE_ABI {

/// Steps in the order in which they run. A step is a stateless type with
/// - `static std::string name()`,
/// - `template <class Form> using Out`: the form of the lanes after it, none where it does not fit,
/// - `Adjoint`: a Plan, empty for steps that move only ids,
/// - `Uses`: an mp_list of the steps whose tapes it sees (itself among them when it keeps one), and `Tape` when it
/// does,
/// - `reads_state`: true when it reads what an update of another flight may change,
/// - either `run(Env&, View&)`, or the members of an exchange (see instruction.hpp),
/// - `shape(Cost&, ...)` for the cost reader, and `memory(const Cost&, rank, MemoryTally&)` when it keeps buffers: what
///   each of them needs, in a fixed order; called before `shape`.
template <class... Steps>
struct Plan {};

namespace detail {

template <class P>
struct AdjointOf;
template <class... Steps>
struct AdjointOf<Plan<Steps...>> {
    using reversed = boost::mp11::mp_reverse<boost::mp11::mp_list<typename Steps::Adjoint...>>;
    using type = boost::mp11::mp_apply<boost::mp11::mp_append, boost::mp11::mp_push_front<reversed, Plan<>>>;
};

}  // namespace detail

/// The backward plan: the adjoints of the steps, in reverse order.
template <class P>
using Adjoint = typename detail::AdjointOf<P>::type;

/// Plans spliced one after the other.
template <class... Plans>
using Splice = boost::mp11::mp_append<Plan<>, Plans...>;

/// A step that runs plans side by side, each on lanes of its own; their flushes leave together, one message a peer.
/// At most one in a plan.
template <class... Branches>
struct Together {
    using Adjoint = Plan<Together<shardwise::Adjoint<Branches>...>>;
    static std::string name() { return "Together"; }
};

namespace detail {

template <class S>
struct BranchesOf {
    using type = boost::mp11::mp_list<>;
};
template <class... Branches>
struct BranchesOf<Together<Branches...>> {
    using type = boost::mp11::mp_list<Branches...>;
};
template <class P>
struct BranchesOfPlan;
template <class... Steps>
struct BranchesOfPlan<Plan<Steps...>> {
    using type = boost::mp11::mp_append<boost::mp11::mp_list<>, typename BranchesOf<Steps>::type...>;
};
template <class S>
inline constexpr bool is_together = false;
template <class... Branches>
inline constexpr bool is_together<Together<Branches...>> = true;

}  // namespace detail

/// The plans that run side by side in P: an mp_list, empty without Together.
template <class P>
using Branches = typename detail::BranchesOfPlan<P>::type;

}  // namespace shardwise::inline SHARDWISE_ABI
