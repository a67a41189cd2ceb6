// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reading_progress.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace train_dlrm {

ReadingProgress::ReadingProgress(double expected, bool shown, int ranks, std::string what)
    : expected_{expected},
      shown_{shown},
      ranks_{ranks},
      what_{std::move(what)},
      terminal_{isatty(STDERR_FILENO) != 0} {}

void ReadingProgress::samples(std::int64_t samples) {
    if (!shown_ || seconds_since(last_) < (terminal_ ? 0.2 : 2.0)) return;
    last_ = Clock::now();
    const auto read = static_cast<double>(samples);
    const double rate = read / seconds_since(start_);
    expected_ = expected_ > 0 ? std::max(expected_, read) : 0;  // it was an estimate
    std::string line = fmt::format("{}{:.0f} samples", what_, read * ranks_);
    if (expected_ > 0) line += fmt::format(" of about {:.0f} ({:.0f} %)", expected_ * ranks_, 100 * read / expected_);
    line += fmt::format("   {:.0f} samples/s", rate * ranks_);
    if (expected_ > 0) {
        const auto left = static_cast<std::int64_t>((expected_ - read) / rate + 0.5);
        line += fmt::format("   {}:{:02} left", left / 60, left % 60);
    }
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[2K" : "", line, terminal_ ? "" : "\n");
    std::fflush(stderr);
    open_ = terminal_;
}

void ReadingProgress::done() {
    if (open_) fmt::print(stderr, "\r\x1b[2K");
    std::fflush(stderr);
    open_ = false;
}

}  // namespace train_dlrm
