// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/plan/instruction.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A plan and its adjoint, flattened once into the list of segments that every reader walks.
///
/// A segment is a run of local steps that ends with the posts of at most one flush. It ends at a post, and a step that
/// reads state never stands in the first one: the first segment of the next flight may run before this flight's update.

namespace shardwise::inline SHARDWISE_ABI {

/// The head of every message of a plan; the receiver checks all of it.
struct Envelope {
    std::uint32_t flight = 0;
    std::uint8_t segment = 0;
    std::uint8_t error = 0;
    std::uint16_t digest = 0;  ///< of the program, and of all else that ranks have to agree on
    std::uint64_t bytes = 0;   ///< of the whole message
};

/// Local steps, then the posts of one flush.
struct Segment {
    std::vector<Instruction> local;
    std::vector<Instruction> posts;
};

/// The segments of a plan and of its adjoint, one list.
struct Program {
    std::vector<Segment> segments;
    std::size_t forward = 0;  ///< how many of them are the plan's own
    std::size_t parts = 0;    ///< of the views of all steps
    Digest digest;            ///< of its steps; its owner adds what else all ranks must agree on

    /// True when rank `me` and `peer` exchange a message in the flush of `segment`.
    [[nodiscard]] static bool exchanges(const Segment& segment, const Topology& topology, int me, int peer) {
        if (me == peer) return false;
        for (const Instruction& post : segment.posts)
            if (post.calls->exchange->exchanges(topology, me, peer)) return true;
        return false;
    }
};

namespace detail {

/// A plan as a list of values: a step, or the lines of a Together.
struct LineEntry {
    const StepCalls* calls;                                ///< null: a Together
    std::span<const std::span<const LineEntry>> branches;  ///< of a Together
};

template <class Domain, class P>
struct Line;
template <class Domain, class S>
struct EntryOf {
    static constexpr LineEntry value{.calls = &step_calls_of<Domain, S>, .branches = {}};
};
template <class Domain, class... B>
struct EntryOf<Domain, Together<B...>> {
    static constexpr std::span<const LineEntry> lines[] = {Line<Domain, B>::entries()...};
    static constexpr LineEntry value{.calls = nullptr, .branches = lines};
};
template <class Domain, class... S>
struct Line<Domain, Plan<S...>> {
    static constexpr std::size_t count = sizeof...(S);
    static constexpr LineEntry all[count + 1] = {EntryOf<Domain, S>::value..., {.calls = nullptr, .branches = {}}};
    static constexpr std::span<const LineEntry> entries() { return {all, count}; }
};

/// The steps of P that keep a tape; those of branches are in lines of their own.
template <class S>
concept HasTape = requires {
    typename S::Tape;
};
template <class S>
using HasTapeQ = std::bool_constant<HasTape<S>>;
template <class S>
using IsTogether = std::bool_constant<is_together<S>>;
template <class P>
using TapeSteps =
    boost::mp11::mp_copy_if<boost::mp11::mp_rename<boost::mp11::mp_append<P, Adjoint<P>>, boost::mp11::mp_list>,
                            HasTapeQ>;

/// Appends the steps of a line to `segments`, whose last one is open.
inline void flatten(std::vector<Segment>& segments, const BranchPath& branch, std::span<const LineEntry> line);

inline void flatten_together(std::vector<Segment>& segments, const BranchPath& branch,
                             std::span<const std::span<const LineEntry>> branches) {
    std::vector<std::vector<Segment>> parts;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < branches.size(); ++i) {
        BranchPath inner = branch;
        inner.push_back(i);
        flatten(parts.emplace_back(1), inner, branches[i]);
        longest = std::max(longest, parts.back().size());
    }
    for (std::size_t i = 0; i < longest; ++i) {
        if (i != 0) segments.emplace_back();
        for (auto& part : parts) {
            if (i >= part.size()) continue;
            auto& local = segments.back().local;
            local.insert(local.end(), part[i].local.begin(), part[i].local.end());
            auto& posts = segments.back().posts;
            posts.insert(posts.end(), part[i].posts.begin(), part[i].posts.end());
        }
    }
}

inline void flatten(std::vector<Segment>& segments, const BranchPath& branch, std::span<const LineEntry> line) {
    for (const LineEntry& entry : line) {
        if (entry.calls == nullptr) {
            flatten_together(segments, branch, entry.branches);
            continue;
        }
        Instruction instruction{.name = entry.calls->name(), .branch = branch, .calls = entry.calls, .first_part = 0};
        if (entry.calls->reads_state && segments.size() == 1) segments.emplace_back();
        if (entry.calls->exchange != nullptr) {
            segments.back().posts.push_back(std::move(instruction));
            segments.emplace_back();
        } else {
            segments.back().local.push_back(std::move(instruction));
        }
    }
}

inline Program make_program(std::span<const LineEntry> plan, std::span<const LineEntry> adjoint) {
    Program program;
    for (const auto& line : {plan, adjoint}) {
        std::vector<Segment> segments(1);
        flatten(segments, {}, line);
        program.forward = program.segments.size();  // ends as the number of the plan's own
        for (Segment& segment : segments)
            program.segments.push_back(std::move(segment));
    }
    SHARDWISE_ASSERT(program.segments.size() <= std::numeric_limits<decltype(Envelope::segment)>::max());
    for (Segment& segment : program.segments) {
        for (std::vector<Instruction>* steps : {&segment.local, &segment.posts}) {
            for (Instruction& step : *steps) {
                step.first_part = program.parts;
                program.parts += 1 + step.calls->tapes.size();
                program.digest.add(step.name);
            }
        }
        program.digest.add(static_cast<std::int64_t>(segment.posts.size()));
    }
    return program;
}

/// For P and the plans of its branches.
template <class P>
constexpr void check_tapes() {
    static_assert(boost::mp11::mp_count_if<boost::mp11::mp_rename<P, boost::mp11::mp_list>, IsTogether>::value <= 1,
                  "a plan has at most one Together, whose branches have lanes and tapes of their own: put all branches "
                  "into one");
    static_assert(
        boost::mp11::mp_is_set<TapeSteps<P>>::value,
        "a step that keeps a tape may stand only once in a plan, since tapes are found by type: give the second one a "
        "tag of its own");
    boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, Branches<P>>>(
        [](auto branch) { check_tapes<typename decltype(branch)::type>(); });
}

}  // namespace detail

/// Flattens P and its adjoint. `Domain` names the types that P's steps work on: Lanes, and Cost for the cost reader.
template <class Domain, class P>
[[nodiscard]] Program make_program() {
    detail::check_tapes<P>();
    return detail::make_program(detail::Line<Domain, P>::entries(), detail::Line<Domain, Adjoint<P>>::entries());
}

}  // namespace shardwise::inline SHARDWISE_ABI
