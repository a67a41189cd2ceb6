// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

/// \file
/// What a user sees while it works.

namespace infer_dlrm {

/// A line on standard error with rate and time left: refreshed in place on a terminal, else a new one every 2 seconds.
class Progress {
  public:
    /// \param all  batches; 0: there is no telling
    Progress(std::string what, std::int64_t all, bool shown)
        : what_{std::move(what)}, all_{all}, shown_{shown}, terminal_{isatty(STDERR_FILENO) != 0} {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() {
        if (open_) fmt::print(stderr, "\r\x1b[2K");
    }
    void show(std::int64_t batches, std::int64_t samples) {
        using Seconds = std::chrono::duration<double>;
        const auto now = Clock::now();
        if (!shown_ || Seconds{now - last_}.count() < (terminal_ ? 0.2 : 2.0)) return;
        last_ = now;
        const double seconds = Seconds{now - begin_}.count();
        std::string line = fmt::format("{}: batch {}", what_, batches);
        if (all_ > 0) line += fmt::format(" of {}", all_);
        line += fmt::format("   {:.0f} samples/s", static_cast<double>(samples) / seconds);
        if (all_ > 0)
            line += fmt::format("   {:.0f} s left", seconds *
                                                        static_cast<double>(std::max<std::int64_t>(all_ - batches, 0)) /
                                                        static_cast<double>(std::max<std::int64_t>(batches, 1)));
        fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[2K" : "", line, terminal_ ? "" : "\n");
        std::fflush(stderr);
        open_ = terminal_;
    }

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    std::int64_t all_;
    bool shown_;
    bool terminal_;
    bool open_ = false;
    Clock::time_point begin_ = Clock::now();
    Clock::time_point last_ = begin_;
};

}  // namespace infer_dlrm
