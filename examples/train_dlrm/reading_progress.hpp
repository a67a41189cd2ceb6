// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "stopwatch.hpp"

/// \file
/// What a user sees while files are read.

namespace train_dlrm {

/// A line on standard error: refreshed in place on a terminal, else a new one every 2 seconds; none for what takes
/// less.
class ReadingProgress {
  public:
    /// \param expected  samples of this rank, 0 when there is no telling \param shown  false on all ranks but the first
    /// \param what  begins each line
    ReadingProgress(double expected, bool shown, int ranks, std::string what = "");
    /// After a batch. \param samples  this rank's so far
    void samples(std::int64_t samples);
    /// Ends the line.
    void done();

  private:
    double expected_;
    bool shown_;
    int ranks_;
    std::string what_;
    bool terminal_;
    bool open_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
};

}  // namespace train_dlrm
