// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"

/// \file
/// What a step sees of the plan that it stands in.

namespace shardwise::inline SHARDWISE_ABI {

/// The lanes, and the tapes of the steps that this one names. A step never sees the plan, so that its code exists once
/// for all plans.
template <class Lanes, class... Used>
class View {
  public:
    /// `parts`: the addresses of the lanes, and of the tape of each used step (see Frame).
    explicit View(void* const* parts) : parts_{parts} {}

    [[nodiscard]] Lanes& lanes() const noexcept { return *static_cast<Lanes*>(parts_[0]); }
    template <class S>
    [[nodiscard]] typename S::Tape& tape() const noexcept {
        constexpr std::size_t at = boost::mp11::mp_find<boost::mp11::mp_list<Used...>, S>::value;
        static_assert(at < sizeof...(Used), "a step sees the tapes of the steps that it names in Uses, and no others");
        return *static_cast<typename S::Tape*>(parts_[1 + at]);
    }

  private:
    void* const* parts_;
};

/// The tape of one step, its type forgotten; the address of this object says whose it is.
struct TapeKind {
    std::shared_ptr<void> (*make)();
};

namespace detail {

template <class S>
inline constexpr TapeKind tape_kind{[]() -> std::shared_ptr<void> { return std::make_shared<typename S::Tape>(); }};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
