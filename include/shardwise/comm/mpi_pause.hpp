// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "shardwise/core/config.hpp"

/// \file
/// What a process does between two polls of MPI that found nothing.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// Nothing for about 0.1 ms, which is soonest where each rank has a processor; yields for about as long; then sleeps,
/// where the caller lets it. A rank that only yields uses up its share of a processor, and where others want it waits
/// for its turn at each message: with a busy process beside 2 ranks on 2 cores, sleeping took a fifth of the time.
class MpiPause {
  public:
    MpiPause() = default;
    /// One that goes on. \param idled  how often it has paused \param least  pauses that yield at the soonest: where
    /// polls take a hundredth of MPI's, or ranks are more than processors, who only polls keeps one from a rank that
    /// has something to do
    MpiPause(int idled, int least) : idle_{std::max(idled, least)} {}
    static constexpr int polls = 1000;
    [[nodiscard]] int idled() const noexcept { return idle_; }

    /// \param may_sleep  called once it wants to; false where polls are what moves a message on
    /// \returns false as long as nothing is all it does
    template <class MaySleep>
    bool operator()(const MaySleep& may_sleep) {
        if (idle_ < polls + yields) ++idle_;
        if (idle_ < polls) return false;
        if (idle_ < polls + yields || !may_sleep()) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(nap);
        }
        return true;
    }

  private:
    static constexpr int yields = 300;
    static constexpr std::chrono::microseconds nap{20};  // and the timer's slack, 50 in Linux

    int idle_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
