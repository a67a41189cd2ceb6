// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace train_dlrm {

namespace {

std::string clock_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                        : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Progress::Progress(double steps, bool shown) : expected_{steps}, shown_{shown}, terminal_{isatty(STDERR_FILENO) != 0} {}

void Progress::step(std::int64_t steps, std::int64_t global_samples, double loss) {
    if (!shown_) return;
    if (expected_ > 0) expected_ = std::max(expected_, static_cast<double>(steps));  // it was an estimate
    ++steps_here_;
    samples_ += global_samples;
    loss_ += loss;
    ++losses_;
    const double share = expected_ > 0 ? static_cast<double>(steps) / expected_ : 0;
    if (seconds_since(last_) < (terminal_ ? 0.2 : 2.0) && (terminal_ || share < last_share_ + 0.1)) return;
    last_share_ = share;
    show(steps);
}

void Progress::show(std::int64_t steps) {
    last_ = Clock::now();
    const double seconds = std::max(seconds_since(start_), 1e-9);
    std::string line = expected_ > 0 ? fmt::format("step {} of {:.0f} ({:.0f} %)", steps, expected_,
                                                   100 * static_cast<double>(steps) / expected_)
                                     : fmt::format("step {}", steps);
    line += fmt::format("   loss {:.4f}   {:.0f} samples/s",
                        loss_ / static_cast<double>(std::max<std::int64_t>(losses_, 1)),
                        static_cast<double>(samples_) / seconds);
    if (expected_ > 0) {
        const double left = std::max(0.0, expected_ - static_cast<double>(steps));
        line += fmt::format("   {} left", clock_text(left * seconds / static_cast<double>(steps_here_)));
    }
    loss_ = 0;
    losses_ = 0;
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[2K{}", line);
        open_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void Progress::done() {
    if (open_) fmt::print(stderr, "\r\x1b[2K");
    std::fflush(stderr);
    open_ = false;
}

}  // namespace train_dlrm
