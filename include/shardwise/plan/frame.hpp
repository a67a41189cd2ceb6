// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <tuple>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/plan.hpp"

/// \file
/// The memory of one flight through a plan: one set of lanes, and the tape of every step that keeps one.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

template <class S>
concept KeepsTape = requires {
    typename S::Tape;
};
template <class S>
using KeepsTapeQ = std::bool_constant<KeepsTape<S>>;

/// The steps of a plan and its adjoint that keep a tape; those of branches are in the branches' frames.
template <class P>
using TapeSteps =
    boost::mp11::mp_copy_if<boost::mp11::mp_rename<boost::mp11::mp_append<P, Adjoint<P>>, boost::mp11::mp_list>,
                            KeepsTapeQ>;

/// A function, since Clang takes no member of a class in which an assertion fails.
template <class P>
constexpr bool check_tapes() {
    static_assert(
        boost::mp11::mp_is_set<TapeSteps<P>>::value,
        "a step that keeps a tape may stand only once in a plan, since tapes are found by type: give the second one a "
        "tag of its own");
    return true;
}

template <class S>
struct Slot {
    typename S::Tape tape;
};

template <class Steps>
struct Slots;
template <class... Steps>
struct Slots<boost::mp11::mp_list<Steps...>> : Slot<Steps>... {};

}  // namespace detail

/// Lanes and tapes of a flight through P, allocated once and used again for flight after flight.
template <class Lanes, class P>
struct Frame : detail::Slots<boost::mp11::mp_unique<detail::TapeSteps<P>>> {
    using PlanType = std::enable_if_t<detail::check_tapes<P>(), P>;
    template <class Branch>
    using FrameOf = Frame<Lanes, Branch>;

    Lanes lanes;
    boost::mp11::mp_apply<std::tuple, boost::mp11::mp_transform<FrameOf, Branches<P>>> branches;
};

/// What a step sees: the lanes, and the tapes of the steps that it names. It never sees the plan, so that its code
/// exists once for all plans.
template <class Lanes, class... Used>
class View {
  public:
    template <class F>
    explicit View(F& frame) : lanes_{&frame.lanes}, tapes_{&static_cast<detail::Slot<Used>&>(frame).tape...} {}

    [[nodiscard]] Lanes& lanes() const noexcept { return *lanes_; }
    template <class S>
    [[nodiscard]] typename S::Tape& tape() const noexcept {
        return *std::get<typename S::Tape*>(tapes_);
    }

  private:
    Lanes* lanes_;
    std::tuple<typename Used::Tape*...> tapes_;
};

namespace detail {

/// The frame at the end of a path of branch numbers.
template <class Path>
struct FrameAt;
template <>
struct FrameAt<boost::mp11::mp_list<>> {
    template <class F>
    static F& of(F& frame) {
        return frame;
    }
};
template <class First, class... Rest>
struct FrameAt<boost::mp11::mp_list<First, Rest...>> {
    template <class F>
    static auto& of(F& frame) {
        return FrameAt<boost::mp11::mp_list<Rest...>>::of(std::get<First::value>(frame.branches));
    }
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
