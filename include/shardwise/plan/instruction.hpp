// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/view.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A step whose type is forgotten: all that readers of a program call.

namespace shardwise::inline SHARDWISE_ABI {

/// The first error of a flight on this rank; travels as a word in every flush.
class FlightError {
  public:
    static constexpr std::uint8_t bad_input = 1;

    /// Remembers the first error; later ones are consequences.
    void note(std::uint8_t kind, const std::string& text) {
        if (word_ == 0) text_ = text;
        word_ = static_cast<std::uint8_t>(word_ | kind);
    }
    void clear() noexcept {
        word_ = 0;
        text_.clear();
    }
    [[nodiscard]] std::uint8_t word() const noexcept { return word_; }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::uint8_t word_ = 0;
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

/// The members of an exchange step, on a view whose type is forgotten (`parts`, see View):
/// - `Crosses`: the Group whose members exchange, each with each other;
/// - `begin(env, view)`: before the sizes are asked for;
/// - `size(env, view, peer) -> PartSize` and `pack(env, view, peer, ByteWriter&)`: my part of the message to `peer`;
/// - `expected(env, view, peer)`: the bytes of the peer's part, or PartSize::unknown;
/// - `unpack(env, view, peer, ByteReader&)`, in ascending order of peers; `end(env, view)`.
struct ExchangeCalls {
    bool world;  ///< every rank exchanges with every other
    bool (*exchanges)(const Topology&, int me, int peer);
    void (*begin)(void* const* parts, StepEnv&);
    PartSize (*size)(void* const* parts, StepEnv&, int peer);
    void (*pack)(void* const* parts, StepEnv&, int peer, ByteWriter&);
    std::int64_t (*expected)(void* const* parts, StepEnv&, int peer);
    void (*unpack)(void* const* parts, StepEnv&, int peer, ByteReader&);
    void (*end)(void* const* parts, StepEnv&);
};

/// The members of a step, for the types of one domain.
struct StepCalls {
    std::string (*name)();
    bool reads_state;
    std::span<const TapeKind* const> tapes;                    ///< that its view shows
    void (*run)(void* const* parts, StepEnv&);                 ///< local steps; null for exchanges
    const ExchangeCalls* exchange;                             ///< exchanges; null for local steps
    void (*shape)(void* cost, TrafficMatrix&);                 ///< the cost reader's step, on the domain's Cost
    void (*memory)(const void* cost, int rank, MemoryTally&);  ///< steps that keep buffers; null for others
};

/// Which branch of a plan a step stands in: the branch's number in its Together, from the trunk outwards.
using BranchPath = std::vector<std::size_t>;

/// One step of a flattened plan.
struct Instruction {
    std::string name;
    BranchPath branch = {};  ///< empty on the trunk
    const StepCalls* calls = nullptr;
    std::size_t first_part = 0;  ///< of its view, among the parts of a frame
};

namespace detail {

template <class S>
concept IsExchange = requires {
    typename S::Crosses;
};

template <class S, class Cost>
concept KeepsBuffers = requires(const Cost& cost, MemoryTally& tally) {
    S::memory(cost, 0, tally);
};

template <class Uses>
struct TapesOf;
template <class... Used>
struct TapesOf<boost::mp11::mp_list<Used...>> {
    static constexpr std::size_t count = sizeof...(Used);
    static constexpr const TapeKind* all[count + 1] = {&tape_kind<Used>..., nullptr};
};

/// The bodies of step S on the lanes and the Cost of a domain.
template <class Domain, class S>
struct Body {
    template <class... Used>
    using ViewOn = View<typename Domain::Lanes, Used...>;
    using StepView = boost::mp11::mp_apply<ViewOn, typename S::Uses>;
    using Cost = typename Domain::Cost;

    static void run(void* const* parts, StepEnv& env) {
        StepView v{parts};
        S::run(env, v);
    }
    static bool exchanges(const Topology& t, int me, int peer) {
        using G = typename S::Crosses;
        return me != peer && G::member(t, me, G::index(t, peer)) == peer;
    }
    static void begin(void* const* parts, StepEnv& env) {
        StepView v{parts};
        S::begin(env, v);
    }
    static PartSize size(void* const* parts, StepEnv& env, int peer) {
        StepView v{parts};
        return S::size(env, v, peer);
    }
    static void pack(void* const* parts, StepEnv& env, int peer, ByteWriter& to) {
        StepView v{parts};
        S::pack(env, v, peer, to);
    }
    static std::int64_t expected(void* const* parts, StepEnv& env, int peer) {
        StepView v{parts};
        return S::expected(env, v, peer);
    }
    static void unpack(void* const* parts, StepEnv& env, int peer, ByteReader& from) {
        StepView v{parts};
        S::unpack(env, v, peer, from);
    }
    static void end(void* const* parts, StepEnv& env) {
        StepView v{parts};
        S::end(env, v);
    }
    static void shape(void* cost, TrafficMatrix& flush) {
        if constexpr (IsExchange<S>) {
            S::shape(*static_cast<Cost*>(cost), flush);
        } else {
            S::shape(*static_cast<Cost*>(cost));
        }
    }
    static void memory(const void* cost, int rank, MemoryTally& tally) {
        S::memory(*static_cast<const Cost*>(cost), rank, tally);
    }
};

template <class Domain, class S>
struct ExchangeCallsOf {
    using B = Body<Domain, S>;
    static constexpr ExchangeCalls value{.world = std::is_same_v<typename S::Crosses, World>,
                                         .exchanges = &B::exchanges,
                                         .begin = &B::begin,
                                         .size = &B::size,
                                         .pack = &B::pack,
                                         .expected = &B::expected,
                                         .unpack = &B::unpack,
                                         .end = &B::end};
};

template <class Domain, class S>
constexpr StepCalls step_calls() {
    using B = Body<Domain, S>;
    using Tapes = TapesOf<typename S::Uses>;
    StepCalls calls{.name = &S::name,
                    .reads_state = S::reads_state,
                    .tapes = {Tapes::all, Tapes::count},
                    .run = nullptr,
                    .exchange = nullptr,
                    .shape = &B::shape,
                    .memory = nullptr};
    if constexpr (IsExchange<S>) {
        calls.exchange = &ExchangeCallsOf<Domain, S>::value;
    } else {
        calls.run = &B::run;
    }
    if constexpr (KeepsBuffers<S, typename Domain::Cost>) calls.memory = &B::memory;
    return calls;
}
template <class Domain, class S>
inline constexpr StepCalls step_calls_of = step_calls<Domain, S>();

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
