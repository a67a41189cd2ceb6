// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// A plan and its adjoint, flattened once into the list of segments that every reader walks.
///
/// A segment is a run of local steps that ends with the posts of at most one flush. It ends at a post, and a step that
/// reads state never stands in the first one: the first segment of the next flight may run before this flight's update.

namespace shardwise::inline SHARDWISE_ABI {

/// The head of every message of a plan; the receiver checks all of it.
struct Envelope {
    std::uint32_t flight = 0;
    std::uint16_t segment = 0;
    std::uint16_t error = 0;
    std::uint64_t bytes = 0;  ///< of the whole message
};

/// The first error of a flight on this rank; travels as a word in every flush.
class FlightError {
  public:
    static constexpr std::uint16_t bad_input = 1;

    /// Remembers the first error; later ones are consequences.
    void note(std::uint16_t kind, const std::string& text) {
        if (word_ == 0) text_ = text;
        word_ = static_cast<std::uint16_t>(word_ | kind);
    }
    void clear() noexcept {
        word_ = 0;
        text_.clear();
    }
    [[nodiscard]] std::uint16_t word() const noexcept { return word_; }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::uint16_t word_ = 0;
    std::string text_;
};

/// What every step may know about where it runs.
struct StepEnv {
    int rank = 0;
    Topology topology;
    FlightError error;
};

/// The bytes of a step's part of a message.
struct PartSize {
    static constexpr std::int64_t unknown = -1;
    std::int64_t payload = 0;
    std::int64_t control = 0;
};

/// The members of an exchange step, on a frame whose type is forgotten. `P` is the step:
/// - `Crosses`: the Group whose members exchange, each with each other;
/// - `begin(env, view)`: before the sizes are asked for;
/// - `size(env, view, peer) -> PartSize` and `pack(env, view, peer, ByteWriter&)`: my part of the message to `peer`;
/// - `expected(env, view, peer)`: the bytes of the peer's part, or PartSize::unknown;
/// - `unpack(env, view, peer, ByteReader&)`, in ascending order of peers; `end(env, view)`.
struct ExchangeCalls {
    int reach;  ///< 1: inside groups, 2: across them, 3: both
    bool (*exchanges)(const Topology&, int me, int peer);
    void (*begin)(void*, StepEnv&);
    PartSize (*size)(void*, StepEnv&, int peer);
    void (*pack)(void*, StepEnv&, int peer, ByteWriter&);
    std::int64_t (*expected)(void*, StepEnv&, int peer);
    void (*unpack)(void*, StepEnv&, int peer, ByteReader&);
    void (*end)(void*, StepEnv&);
};

/// The cost reader's counterpart of a frame: what it knows of all ranks, for the plan and each of its branches.
template <class Cost>
struct CostTree {
    Cost own;
    std::vector<CostTree> branches;
};

/// One step of the flattened plan, its frame type forgotten: all readers work on these.
struct Instruction {
    std::string name;
    std::string branch;                                        ///< "" on the trunk, "0", "1", "0.1" in branches
    void (*run)(void* frame, StepEnv&) = nullptr;              ///< local steps
    const ExchangeCalls* exchange = nullptr;                   ///< exchanges
    void (*shape)(void* cost_tree, TrafficMatrix&) = nullptr;  ///< the cost reader's step
    void (*memory)(void* cost_tree, int rank, MemoryTally&) = nullptr;  ///< steps that keep buffers
};

/// Local steps, then the posts of one flush.
struct Segment {
    std::vector<Instruction> local;
    std::vector<Instruction> posts;
    bool opens = false;   ///< the flush is the first since errors were last agreed on
    bool agrees = false;  ///< once the flush is complete, every rank knows every error noted before the one that opens
};

/// The segments of a plan and of its adjoint, one list.
struct Program {
    std::vector<Segment> segments;
    std::size_t forward = 0;  ///< how many of them are the plan's own

    /// True when rank `me` and `peer` exchange a message in the flush of `segment`.
    [[nodiscard]] static bool exchanges(const Segment& segment, const Topology& topology, int me, int peer) {
        if (me == peer) return false;
        for (const Instruction& post : segment.posts)
            if (post.exchange->exchanges(topology, me, peer)) return true;
        return false;
    }
};

namespace detail {

template <class S>
concept IsExchange = requires {
    typename S::Crosses;
};

/// Which half of "inside a G" and "across the G's" a group covers; both halves reach every rank.
template <class G>
inline constexpr int reach = 1;
template <>
inline constexpr int reach<World> = 3;
template <class G>
inline constexpr int reach<PeersOf<G>> = 2;

template <class Domain, class Root, class Path, class S>
struct Body {
    using Lanes = typename Domain::Lanes;
    template <class... Used>
    using ViewOn = View<Lanes, Used...>;
    using StepView = boost::mp11::mp_apply<ViewOn, typename S::Uses>;

    static StepView view(void* root) { return StepView{FrameAt<Path>::of(*static_cast<Root*>(root))}; }
    static void run(void* root, StepEnv& env) {
        auto v = view(root);
        S::run(env, v);
    }
    static bool exchanges(const Topology& t, int me, int peer) {
        using G = typename S::Crosses;
        return me != peer && G::member(t, me, G::index(t, peer)) == peer;
    }
    static void begin(void* root, StepEnv& env) {
        auto v = view(root);
        S::begin(env, v);
    }
    static PartSize size(void* root, StepEnv& env, int peer) {
        auto v = view(root);
        return S::size(env, v, peer);
    }
    static void pack(void* root, StepEnv& env, int peer, ByteWriter& to) {
        auto v = view(root);
        S::pack(env, v, peer, to);
    }
    static std::int64_t expected(void* root, StepEnv& env, int peer) {
        auto v = view(root);
        return S::expected(env, v, peer);
    }
    static void unpack(void* root, StepEnv& env, int peer, ByteReader& from) {
        auto v = view(root);
        S::unpack(env, v, peer, from);
    }
    static void end(void* root, StepEnv& env) {
        auto v = view(root);
        S::end(env, v);
    }
    static constexpr ExchangeCalls calls() {
        return {.reach = reach<typename S::Crosses>,
                .exchanges = &exchanges,
                .begin = &begin,
                .size = &size,
                .pack = &pack,
                .expected = &expected,
                .unpack = &unpack,
                .end = &end};
    }
};

template <class Tree>
Tree& tree_at(Tree& tree, boost::mp11::mp_list<>) {
    return tree;
}
template <class Tree, class First, class... Rest>
Tree& tree_at(Tree& tree, boost::mp11::mp_list<First, Rest...>) {
    return tree_at(tree.branches[First::value], boost::mp11::mp_list<Rest...>{});
}

template <class S, class Cost>
concept KeepsBuffers = requires(const Cost& cost, MemoryTally& tally) {
    S::memory(cost, 0, tally);
};

template <class Domain, class Path, class S>
void memory_at(void* tree, int rank, MemoryTally& tally) {
    S::memory(tree_at(*static_cast<CostTree<typename Domain::Cost>*>(tree), Path{}).own, rank, tally);
}

template <class Domain, class Path, class S>
void shape_at(void* tree, TrafficMatrix& flush) {
    auto& node = tree_at(*static_cast<CostTree<typename Domain::Cost>*>(tree), Path{});
    if constexpr (IsExchange<S>) {
        S::shape(node.own, flush);
    } else {
        S::shape(node.own);
    }
}

template <class Domain, class Root, class Path, class S>
struct CallsHolder {
    static constexpr ExchangeCalls value = Body<Domain, Root, Path, S>::calls();
};

inline std::string branch_name(const std::string& prefix, std::size_t index) {
    return prefix.empty() ? std::to_string(index) : prefix + "." + std::to_string(index);
}

/// Appends the steps of P to `segments`, whose last one is open.
template <class Domain, class Root, class Path, class P>
void flatten(std::vector<Segment>& segments, const std::string& branch);

template <class Domain, class Root, class Path, class... B>
void flatten_together(std::vector<Segment>& segments, const std::string& branch, Together<B...>*) {
    std::vector<std::vector<Segment>> parts(sizeof...(B), std::vector<Segment>(1));
    const auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
        (flatten<Domain, Root, boost::mp11::mp_push_back<Path, boost::mp11::mp_size_t<I>>, B>(parts[I],
                                                                                              branch_name(branch, I)),
         ...);
    };
    all(std::index_sequence_for<B...>{});
    std::size_t longest = 0;
    for (const auto& part : parts)
        longest = std::max(longest, part.size());
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

inline void append_step(std::vector<Segment>& segments, Instruction instruction, bool reads_state) {
    if (instruction.exchange != nullptr) {
        segments.back().posts.push_back(std::move(instruction));
        segments.emplace_back();
    } else {
        if (reads_state && segments.size() == 1) segments.emplace_back();
        segments.back().local.push_back(std::move(instruction));
    }
}

template <class Domain, class Root, class Path, class S>
void flatten_step(std::vector<Segment>& segments, const std::string& branch) {
    if constexpr (is_together<S>) {
        flatten_together<Domain, Root, Path>(segments, branch, static_cast<S*>(nullptr));
    } else {
        Instruction instruction{.name = S::name(), .branch = branch};
        instruction.shape = &shape_at<Domain, Path, S>;
        if constexpr (KeepsBuffers<S, typename Domain::Cost>) instruction.memory = &memory_at<Domain, Path, S>;
        if constexpr (IsExchange<S>) {
            instruction.exchange = &CallsHolder<Domain, Root, Path, S>::value;
            append_step(segments, std::move(instruction), false);
        } else {
            instruction.run = &Body<Domain, Root, Path, S>::run;
            append_step(segments, std::move(instruction), S::reads_state);
        }
    }
}

template <class Domain, class Root, class Path, class... S>
void flatten_steps(std::vector<Segment>& segments, const std::string& branch, Plan<S...>*) {
    (flatten_step<Domain, Root, Path, S>(segments, branch), ...);
}

template <class Domain, class Root, class Path, class P>
void flatten(std::vector<Segment>& segments, const std::string& branch) {
    flatten_steps<Domain, Root, Path>(segments, branch, static_cast<P*>(nullptr));
}

/// Marks the flushes after which every rank knows every error noted before the first of them.
inline void mark_agreements(std::vector<Segment>& segments) {
    int reached = 0;
    for (Segment& segment : segments) {
        if (segment.posts.empty()) continue;
        segment.opens = reached == 0;
        for (const Instruction& post : segment.posts)
            reached |= post.exchange->reach;
        segment.agrees = reached == 3;
        if (segment.agrees) reached = 0;
    }
}

}  // namespace detail

/// Flattens P and its adjoint. `Domain` names the types that P's steps work on: Lanes, and Cost for the cost reader.
template <class Domain, class P>
[[nodiscard]] Program make_program() {
    using Root = Frame<typename Domain::Lanes, P>;
    using Trunk = boost::mp11::mp_list<>;
    std::vector<Segment> forward(1);
    detail::flatten<Domain, Root, Trunk, P>(forward, "");
    detail::mark_agreements(forward);
    std::vector<Segment> backward(1);
    detail::flatten<Domain, Root, Trunk, Adjoint<P>>(backward, "");
    detail::mark_agreements(backward);
    Program program{.segments = std::move(forward), .forward = 0};
    program.forward = program.segments.size();
    for (Segment& segment : backward)
        program.segments.push_back(std::move(segment));
    return program;
}

}  // namespace shardwise::inline SHARDWISE_ABI
