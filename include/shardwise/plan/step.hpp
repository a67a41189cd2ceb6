// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/expected_count.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/view.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A step whose type is forgotten: what the readers of a program call. What a step *is* (its place in a plan) and what
/// it *does* (its body) are two things: bodies belong to a domain and a family of steps, and exist once for both.

namespace shardwise::inline SHARDWISE_ABI {

/// The first error of a flight on this rank; travels as a word in every round.
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
    Members group;  ///< that the step crosses, or names as `In`
    Members under;  ///< that it names as `Under`: the level below its own
    FlightError error;
    bool errors_stay = false;  ///< on this rank: no other is told of them
    Members peers;             ///< that `rank` and the ranks that it exchanges with are the members of
    int world_rank = 0;        ///< of this rank

    /// The rank of the communicator that a peer is.
    [[nodiscard]] int in_world(int peer) const noexcept { return peers.member(world_rank, peer); }
};
/// The same for the cost reader, which looks at all ranks.
struct CostEnv {
    Topology topology;
    Members group;
    Members under;
};

/// The bytes of a step's part of a message.
struct PartSize {
    static constexpr std::int64_t unknown = -1;
    std::int64_t payload = 0;
    std::int64_t control = 0;
};

/// One exchange of a flight, from the sizes of its parts to what it leaves behind. A step's `begin` gives it, as a rule
/// its tape. `size`, then `pack`, are called for each rank of the group that is sent to, `expected`, and later
/// `unpack`, for each that something comes from, in ascending order: all but this one, or in half a flight fewer.
class Exchange {
  public:
    virtual ~Exchange() = default;
    /// My part of the message to `peer`, and what goes into it.
    [[nodiscard]] virtual PartSize size(int peer) = 0;
    virtual void pack(int peer, ByteWriter& to) = 0;
    /// The bytes of the peer's part, or PartSize::unknown.
    [[nodiscard]] virtual std::int64_t expected(int /*peer*/) { return PartSize::unknown; }
    virtual void unpack(int peer, ByteReader& from) = 0;
    /// All parts are there.
    virtual void end() = 0;

  protected:
    Exchange() = default;
    Exchange(const Exchange&) = default;
    Exchange& operator=(const Exchange&) = default;
    Exchange(Exchange&&) = default;
    Exchange& operator=(Exchange&&) = default;
};

/// The entry of a step for a cost reader that counts in `Count`s.
template <class Count>
using ShapeOfStep = void(const CostEnv&, void* cost, void* const* branches, std::size_t count, TrafficMatrixOf<Count>&);
/// What its buffers need on a rank.
using MemoryOfStep = void(const CostEnv&, const void* cost, int rank, MemoryTally&);

/// The body of a family of steps on the lanes, states and Cost of one domain.
struct StepCode {
    std::shared_ptr<void> (*make_tape)();              ///< null: its steps keep none
    void (*run)(void* const* parts, StepEnv&);         ///< local steps and junctions; null for exchanges
    Exchange& (*begin)(void* const* parts, StepEnv&);  ///< exchanges; null for others
    ShapeOfStep<std::int64_t>* shape;
    MemoryOfStep* memory;                ///< null: it keeps no buffers
    ShapeOfStep<ExpectedCount>* expect;  ///< the same in expectation; null where the domain has none
    MemoryOfStep* expect_memory;
};

/// The tape of one step, its type forgotten; the address of this object says whose it is.
struct TapeKind {
    const StepCode& (*code)();
};

/// A step: its place in a plan, as values.
struct StepCalls {
    std::string (*name)();
    bool reads_state;
    std::span<const TapeKind* const> tapes;
    std::span<const StateKind* const> states;
    bool exchanges;
    bool commits;  ///< it is the last to change trained state: a flight may hold it back (Flight::hold)
    Members (*group)(const Topology&);  ///< null: it names none
    Members (*under)(const Topology&);
    const StepCode& (*code)();
};

namespace detail {

template <class S>
concept IsExchange = requires {
    typename S::Crosses;
};
template <class S>
concept NamesGroup = requires {
    typename S::In;
};
template <class S>
concept NamesUnder = requires {
    typename S::Under;
};
template <class S>
concept Commits = requires {
    requires S::commits;
};
template <class S>
concept HasTape = requires {
    typename S::Tape;
};
template <class S>
concept HasFamily = requires {
    typename S::Family;
};
template <class S>
concept HasSees = requires {
    typename S::Sees;
};
template <class S>
concept HasView = requires {
    typename S::View;
};

/// Domains whose steps the expectation reader reads, too.
template <class Domain>
concept HasExpectation = requires {
    typename Domain::Expectation;
};

template <class S>
struct SeenBy {
    using type = boost::mp11::mp_list<>;
};
template <HasSees S>
struct SeenBy<S> {
    using type = typename S::Sees;
};

/// The view that a body is called with: its own, or the one that a step's lists make.
template <class Domain, class B>
struct ViewOf {
    using type = View<typename Domain::Lanes, typename B::Uses, typename SeenBy<B>::type>;
};
template <class Domain, HasView B>
struct ViewOf<Domain, B> {
    using type = typename B::View;
};

/// The code of a body B: a step, or what a family is made of.
template <class Domain, class B>
struct CodeFrom {
    using V = typename ViewOf<Domain, B>::type;
    using Cost = typename Domain::Cost;

    static std::shared_ptr<void> make_tape() { return std::make_shared<typename B::Tape>(); }
    static void run(void* const* parts, StepEnv& env) {
        V view{parts};
        B::run(env, view);
    }
    static Exchange& begin(void* const* parts, StepEnv& env) {
        V view{parts};
        return B::begin(env, view);
    }
    /// By lanes of the cost reader or of the expectation reader.
    template <class Lanes, class Count>
    static void shape(const CostEnv& env, void* cost, void* const* branches, std::size_t count,
                      TrafficMatrixOf<Count>& round) {
        Lanes& own = *static_cast<Lanes*>(cost);
        if constexpr (requires { B::shape(env, own, round); }) {
            B::shape(env, own, round);
        } else if constexpr (requires(std::span<Lanes* const> all) { B::shape(env, own, all); }) {
            std::vector<Lanes*> all;
            for (std::size_t i = 0; i < count; ++i)
                all.push_back(static_cast<Lanes*>(branches[i]));
            B::shape(env, own, std::span<Lanes* const>{all});
        } else {
            B::shape(env, own);
        }
    }
    template <class Lanes>
    static void memory(const CostEnv& env, const void* cost, int rank, MemoryTally& tally) {
        B::memory(env, *static_cast<const Lanes*>(cost), rank, tally);
    }
    template <class Lanes>
    static constexpr bool has_memory = requires(const CostEnv& env, const Lanes& cost, MemoryTally& tally) {
        B::memory(env, cost, 0, tally);
    };
    static constexpr StepCode make() {
        StepCode code{.make_tape = nullptr,
                      .run = nullptr,
                      .begin = nullptr,
                      .shape = &shape<Cost, std::int64_t>,
                      .memory = nullptr,
                      .expect = nullptr,
                      .expect_memory = nullptr};
        if constexpr (HasTape<B>) code.make_tape = &make_tape;
        if constexpr (requires(StepEnv & env, V & view) { B::begin(env, view); }) {
            code.begin = &begin;
        } else {
            code.run = &run;
        }
        if constexpr (has_memory<Cost>) code.memory = &memory<Cost>;
        if constexpr (HasExpectation<Domain>) {
            using Expectation = typename Domain::Expectation;
            code.expect = &shape<Expectation, ExpectedCount>;
            if constexpr (has_memory<Expectation>) code.expect_memory = &memory<Expectation>;
        }
        return code;
    }
    static constexpr StepCode value = make();
};

/// Of a step that names no family, its own members; else what stands beside the family.
template <class Domain, class S>
const StepCode& code_of() {
    if constexpr (HasFamily<S>) {
        return step_code(Domain{}, typename S::Family{});
    } else {
        return CodeFrom<Domain, S>::value;
    }
}

template <class Domain, class S>
inline constexpr TapeKind tape_kind{&code_of<Domain, S>};

template <class Domain, class Uses>
struct TapesOf;
template <class Domain, class... Used>
struct TapesOf<Domain, boost::mp11::mp_list<Used...>> {
    static constexpr const TapeKind* all[sizeof...(Used) + 1] = {&tape_kind<Domain, Used>..., nullptr};
    static constexpr std::span<const TapeKind* const> span{all, sizeof...(Used)};
};
template <class Sees>
struct StatesOf;
template <class... T>
struct StatesOf<boost::mp11::mp_list<T...>> {
    static constexpr const StateKind* all[sizeof...(T) + 1] = {&state_kind<std::remove_const_t<T>>..., nullptr};
    static constexpr std::span<const StateKind* const> span{all, sizeof...(T)};
    static constexpr bool any_trained = (IsTrained<std::remove_const_t<T>> || ...);
};

template <class Domain, class S>
constexpr StepCalls step_calls() {
    using States = StatesOf<typename SeenBy<S>::type>;
    StepCalls calls{.name = &S::name,
                    .reads_state = States::any_trained,
                    .tapes = TapesOf<Domain, typename S::Uses>::span,
                    .states = States::span,
                    .exchanges = IsExchange<S>,
                    .commits = Commits<S>,
                    .group = nullptr,
                    .under = nullptr,
                    .code = &code_of<Domain, S>};
    if constexpr (IsExchange<S>) calls.group = [](const Topology& t) { return S::Crosses::of(t); };
    if constexpr (NamesGroup<S>) calls.group = [](const Topology& t) { return S::In::of(t); };
    if constexpr (NamesUnder<S>) calls.under = [](const Topology& t) { return S::Under::of(t); };
    return calls;
}
template <class Domain, class S>
inline constexpr StepCalls step_calls_of = step_calls<Domain, S>();

}  // namespace detail

/// The code of `Body` in `Domain`. A library's family declares `const StepCode& step_code(Domain, Family)` in its own
/// namespace and returns this, so that a body is compiled where that definition is, and nowhere else. Of a step that
/// names no family, its own members are the body.
template <class Domain, class Body>
const StepCode& code_from() {
    return detail::CodeFrom<Domain, Body>::value;
}

}  // namespace shardwise::inline SHARDWISE_ABI
