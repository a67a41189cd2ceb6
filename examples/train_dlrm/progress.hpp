// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "stopwatch.hpp"

/// \file
/// What a user sees while the model trains.

namespace train_dlrm {

/// A line on standard error: refreshed in place on a terminal, else a new one every 2 seconds or 10 percent.
class Progress {
  public:
    /// \param steps  expected in all, 0 when there is no telling \param shown  false on all ranks but the first
    Progress(double steps, bool shown);
    /// Of all steps, by what is known now; 0 when there is no telling.
    void expect(double steps) { expected_ = steps; }
    /// After a step. \param loss  mean of this rank's samples
    void step(std::int64_t steps, std::int64_t global_samples, double loss);
    /// Ends the line.
    void done();

  private:
    void show(std::int64_t steps);

    double expected_;
    bool shown_;
    bool terminal_;
    bool open_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
    double last_share_ = 0;
    std::int64_t steps_here_ = 0;
    std::int64_t samples_ = 0;
    double loss_ = 0;
    std::int64_t losses_ = 0;
};

}  // namespace train_dlrm
