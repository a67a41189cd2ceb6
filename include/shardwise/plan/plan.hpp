// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
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
/// - `Uses`: an mp_list of the steps whose tapes it sees (itself among them when it keeps one, a `Tape`),
/// - `Sees`, where it has any: an mp_list of the states that it reads or writes (see view.hpp),
/// - a local step has `run(StepEnv&, View&)`; it may name a group as `In`;
/// - an exchange has the group that it `Crosses` and `begin(StepEnv&, View&)`, which returns an Exchange (see
/// step.hpp),
/// - `shape(const CostEnv&, Cost&, ...)` for the cost reader, and `memory(const CostEnv&, const Cost&, rank,
///   MemoryTally&)` when it keeps buffers: what each of them needs, in a fixed order; called before `shape`.
///
/// Where many steps have one body, they name it as their `Family`, whose code is compiled once (see step.hpp).
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

/// Plans side by side, each on lanes and tapes of its own, between two junctions: `Fork` hands each of them its part of
/// what the plan around works on, `Merge` brings together what they made. Their rounds leave together, one message a
/// rank. May stand in a plan several times, and in a plan inside.
///
/// A junction is a local step whose view shows the lanes around as `lanes()` and those of the i-th plan as `branch(i)`.
/// Of a fork, `Out<Form>` is the form that each plan starts with; of a merge, `Out<Forms...>` the form behind it, given
/// those in which the plans end. `Adjoint` is a junction: backward, a merge's forks and a fork's merges. Its cost is
/// `shape(const CostEnv&, Cost& around, std::span<Cost* const> branches)`.
template <class Fork, class Merge, class... Plans>
struct Together {
    using Adjoint = Plan<Together<typename Merge::Adjoint, typename Fork::Adjoint, shardwise::Adjoint<Plans>...>>;
};

namespace detail {

template <class S>
inline constexpr bool is_together = false;
template <class Fork, class Merge, class... Plans>
inline constexpr bool is_together<Together<Fork, Merge, Plans...>> = true;

template <class S>
struct PlansOf {
    using type = boost::mp11::mp_list<>;
};
template <class Fork, class Merge, class... Plans>
struct PlansOf<Together<Fork, Merge, Plans...>> {
    using type = boost::mp11::mp_list<Plans...>;
};
template <class P>
struct BranchesOf;
template <class... Steps>
struct BranchesOf<Plan<Steps...>> {
    using type = boost::mp11::mp_append<boost::mp11::mp_list<>, typename PlansOf<Steps>::type...>;
};

}  // namespace detail

/// The plans inside P, those of its first Together first: an mp_list. Their numbers in it are their branches'.
template <class P>
using Branches = typename detail::BranchesOf<P>::type;

}  // namespace shardwise::inline SHARDWISE_ABI
