// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"

/// \file
/// What a step sees of the plan that it stands in: lanes, the tapes that it names, and the states that it names.

namespace shardwise::inline SHARDWISE_ABI {

/// A type of state, by the address of this object. State lives as long as its owner (a layer) and is bound to the
/// frames of all flights: what an update changes, and what every flight reads.
struct StateKind {
    const char* name;  ///< for the error where nobody bound it
    bool trained;      ///< an update of another flight may change it
    bool looked_up;    ///< steps that see it forward look rows up: a tracer sums their time
};

namespace detail {

template <class T>
concept IsTrained = requires {
    requires T::trained;
};
template <class T>
concept IsLookedUp = requires {
    requires T::looked_up;
};
template <class T>
concept HasStateName = requires {
    T::state_name;
};
template <class T>
constexpr const char* state_name() {
    if constexpr (HasStateName<T>) {
        return T::state_name;
    } else {
        return "(no state_name)";
    }
}
/// State T. A step that sees a T with `static constexpr bool trained = true` never stands in the first segment of a
/// plan, which may run before an update of an earlier flight.
template <class T>
inline constexpr StateKind state_kind{state_name<T>(), IsTrained<T>, IsLookedUp<T>};

/// What a step's tape is called by: the step, or the tape itself.
template <class Key>
struct TapeIn {
    using type = Key;
};
template <class Key>
    requires requires {
        typename Key::Tape;
    }
struct TapeIn<Key> {
    using type = typename Key::Tape;
};

}  // namespace detail

/// A step's view: of its lanes, of the tapes of the steps `Used`, of the states `Seen` (const where it only reads).
/// A step never sees the plan, so that its code exists once for all plans.
template <class Lanes, class Used, class Seen = boost::mp11::mp_list<>>
class View {
    static constexpr std::size_t tapes = boost::mp11::mp_size<Used>::value;
    static constexpr std::size_t states = boost::mp11::mp_size<Seen>::value;

  public:
    /// `parts`: the addresses of the lanes, the tapes, the states, and of a junction's plans (see Frame).
    explicit View(void* const* parts) : parts_{parts} {}

    [[nodiscard]] Lanes& lanes() const noexcept { return *static_cast<Lanes*>(parts_[0]); }
    template <class S>
    [[nodiscard]] typename detail::TapeIn<S>::type& tape() const noexcept {
        constexpr std::size_t at = boost::mp11::mp_find<Used, S>::value;
        static_assert(at < tapes, "a step sees the tapes of the steps that it names in Uses, and no others");
        return *static_cast<typename detail::TapeIn<S>::type*>(parts_[1 + at]);
    }
    template <class T>
    [[nodiscard]] auto& state() const noexcept {
        constexpr bool writes = boost::mp11::mp_contains<Seen, T>::value;
        using Listed = std::conditional_t<writes, T, const T>;
        constexpr std::size_t at = boost::mp11::mp_find<Seen, Listed>::value;
        static_assert(at < states, "a step sees the states that it names in Sees, and no others");
        return *static_cast<Listed*>(parts_[1 + tapes + at]);
    }
    /// A junction's: the lanes of the plan with a number.
    [[nodiscard]] Lanes& branch(std::size_t number) const noexcept {
        return *static_cast<Lanes*>(parts_[1 + tapes + states + number]);
    }

  private:
    void* const* parts_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
