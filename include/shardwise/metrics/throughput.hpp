// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shardwise/core/config.hpp"

/// \file
/// Samples per second.

namespace shardwise::inline SHARDWISE_ABI {

/// Samples handled, and the seconds it took. Trivially copyable, so that ranks can gather and add them.
struct ThroughputSums {
    std::int64_t samples = 0;
    double seconds = 0;

    /// Adds a rank that ran at the same time: samples add up, the slowest rank's time counts.
    ThroughputSums& operator+=(const ThroughputSums& other) noexcept {
        samples += other.samples;
        seconds = std::max(seconds, other.seconds);
        return *this;
    }
    /// NaN when no time has passed.
    [[nodiscard]] double samples_per_second() const noexcept {
        return seconds > 0 ? static_cast<double>(samples) / seconds : std::numeric_limits<double>::quiet_NaN();
    }
};
static_assert(std::is_trivially_copyable_v<ThroughputSums>);

/// Counts samples against a steady clock. Not thread safe.
/// \tparam Clock  a monotonic clock
template <class Clock = std::chrono::steady_clock>
class Throughput {
    static_assert(Clock::is_steady, "throughput needs a clock that never goes back");

  public:
    /// Starts now.
    Throughput() : start_{Clock::now()} {}
    /// Starts again now, without samples.
    void restart() {
        samples_ = 0;
        start_ = Clock::now();
    }
    void add(std::int64_t samples) noexcept { samples_ += samples; }
    /// Samples added since the start, and the time since.
    [[nodiscard]] ThroughputSums sums() const {
        return {samples_, std::chrono::duration<double>(Clock::now() - start_).count()};
    }

  private:
    typename Clock::time_point start_;
    std::int64_t samples_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
