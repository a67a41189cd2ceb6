// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "shardwise/comm/collectives.hpp"

namespace train_dlrm {

namespace {

std::string clock_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                        : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Progress::Progress(sw::CommunicatorRef comm, double steps)
    : comm_{comm}, expected_{steps}, terminal_{isatty(STDERR_FILENO) != 0} {}

void Progress::step(std::int64_t steps, std::int64_t global_samples, double loss) {
    steps_ = steps;
    if (expected_ > 0) expected_ = std::max(expected_, static_cast<double>(steps));  // it was an estimate
    ++steps_here_;
    samples_ += global_samples;
    learnt_ += global_samples;
    loss_ += loss;
}

bool Progress::due() const {
    if (!first()) return false;
    const double share = expected_ > 0 ? static_cast<double>(steps_ + 1) / expected_ : 0;
    return seconds_since(last_) >= (terminal_ ? 0.2 : 2.0) || (!terminal_ && share >= last_share_ + 0.1);
}

void Progress::show() {
    if (!comm_) return;
    double loss = 0;
    for (const auto& theirs : sw::gather_v<double>(*comm_, 0, std::span{&loss_, 1}))
        loss += theirs.at(0);
    const std::int64_t learnt = learnt_;
    loss_ = 0;
    learnt_ = 0;
    if (!first() || learnt == 0) return;
    last_ = Clock::now();
    last_share_ = expected_ > 0 ? static_cast<double>(steps_) / expected_ : 0;
    const double seconds = std::max(seconds_since(start_), 1e-9);
    std::string line = expected_ > 0 ? fmt::format("step {} of {:.0f} ({:.0f} %)", steps_, expected_,
                                                   100 * static_cast<double>(steps_) / expected_)
                                     : fmt::format("step {}", steps_);
    line += fmt::format("   loss {:.4f}   {:.0f} samples/s", loss / static_cast<double>(learnt),
                        static_cast<double>(samples_) / seconds);
    if (expected_ > 0) {
        const double left = std::max(0.0, expected_ - static_cast<double>(steps_));
        line += fmt::format("   {} left", clock_text(left * seconds / static_cast<double>(steps_here_)));
    }
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[2K{}", line);
        open_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void Progress::done() {
    show();
    if (open_) fmt::print(stderr, "\r\x1b[2K");
    std::fflush(stderr);
    open_ = false;
}

}  // namespace train_dlrm
