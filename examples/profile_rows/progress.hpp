// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "train_dlrm/stopwatch.hpp"

/// \file
/// What a user sees while files are read.

namespace profile_rows {

/// A line on standard error: refreshed in place on a terminal, else a new one every 2 seconds; none for what takes
/// less.
class Progress {
  public:
    /// \param expected  samples of this rank, 0 when there is no telling \param shown  false on all ranks but the first
    Progress(double expected, bool shown, int ranks);
    /// After a batch. \param samples  this rank's so far
    void samples(std::int64_t samples);
    /// Ends the line.
    void done();

  private:
    double expected_;
    bool shown_;
    int ranks_;
    bool terminal_;
    bool open_ = false;
    train_dlrm::Clock::time_point start_ = train_dlrm::Clock::now();
    train_dlrm::Clock::time_point last_ = start_;
};

}  // namespace profile_rows
