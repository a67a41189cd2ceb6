// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>

#include "shardwise/comm/communicator_ref.hpp"
#include "stopwatch.hpp"

/// \file
/// What a user sees while the model trains.

namespace train_dlrm {

namespace sw = shardwise;

/// A line on standard error: refreshed in place on a terminal, else a new one every 2 seconds or 10 percent.
///
/// Its loss is that of all ranks. Rank 0 knows when a line is due and notes it with the sizes of its next batch, so
/// that all ranks come to show() behind the same step. A step without a line costs no message.
class Progress {
  public:
    /// Shows nothing.
    Progress() = default;
    /// \param steps  expected in all, 0 when there is no telling
    Progress(sw::CommunicatorRef comm, double steps);
    /// Of all steps, by what is known now; 0 when there is no telling.
    void expect(double steps) { expected_ = steps; }
    /// After a step. \param loss  sum of this rank's samples
    void step(std::int64_t steps, std::int64_t global_samples, double loss);
    /// On rank 0: whether a line is due behind the step that is under way.
    [[nodiscard]] bool due() const;
    /// A line of the steps since the last one. Collective; one message to rank 0 from each other rank.
    void show();
    /// The last line. Collective; the same message.
    void done();

  private:
    [[nodiscard]] bool first() const { return comm_ && comm_->rank() == 0; }

    std::optional<sw::CommunicatorRef> comm_;  // none: shows nothing
    double expected_ = 0;
    bool terminal_ = false;
    bool open_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
    double last_share_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t steps_here_ = 0;
    std::int64_t samples_ = 0;
    // since the last line:
    double loss_ = 0;          // this rank's sum
    std::int64_t learnt_ = 0;  // global samples
};

}  // namespace train_dlrm
