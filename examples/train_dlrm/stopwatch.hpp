// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>

/// \file
/// Seconds by purpose.

namespace train_dlrm {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Adds the time of its life to a sum.
class [[nodiscard]] Stopwatch {
  public:
    explicit Stopwatch(double& sum) : sum_{&sum} {}
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;
    ~Stopwatch() { *sum_ += seconds_since(start_); }

  private:
    double* sum_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace train_dlrm
