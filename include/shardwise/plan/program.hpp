// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A plan and its adjoint, flattened once into the list of segments that every reader walks.
///
/// A segment is a run of local steps that ends with the posts of at most one round. It ends at a post, and where there
/// is an adjoint a step that sees trained state never stands in the first one: the first segment of the next flight may
/// run before this flight's update.

namespace shardwise::inline SHARDWISE_ABI {

/// The head of every message of a plan; the receiver checks all of it.
struct Envelope {
    std::uint32_t flight = 0;
    std::uint8_t segment = 0;
    std::uint8_t error = 0;
    std::uint16_t digest = 0;  ///< of the program, and of all else that ranks have to agree on
    std::uint64_t bytes = 0;   ///< of the whole message
};

/// Which plan inside a plan a step stands in: the plan's number among the Branches of the one around, outermost first.
using BranchPath = std::vector<std::size_t>;

/// One step of a flattened plan.
struct Instruction {
    std::string name;
    BranchPath branch = {};              ///< empty on the plan itself
    std::vector<BranchPath> plans = {};  ///< a junction's
    const StepCalls* calls = nullptr;
    const StepCode* code = nullptr;
    std::size_t first_part = 0;  ///< of its view, among the parts of a frame

    /// How many parts its view has.
    [[nodiscard]] std::size_t parts() const noexcept {
        return 1 + calls->tapes.size() + calls->states.size() + plans.size();
    }
    /// Whom it crosses or names, on a topology.
    [[nodiscard]] Members group(const Topology& t) const {
        return calls->group == nullptr ? Members{} : calls->group(t);
    }
    [[nodiscard]] Members under(const Topology& t) const {
        return calls->under == nullptr ? Members{} : calls->under(t);
    }
};

/// Local steps, then the posts of one round.
struct Segment {
    std::vector<Instruction> local;
    std::vector<Instruction> posts;

    /// True when ranks `a` and `b` exchange a message in this segment's round.
    [[nodiscard]] bool exchanges(const Topology& topology, int a, int b) const;
};

/// The segments of a plan and of its adjoint, one list.
struct Program {
    std::vector<Segment> segments;
    std::size_t forward = 0;  ///< how many of them are the plan's own
    std::size_t parts = 0;    ///< of the views of all steps
    Digest digest;            ///< of its steps; its owner adds what else all ranks must agree on

    /// How many exchanges it has.
    [[nodiscard]] std::size_t posts() const noexcept;
    /// The sum of numbers, one an exchange in the order of the program, over those of the plan inside at `branch` and
    /// of all plans inside that; {} is all.
    [[nodiscard]] std::int64_t sum_of(const BranchPath& branch, std::span<const std::int64_t> by_post) const;
};

/// A plan as a list of values: a step, or junctions and the lines between them.
struct LineEntry {
    const StepCalls* step = nullptr;                         ///< of a Together: its fork
    const StepCalls* merge = nullptr;                        ///< of a Together; null: a step
    std::span<const std::span<const LineEntry>> plans = {};  ///< of a Together
};
/// A plan as a list of its steps.
using Line = std::span<const LineEntry>;

/// Flattens a plan and its adjoint, given as lines; backward, the Togethers of a line come in the opposite order.
/// Without an adjoint nothing is learnt. \param rename  what a step is called, for lines that serve several
/// compositions; empty: by its name
[[nodiscard]] Program make_program(Line plan, Line adjoint,
                                   const std::function<std::string(const Instruction&)>& rename = {});

namespace detail {

template <class Domain, class P>
struct LineOf;
template <class Domain, class S>
struct EntryOf {
    static constexpr LineEntry value{.step = &step_calls_of<Domain, S>, .merge = nullptr, .plans = {}};
};
template <class Domain, class Fork, class Merge, class... P>
struct EntryOf<Domain, Together<Fork, Merge, P...>> {
    static constexpr Line lines[sizeof...(P) + 1] = {LineOf<Domain, P>::entries()..., {}};
    static constexpr LineEntry value{
        .step = &step_calls_of<Domain, Fork>, .merge = &step_calls_of<Domain, Merge>, .plans = {lines, sizeof...(P)}};
};
template <class Domain, class... S>
struct LineOf<Domain, Plan<S...>> {
    static constexpr LineEntry all[sizeof...(S) + 1] = {EntryOf<Domain, S>::value..., {}};
    static constexpr Line entries() { return {all, sizeof...(S)}; }
};

/// The steps and junctions of P that keep a tape; those of the plans inside have tapes of their own.
template <class S>
struct StepsOf {
    using type = boost::mp11::mp_list<S>;
};
template <class Fork, class Merge, class... P>
struct StepsOf<Together<Fork, Merge, P...>> {
    using type = boost::mp11::mp_list<Fork, Merge>;
};
template <class P>
struct AllSteps;
template <class... S>
struct AllSteps<Plan<S...>> {
    using type = boost::mp11::mp_append<boost::mp11::mp_list<>, typename StepsOf<S>::type...>;
};
template <class S>
using HasTapeQ = std::bool_constant<HasTape<S>>;
template <class P>
using TapeSteps =
    boost::mp11::mp_copy_if<boost::mp11::mp_append<typename AllSteps<P>::type, typename AllSteps<Adjoint<P>>::type>,
                            HasTapeQ>;

/// For P and the plans inside it.
template <class P>
constexpr void check_tapes() {
    static_assert(
        boost::mp11::mp_is_set<TapeSteps<P>>::value,
        "a step that keeps a tape may stand only once in a plan, since tapes are found by type: give the second one a "
        "tag of its own");
    static_assert(boost::mp11::mp_size<Branches<P>>::value == boost::mp11::mp_size<Branches<Adjoint<P>>>::value,
                  "the adjoint of a step is a plan without Together: backward, the plans inside a plan are those of "
                  "its own Togethers");
    boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, Branches<P>>>(
        [](auto branch) { check_tapes<typename decltype(branch)::type>(); });
}

}  // namespace detail

/// P as a line, and its adjoint. `Domain` names the types that P's steps work on: Lanes, and Cost for the cost reader.
template <class Domain, class P>
[[nodiscard]] constexpr Line line_of() {
    detail::check_tapes<P>();
    return detail::LineOf<Domain, P>::entries();
}

/// Flattens P and its adjoint, or P alone. \tparam Learns  whether the adjoint is wanted
template <class Domain, class P, bool Learns = true>
[[nodiscard]] Program make_program() {
    if constexpr (Learns)
        return make_program(line_of<Domain, P>(), detail::LineOf<Domain, Adjoint<P>>::entries());
    else
        return make_program(line_of<Domain, P>(), {});
}

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/program.ipp"
#endif
